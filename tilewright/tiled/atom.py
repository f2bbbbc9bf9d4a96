"""MmaAtom and CopyAtom: an instruction together with the element type it is used with."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.mma import Mma
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.types import ScalarType, scalar_of
from tilewright.lang.device.atomic import not_followed
from tilewright.lang.numbers.numeric import Boolean, Int32, Uint8, Uint16, Uint32, unwrap, wrap
from tilewright.lang.staging.unrolling import register_number
from tilewright.lang.tensors.registers import Registers
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.layout import Layout, recast_layout, size
from tilewright.layout.drawable import Drawable
from tilewright.tiled.static import Static

NO_PLACE = -1
"""An address of tensor memory that there is not."""


class Atom(Static, Drawable):
    """The common part of MMA and copy atoms: equality by content, and the printed form.

    >>> from tilewright import Float16, Float32
    >>> op = cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))
    >>> cute.make_mma_atom(op) == cute.make_mma_atom(op), isinstance(cute.make_mma_atom(op), cute.Atom)
    (True, True)
    >>> print(cute.make_mma_atom(op))
    MMA Atom
      ThrID:           32:1
      Shape MNK:       (16,8,16)
      TV Layout A:     ((4,8),(2,2,2)):((32,1),(16,8,128))
      TV Layout B:     ((4,8),(2,2)):((16,1),(8,64))
      TV Layout C:     ((4,8),(2,2)):((32,1),(16,8))
    """

    op: Any

    def _key(self) -> Any:
        raise NotImplementedError

    def _lines(self) -> list[str]:
        raise NotImplementedError

    def __carry_key__(self) -> Any:
        return self._key()

    def __eq__(self, other: object) -> bool:
        # `other` is of the same class.
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__


class MmaAtom(Atom):
    """A matrix instruction. ``op`` is what it was made from (a face class or the instruction itself).

    >>> from tilewright.atoms.names import mma_by_name
    >>> print(MmaAtom(mma_by_name("SM80_16x8x8_F32F16F16F32_TN")))
    MMA Atom
      ThrID:           32:1
      Shape MNK:       (16,8,8)
      TV Layout A:     ((4,8),(2,2)):((32,1),(16,8))
      TV Layout B:     ((4,8),2):((16,1),8)
      TV Layout C:     ((4,8),(2,2)):((32,1),(16,8))
    """

    __carry_immutable__ = False  # set() changes it

    def __init__(self, op: Any) -> None:
        make = getattr(op, "instruction", None)
        if not callable(make):
            raise ConstraintError(
                f"{op!r} is not an MMA operation: use one of cute.nvgpu (MmaUniversalOp, warp.MmaF16BF16Op...)"
            )
        self.op = op
        self.instruction: Mma = make()
        # In a kernel the field is a value that loops may carry; on the host it is not set yet.
        self._accumulates: Any = True if self.instruction.fields and _in_a_kernel() else None
        # The places of scale factors in tensor memory, as long as they are not set one that is not there.
        self._places: dict[str, Any] = (
            {name: Int32(NO_PLACE) for name in self.instruction.fields[1:]} if _in_a_kernel() else {}
        )
        self._registers: dict[str, Registers] = {}

    # -- fields that change at run time --------------------------------------------------------------------------

    @property
    def accumulates(self) -> Any:
        """The field ``ACCUMULATE``: True, False or a run-time Boolean."""
        return True if self._accumulates is None else self._accumulates

    def set(self, field: Any, value: Any, *, loc: Any = None, ip: Any = None) -> None:
        """Set a field of the atom: ``Field.ACCUMULATE`` tells whether the next gemm adds to its accumulators (True, as
        long as it is not set) or overwrites them; ``value`` is a bool or a run-time Boolean. ``Field.SFA`` and ``SFB``
        are the places of the next gemm's scale factors: the iterator of a tensor of tensor memory.

        Raises ConstraintError for an atom without that field.
        """
        self._need_field(field)
        name = getattr(field, "value", field)
        if name in self.instruction.register_fields:
            self._set_registers(name, field, value)
            return
        if name in self.instruction.fields[1:]:
            if not isinstance(value, TensorMemory):
                raise ConstraintError(
                    f"{self.instruction}: {field} is the iterator of a tensor of tensor memory, not {value!r}"
                )
            self._places[name] = value.toint()
            return
        flag = unwrap(Boolean(value))
        self._accumulates = bool(flag) if isinstance(flag, int) else flag

    def get(self, field: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """The value of a field."""
        self._need_field(field)
        name = getattr(field, "value", field)
        if name in self.instruction.register_fields:
            return self._registers.get(name)
        return self._places.get(name) if name in self.instruction.fields[1:] else self.accumulates

    def places_of_factors(self) -> list[Any]:
        """The operands that name scale factors. ConstraintError where one has not been set."""
        for name, place in self._places.items():
            address = unwrap(place)
            if isinstance(address, int) and address == NO_PLACE:
                field = {"sf_a": "SFA", "sf_b": "SFB"}[name]
                raise ConstraintError(
                    f"{self.instruction}: no scale factors: set(tcgen05.Field.{field}, tensor[None, None, k].iterator) "
                    "before the gemm"
                )
        return [place.ir_value() for place in self._places.values()]

    def _set_registers(self, name: str, field: Any, value: Any) -> None:
        if not isinstance(value, Registers) or value.dtype.width != 8:
            raise ConstraintError(f"{self.instruction}: {field} is the iterator of registers of 8 bits, not {value!r}")
        what = f"{self.instruction}: registers are named by static numbers, but that of {field}"
        self._registers[name] = Registers(value.frag, value.dtype, register_number(value.offset, what))

    def words_of_factors(self) -> list[Any]:
        """Scale factors that are in registers, as the next gemm reads them: a word each. ConstraintError where one has
        not been set."""
        words = []
        for name in self.instruction.register_fields:
            if name not in self._registers:
                field = {"sf_a": "SFA", "sf_b": "SFB"}[name]
                raise ConstraintError(
                    f"{self.instruction}: no scale factors: set(warp.Field.{field}, registers.iterator) before the gemm"
                )
            wide = {1: Uint8, 2: Uint16, 4: Uint32}[getattr(self.instruction, "factors", 0)]
            words.append(Int32(wrap(self._registers[name].recast(wide).load([0], scalar=True))).ir_value())
        return words

    def _need_field(self, field: Any) -> None:
        name = getattr(field, "value", field)
        if name not in (*self.instruction.fields, *self.instruction.register_fields):
            names = ", ".join((*self.instruction.fields, *self.instruction.register_fields)) or "none"
            raise ConstraintError(f"{self.instruction} has no field {field}; its fields are: {names}")

    def __extract_mlir_values__(self) -> list[Any]:
        if self._accumulates is None:
            return []
        return [Boolean(self._accumulates).ir_value(), *(place.ir_value() for place in self._places.values())]

    def __new_from_mlir_values__(self, values: list[Any]) -> Any:
        """An atom of its own, whose fields change without those of the original."""
        made = copy.copy(self)
        made._registers = dict(self._registers)
        if not self.instruction.fields:
            return made if self.instruction.register_fields else self
        made._accumulates = unwrap(wrap(values[0])) if values else True
        names = self.instruction.fields[1:]
        places = map(wrap, values[1:]) if values else [Int32(NO_PLACE)] * len(names)
        made._places = dict(zip(names, places, strict=True))
        return made

    @property
    def thr_id(self) -> Layout:
        return self.instruction.thr_id

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return self.instruction.shape_mnk

    @property
    def tv_layout_A(self) -> Layout:
        return self.instruction.layout_a

    @property
    def tv_layout_B(self) -> Layout:
        return self.instruction.layout_b

    @property
    def tv_layout_C(self) -> Layout:
        return self.instruction.layout_c

    def _key(self) -> Any:
        return self.instruction

    def _lines(self) -> list[str]:
        m, n, k = self.shape_mnk
        return [
            "MMA Atom",
            f"  ThrID:           {self.thr_id}",
            f"  Shape MNK:       ({m},{n},{k})",
            f"  TV Layout A:     {self.tv_layout_A}",
            f"  TV Layout B:     {self.tv_layout_B}",
            f"  TV Layout C:     {self.tv_layout_C}",
        ]


def _in_a_kernel() -> bool:
    return Builder.active() and not hasattr(Builder.current(), "kernels")


class CopyAtom(Atom):
    """A copy instruction for elements of ``value_type``; its layouts count elements.

    >>> from tilewright.atoms.names import copy_by_name
    >>> from tilewright.ir.types import F16
    >>> print(CopyAtom(copy_by_name("SM75_U32x4_LDSM_N"), F16))
    Copy Atom
      ThrID:           32:1
      TV Layout Src:   (32,8):(8,1)
      TV Layout Dst:   (32,(2,4)):(2,(1,64))
      Value type:      f16
    """

    stage_copy: Callable[..., None] | None = None
    """What stages ``cute.copy(atom, src, dst, pred=..., **options)`` for atoms without addresses (TMA)."""

    def __init__(self, op: Any, value_type: Any, num_bits: int = 0) -> None:
        if isinstance(of_trait := getattr(value_type, "value", None), CopyAtom):
            self.__class__ = type(of_trait)  # a trait stands for the atom that it was made of
            self.__dict__.update(of_trait.__dict__)
            return
        scalar = _scalar(value_type)
        make = getattr(op, "copy_instruction", None)
        if make is None:
            raise ConstraintError(
                f"{op!r} is not a copy operation: use one of cute.nvgpu (CopyUniversalOp, cpasync.CopyG2SOp...)"
            )
        self.op = op
        self.value_type = value_type
        self.scalar: ScalarType = scalar
        self.instruction: CopyInstruction = make(scalar, num_bits)
        self.layout_src_tv = self._in_values(self.instruction.src_bits)
        self.layout_dst_tv = self._in_values(self.instruction.dst_bits)
        self.layout_ref_tv = self._in_values(self.instruction.ref_bits)

    def _in_values(self, bits: Layout) -> Layout:
        width = bits_in_memory(self.scalar)
        made: Layout = recast_layout(width, 1, bits)
        if size(bits[1]) < width:
            raise ConstraintError(
                f"{self.instruction} moves {size(bits[1])} bits a thread; values of {self.scalar} do not fit in"
            )
        return made

    @property
    def thr_id(self) -> Layout:
        return self.instruction.thr_id

    @property
    def num_val_src(self) -> int:
        return int(size(self.layout_src_tv[1]))

    @property
    def num_val_dst(self) -> int:
        return int(size(self.layout_dst_tv[1]))

    def _key(self) -> Any:
        return (self.instruction, self.scalar)

    def _lines(self) -> list[str]:
        return [
            "Copy Atom",
            f"  ThrID:           {self.thr_id}",
            f"  TV Layout Src:   {self.layout_src_tv}",
            f"  TV Layout Dst:   {self.layout_dst_tv}",
            f"  Value type:      {self.scalar}",
        ]


def _check_access(order: Any, scope: Any) -> None:
    """ConstraintError for an access that is ordered with those of other threads."""
    if getattr(order, "value", order) not in (None, "weak"):
        raise ConstraintError(
            f"make_copy_atom: memory_order={order} is not here for copies of tensors (memory_scope={scope}): order "
            "single numbers with cute.arch.load and store (sem=, scope=), or copies with cute.arch.fence_acq_rel_gpu"
        )


def bits_in_memory(scalar: ScalarType) -> int:
    """The memory of an element: 4 or 6 bits where several share a byte, else whole bytes."""
    return scalar.width if scalar.packed else 8 * scalar.bytes


def _scalar(value_type: Any) -> ScalarType:
    try:
        return scalar_of(value_type)
    except ConstraintError as error:
        raise ConstraintError(f"a copy atom takes a numeric type such as cute.Float16: {error}") from None


def make_atom(op: Any, value_type: Any = None, *, num_bits_per_copy: int = 0, loc: Any = None, ip: Any = None) -> Atom:
    """The atom of any operation: of a copy when a value type is given.

    >>> from tilewright import Float16, Float32
    >>> cute.make_atom(cute.nvgpu.CopyUniversalOp(), Float16, num_bits_per_copy=128).layout_src_tv
    (1,8):(0,1)
    >>> cute.make_atom(cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))).shape_mnk
    (16, 8, 16)
    """
    if value_type is None:
        return make_mma_atom(op)
    return make_copy_atom(op, value_type, num_bits_per_copy=num_bits_per_copy)


def make_mma_atom(op: Any, *, loc: Any = None, ip: Any = None) -> MmaAtom:
    """The atom of an MMA operation.

    >>> import tilewright as cutlass
    >>> op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    >>> make_mma_atom(op).shape_mnk
    (16, 8, 16)
    """
    return op if isinstance(op, MmaAtom) else MmaAtom(op)


def make_copy_atom(
    op: Any,
    copy_internal_type: Any,
    *,
    num_bits_per_copy: int = 0,
    l1c_evict_priority: Any = None,
    load_cache_mode: Any = None,
    store_cache_mode: Any = None,
    invariant: bool = False,
    memory_order: Any = None,
    memory_scope: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> CopyAtom:
    """The atom of a copy operation for elements of ``copy_internal_type``.

    ``num_bits_per_copy`` is what one instruction of one thread moves; when left out, the universal copy moves one
    element and ``cute.copy`` widens it as far as layouts and alignment allow. Hints about caches
    (``l1c_evict_priority``, the cache modes, ``invariant``) are not followed, as a ``HintWarning`` says; of
    ``memory_order`` only WEAK is here, the order of plain loads and stores.

    >>> import tilewright as cutlass
    >>> make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16, num_bits_per_copy=128).layout_src_tv
    (1,8):(0,1)
    """
    width = bits_in_memory(_scalar(copy_internal_type))
    if num_bits_per_copy % width:
        raise ConstraintError(
            f"num_bits_per_copy={num_bits_per_copy} is not a multiple of the {width} bits of {copy_internal_type}"
        )
    _check_access(memory_order, memory_scope)
    normal = (None, False, "normal", "always")
    hints = (l1c_evict_priority, load_cache_mode, store_cache_mode, invariant or None)
    not_followed("make_copy_atom", *(str(h) for h in hints if getattr(h, "value", h) not in normal))
    special = getattr(op, "copy_atom", None)  # operations whose copies are staged in a way of their own
    if special is not None:
        return special(copy_internal_type, num_bits_per_copy)
    return CopyAtom(op, copy_internal_type, num_bits_per_copy)
