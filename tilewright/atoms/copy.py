"""The common part of copy instructions: bit layouts, the operands of a call, and the checks that every copy needs.

A call stands for ``R`` repetitions of one instruction. Between registers and memory its operands are
``[fragment, pointer * R, predicate * R?]`` and its attribute ``registers`` gives, for each repetition, the fragment
elements in the order of the instruction's values; ``store`` tells the direction. Between memories they are
``[source * R, destination * R, predicate * R?]`` with attribute ``count = R``. ``predicated`` tells whether there are
predicates. Between registers they are ``[destination, source]`` with attributes ``registers`` and
``source_registers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed
from tilewright.ir.core import Op, Value
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Instruction, Lanes
from tilewright.ir.types import FragType, MemSpace, PtrType, ScalarType
from tilewright.layout import Layout

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

ITEMS = {2: "u2", 4: "u4", 8: "u8", 16: "c16"}  # NumPy types by the bytes that they copy at once
VECTOR_TYPES = {8: "uint8_t", 16: "uint16_t", 32: "uint32_t", 64: "uint2", 128: "uint4", 256: "tw::u64x4"}


ANY_SPACE = (MemSpace.GMEM, MemSpace.SMEM, MemSpace.DSMEM, MemSpace.GENERIC, MemSpace.RMEM)
REGISTERS = (MemSpace.RMEM,)


class CopyInstruction(Instruction):
    """A copy instruction: ``src_bits``, ``dst_bits`` and ``ref_bits`` map (thread, bit) of either side to a bit.

    Its ``accesses`` are two, the source's and the destination's. ``widths`` are the bits that instructions of this kind
    can move for one thread where that is a parameter; ``splits`` says that a mode of several times its values stands
    for that many copies; ``exchanges`` that a lane's destination holds parts of other lanes' sources; ``auto`` that
    ``cute.copy`` chooses the width.
    """

    thr_id: Layout
    src_bits: Layout
    dst_bits: Layout
    ref_bits: Layout
    widths: ClassVar[tuple[int, ...]] = ()
    splits: ClassVar[bool] = False
    copies: ClassVar[bool] = True
    exchanges: ClassVar[bool] = False
    auto: bool = False

    @property
    def source(self) -> Access:
        return self.accesses[0]

    @property
    def destination(self) -> Access:
        return self.accesses[1]

    @property
    def direction(self) -> str:
        """Where it copies from and to, in words: "shared memory to registers"."""
        words = f"{_in_words(self.source)} to {_in_words(self.destination)}"
        return words.replace("global memory to shared", "global to shared")

    def least_bits(self, element_bits: int) -> float:
        """The fewest bits that an instruction of this kind moves for one thread; infinite where it has one width."""
        return max(element_bits, min(self.widths)) if self.widths else float("inf")

    def contiguity_hint(self) -> str:
        """The other instructions to try where values that it takes as neighbours are not side by side."""
        return ""

    def accessed(self, op: Op) -> list[tuple[Value, Access]]:
        if "source_registers" in op.attrs:
            return [(op.operands[1], self.source), (op.operands[0], self.destination)]
        first, pointers, _ = split_operands(op, op.operands)
        sides = (first, pointers) if "registers" not in op.attrs or op.attrs["store"] else (pointers, first)
        return [(value, access) for side, access in zip(sides, self.accesses, strict=True) for value in side]

    @property
    def cute_name(self) -> str:
        """The name of this atom in CuTe C++."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.cute_name

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> CopyInstruction:
        """This instruction; ``num_bits``, when given, must be what it moves for one thread."""
        return self

    def count(self, op: Op) -> int:
        return repetitions(op)


def _in_words(access: Access) -> str:
    if access.registers:
        return "registers"
    names = {MemSpace.SMEM: "shared memory", MemSpace.TMEM: "tensor memory"}
    return names.get(access.memories[0], "global memory") if len(access.memories) == 1 else "global memory"


class OneThreadCopy(CopyInstruction):
    """A copy of ``bits`` contiguous bits, by each thread for itself."""

    bits: int

    thr_id = Layout(1, 0)

    @computed
    def src_bits(self) -> Layout:
        return Layout((1, self.bits), (0, 1))

    @computed
    def dst_bits(self) -> Layout:
        return self.src_bits

    @computed
    def ref_bits(self) -> Layout:
        return self.src_bits


def repetitions(op: Op) -> int:
    """How many instructions one call stands for."""
    return len(op.attrs["registers"]) if "registers" in op.attrs else int(op.attrs["count"])


def split_operands(op: Op, operands: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """(sources or fragment, pointers, predicates); predicates are None for a copy without them."""
    r = repetitions(op)
    first = 1 if "registers" in op.attrs else r
    if len(operands) != first + r * (2 if op.attrs.get("predicated") else 1):
        raise ConstraintError(f"{op.attrs['atom']}: {len(operands)} operands for {r} repetitions")
    predicates = operands[first + r :] if op.attrs.get("predicated") else [None] * r
    return operands[:first], operands[first : first + r], predicates


def check_pointer(atom: CopyInstruction, access: Access, value: Value, fix: str) -> PtrType:
    """The pointer type of ``value``, in a memory that ``access`` allows and known to be aligned as it asks."""
    kind = value.type
    what = f"the {access.role}"
    if not isinstance(kind, PtrType):
        raise ConstraintError(f"{atom}: {what} must be in memory, not {kind}")
    if kind.space not in access.memories:
        names = " or ".join(s.value for s in access.memories)
        raise ConstraintError(f"{atom}: {what} must be in {names}, but the tensor is in {kind.space.value}")
    if kind.align < access.align:
        raise ConstraintError(
            f"{atom}: {what} must be {access.align}-byte aligned, but its address is only known to be a multiple of "
            f"{kind.align} bytes: {fix}"
        )
    return kind


def check_fragment(atom: CopyInstruction, op: Op, bits: int) -> FragType:
    """The fragment type of operand 0; every repetition must name ``bits`` worth of its elements."""
    kind = op.operands[0].type
    if not isinstance(kind, FragType):
        raise ConstraintError(f"{atom}: one side must be registers, not {kind}")
    count = bits // (8 * kind.elem.bytes)
    for registers in op.attrs["registers"]:
        if len(registers) != count:
            raise ConstraintError(
                f"{atom}: moves {count} x {kind.elem} for one thread, but {len(registers)} registers are given"
            )
        if not all(0 <= r < kind.n for r in registers):
            raise ConstraintError(f"{atom}: registers {list(registers)} reach outside a fragment of {kind.n}")
    return kind


def check_width(atom: CopyInstruction, a: ScalarType, b: ScalarType) -> None:
    if a.bytes != b.bytes:
        raise ConstraintError(
            f"{atom}: moves bits, so both sides need one element width, not {a} and {b}: convert with .to() first"
        )


def combine(lanes: Lanes, predicate: Any) -> Array | None:
    """The lanes' own mask and a predicate, as one mask (None: all lanes)."""
    if predicate is None or (not predicate.ndim and predicate):  # one that holds in all lanes
        return lanes.mask
    chosen = lanes.spread(predicate).astype(bool, copy=False)
    return chosen if lanes.mask is None else chosen & lanes.mask


@lru_cache(maxsize=4096)
def as_index(registers: tuple[int, ...]) -> Any:
    """The registers as a slice when they are side by side (a view, no gather), else as a list."""
    first = registers[0]
    if registers == tuple(range(first, first + len(registers))):
        return slice(first, first + len(registers))
    return list(registers)


def write_registers(fragment: Array, registers: tuple[int, ...], values: Array, mask: Array | None) -> None:
    """Write ``values [L, n]`` (same width, maybe another type) to registers of the active lanes."""
    where = as_index(registers)
    values = values if values.dtype == fragment.dtype else values.view(fragment.dtype)
    if isinstance(where, slice):
        width = _common_width(fragment, where, values)
        if width > fragment.itemsize:
            per = width // fragment.itemsize
            fragment, values = fragment.view(ITEMS[width]), values.view(ITEMS[width])
            where = slice(where.start // per, where.stop // per)
        if mask is None:
            fragment[:, where] = values
        else:
            fragment[mask, where] = values[mask]
    elif mask is None:
        fragment[:, where] = values
    else:
        fragment[mask.nonzero()[0][:, None], where] = values[mask]


def read_registers(fragment: Array, registers: tuple[int, ...]) -> Array:
    """A copy ``[L, n]`` of registers."""
    where = as_index(registers)
    if not isinstance(where, slice):
        return fragment[:, where]
    width = _common_width(fragment, where, fragment)
    if width == fragment.itemsize:
        return fragment[:, where].copy()
    per = width // fragment.itemsize
    items = fragment.view(ITEMS[width])[:, where.start // per : where.stop // per].copy()
    return items.view(fragment.dtype)


def move_each(
    lanes: Lanes,
    fragment: Array,
    registers: Sequence[tuple[int, ...]],
    pointers: Sequence[Any],
    masks: Sequence[Array | None],
    store: bool,
) -> None:
    """What :meth:`Lanes.move` means: one load or store after the other."""
    for chosen, pointer, mask in zip(registers, pointers, masks, strict=True):
        if store:
            lanes.store(pointer, read_registers(fragment, chosen), mask)
        else:
            write_registers(fragment, chosen, lanes.load(pointer, len(chosen), mask), mask)


def _common_width(fragment: Array, where: slice, values: Array) -> int:
    """The widest items that the registers ``where`` of every lane, and ``values``, are made of: copying rows of few
    small items costs several times what copying rows of one large item does."""
    size = fragment.itemsize
    if values.strides[-1] != size or fragment.strides[-1] != size:
        return size
    common = (where.start | where.stop | fragment.shape[1] | values.shape[1]) * size | 16
    return max(size, common & -common)


def is_vector(registers: tuple[int, ...]) -> bool:
    """Whether the registers are side by side and start at a multiple of their number: one wide C++ access."""
    return isinstance(as_index(registers), slice) and registers[0] % len(registers) == 0
