"""Copy atoms of contiguous bytes (``cp.async.bulk``), without a tensor map."""

from __future__ import annotations

import dataclasses
from typing import Any

from tilewright.atoms.bulk_copy import BulkCopy, BulkLoad, BulkStore
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.lang.device.integers import match_sync
from tilewright.lang.device.special_registers import activemask, lanemask_lt
from tilewright.lang.numbers.numeric import Boolean, Int16
from tilewright.lang.staging.generate import if_generate
from tilewright.lang.staging.with_block import inside
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout, coalesce, is_static, max_common_vector, size
from tilewright.tiled.atom import CopyAtom, bits_in_memory
from tilewright.tiled.tma.stage import cache_policy_value


class BulkCopyAtom(CopyAtom):
    """A bulk copy; ``num_bits_per_copy`` bounds what one instruction moves (0: all that is contiguous)."""

    def __init__(self, op: Any, value_type: Any, num_bits_per_copy: int = 0) -> None:
        super().__init__(op, value_type)
        self.num_bits_per_copy = num_bits_per_copy

    def _key(self) -> Any:
        return (*super()._key(), self.num_bits_per_copy)

    def stage_copy(
        self,
        src: Tensor,
        dst: Tensor,
        *,
        pred: Any = None,
        mbar_ptr: Any = None,
        mcast_mask: Any = None,
        cache_policy: Any = None,
        **options: Any,
    ) -> None:
        """``cute.copy`` with this atom: one thread of a warp issues the copies, of those that give one destination."""
        instruction = self.instruction
        assert isinstance(instruction, BulkCopy)
        for name, value in {"pred": pred, **options}.items():
            if value is not None:
                raise ConstraintError(f"cute.copy: {instruction} takes no {name}")
        shared = _shared_operands(instruction, mbar_ptr, mcast_mask)
        if cache_policy is not None:
            instruction = dataclasses.replace(instruction, hint=True)
            shared.append(cache_policy_value(cache_policy))
        elements = self._elements(src, dst)
        operands: list[Value] = []
        for i in range(size(src.linear) // elements):
            for tensor in (dst, src):
                operands.append((tensor.engine + _offset(tensor, i * elements)).value())
        nbytes = elements * bits_in_memory(self.scalar) // 8
        count = len(operands) // 2

        def issue() -> None:
            Builder.current().call(instruction, [*shared, *operands], count=count, bytes=nbytes)

        if count == 0 or _adds(instruction) or inside("elect_one block"):
            issue()
        else:
            if_generate(_first_for(dst.engine), issue)

    def _elements(self, src: Tensor, dst: Tensor) -> int:
        """How many elements one instruction copies: all that are contiguous on both sides."""
        for tensor in (src, dst):
            if not isinstance(tensor.engine, Pointer) or tensor.engine.swizzle is not None:
                raise ConstraintError(f"{self.instruction}: copies contiguous memory, not {tensor}")
            if not isinstance(tensor.linear, Layout) or not is_static(tensor.linear.shape):
                raise ConstraintError(f"{self.instruction}: the extents of {tensor} must be static")
            if tensor.element_type.ir_type.width != self.scalar.width:
                raise ConstraintError(f"{self.instruction}: was made for {self.scalar}, not for {tensor.element_type}")
        if size(src.linear) != size(dst.linear):
            raise ConstraintError(f"{self.instruction}: {src.linear} and {dst.linear} differ in size")
        elements = int(max_common_vector(coalesce(src.linear), coalesce(dst.linear)))
        if self.num_bits_per_copy:
            elements = min(elements, self.num_bits_per_copy // self.scalar.width)
        if elements < 1 or size(src.linear) % elements or elements * bits_in_memory(self.scalar) % 128:
            raise ConstraintError(
                f"{self.instruction}: {src.linear} to {dst.linear} are contiguous for {elements} x {self.scalar}; "
                "a bulk "
                "copy takes whole multiples of 16 contiguous bytes: copy with the layout of the tensor, or with "
                "make_tiled_tma_atom"
            )
        return elements


def _adds(instruction: BulkCopy) -> bool:
    """Whether copies of several threads to one place are meant: they are combined there."""
    return isinstance(instruction, BulkStore) and bool(instruction.reduction)


def _first_for(place: Pointer) -> Boolean:
    """Whether no lower lane that is here has this place: of a whole warp with one place the first, each lane of its
    own place, and a thread that is alone."""
    return Boolean(match_sync(activemask(), place.toint()) & lanemask_lt() == 0)


def _offset(tensor: Tensor, index: int) -> Any:
    return tensor.linear(index)


def _shared_operands(instruction: BulkCopy, mbar_ptr: Any, mcast_mask: Any) -> list[Value]:
    if not isinstance(instruction, BulkLoad):
        for name, value in (("mbar_ptr", mbar_ptr), ("mcast_mask", mcast_mask)):
            if value is not None:
                raise ConstraintError(
                    f"cute.copy: {instruction} takes no {name}; wait for its group with "
                    "cute.arch.cp_async_bulk_wait_group"
                )
        return []
    if not isinstance(mbar_ptr, Pointer):
        raise ConstraintError(
            f"cute.copy: {instruction} completes on an mbarrier; give it as mbar_ptr (a pointer to Int64 in "
            "shared memory)"
        )
    if instruction.multicast != (mcast_mask is not None):
        raise ConstraintError(
            f"cute.copy: {instruction} {'needs' if instruction.multicast else 'takes no'} mcast_mask: multicast is "
            "CopyBulkG2SMulticastOp with the mask of the blocks that receive"
        )
    return [mbar_ptr.value(), *([Int16(mcast_mask).ir_value()] if instruction.multicast else [])]
