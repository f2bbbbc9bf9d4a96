"""The copy atom of ``st.async``: registers to another block's shared memory, counted at an mbarrier there."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.cluster import StoreAsync
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.lang.numbers.numeric import Uint32
from tilewright.lang.tensors.algebra import recast_tensor
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.registers import Registers
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import coalesce, max_common_vector, size
from tilewright.tiled.atom import CopyAtom

WORD = 32
"""The bits of the shortest store."""


class DsmemStoreAtom(CopyAtom):
    """Its layouts are those of a copy of as many bits by one thread, by which tiled copies partition."""

    def stage_copy(self, src: Tensor, dst: Tensor, *, pred: Any = None, mbar_ptr: Any = None, **options: Any) -> None:
        """``cute.copy`` with this atom: a store for each element, or word of narrow ones."""
        for name, value in {"pred": pred, **options}.items():
            if value is not None:
                raise ConstraintError(f"cute.copy: {StoreAsync().name} takes no {name}")
        if not isinstance(src.engine, Registers):
            raise ConstraintError(f"cute.copy: {StoreAsync().name} stores registers, not {src}")
        for name, pointer in (("the destination", dst.engine), ("mbar_ptr", mbar_ptr)):
            if not isinstance(pointer, Pointer) or pointer.memspace is not AddressSpace.dsmem:
                raise ConstraintError(
                    f"cute.copy: {StoreAsync().name} needs {name} in the shared memory of a block of the cluster, "
                    f"which cute.arch.map_dsmem_ptr gives, not {pointer}"
                )
        count = size(src.linear)
        if count != size(dst.linear) or src.element_type is not dst.element_type:
            raise ConstraintError(f"cute.copy: {src} and {dst} differ in size or type")
        src, dst = (Tensor(x.engine, coalesce(x.linear)) for x in (src, dst))
        if src.element_type.width < WORD:
            src, dst = _words(src, dst)
        for i in range(size(src.linear)):
            number, place = src[i], dst.engine + dst.linear(i)
            Builder.current().call(StoreAsync(), [place.value(), mbar_ptr.value(), src.element_type(number).ir_value()])


def _words(src: Tensor, dst: Tensor) -> tuple[Tensor, Tensor]:
    """Both as words, which hold several narrow elements."""
    width = src.element_type.width
    if max_common_vector(src.linear, dst.linear) * width % WORD:
        raise ConstraintError(
            f"cute.copy: {StoreAsync().name} stores words of {WORD} bits, but the elements of {src} and {dst} are not "
            f"contiguous in steps of {WORD // width}"
        )
    return recast_tensor(src, Uint32), recast_tensor(dst, Uint32)
