"""The two sides of a copy: registers with static numbers, and memory with one pointer for each repetition."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.tensor_memory_move import TmemMove
from tilewright.errors import HOW_STATIC, ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import F32, TF32, PtrType, ScalarType
from tilewright.lang.staging.unrolling import register_number
from tilewright.lang.tensors.access import places
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.registers import Registers
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.layout import Layout, is_static, size
from tilewright.layout.evaluate import static_offsets
from tilewright.tiled.contiguity import check_aligned, check_contiguous


def in_registers(tensor: Tensor) -> bool:
    return isinstance(tensor.engine, Registers)


def register_numbers(atom: Any, tensor: Tensor, values: Layout, rest: Layout) -> tuple[tuple[int, ...], ...]:
    """For each repetition the elements of the fragment, in the order of the instruction's values."""
    registers = tensor.engine
    base = register_number(registers.offset, f"{atom}: registers are named by static numbers, but {tensor}")
    if not is_static(values) or not is_static(rest):
        raise ConstraintError(
            f"{atom}: registers are named by static numbers, but the layout of {tensor} is not known: {HOW_STATIC}"
        )
    inside, steps = static_offsets(values), static_offsets(rest)
    numbers = tuple(tuple(base + step + v for v in inside) for step in steps)
    return numbers if not registers.is_recast else tuple(_own_elements(atom, registers, n) for n in numbers)


def _own_elements(atom: Any, registers: Registers, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Elements of a recast view as elements of the fragment itself."""
    own, seen = registers.elem.width, registers.dtype.width
    if own == seen:
        return numbers
    if own < seen:
        ratio = seen // own
        return tuple(n * ratio + i for n in numbers for i in range(ratio))
    ratio = own // seen
    firsts = numbers[::ratio]
    if numbers != tuple(f + i for f in firsts for i in range(ratio)) or any(f % ratio for f in firsts):
        raise ConstraintError(f"{atom}: the recast registers {list(numbers)} are not whole elements of the fragment")
    return tuple(f // ratio for f in firsts)


def memory_pointers(atom: CopyInstruction, side: str, tensor: Tensor, values: Layout, rest: Layout) -> list[Value]:
    """One pointer for each repetition, after checking that a thread's values are side by side."""
    pointer = tensor.engine
    if isinstance(pointer, TensorMemory):
        return _tensor_memory(atom, side, tensor, values, rest)
    if not isinstance(pointer, Pointer):
        raise ConstraintError(f"{atom}: the {side} {tensor} is neither memory nor registers")
    check_contiguous(atom, side, tensor, values)
    pointers = [(pointer + dynamic).value(static) for dynamic, static in places(rest, int(size(rest)))]
    check_aligned(atom, side, tensor, values, pointers)
    return pointers


def _tensor_memory(atom: CopyInstruction, side: str, tensor: Tensor, values: Layout, rest: Layout) -> list[Value]:
    """One address for each repetition, after checking that the values are where the instruction finds them."""
    if not isinstance(atom, TmemMove):
        raise ConstraintError(f"{atom}: the {side} {tensor} is tensor memory: copy it with tcgen05.make_tmem_copy")
    required = atom.memory_offsets(tensor.element_type.width)
    if static_offsets(values) != required:
        raise ConstraintError(
            f"{atom}: the values {values} of the {side} {tensor} are not where the instruction finds them: partition "
            "the tensor of tensor memory with make_tmem_copy(atom, tensor)"
        )
    return [(tensor.engine + dynamic).value(static) for dynamic, static in places(rest, int(size(rest)))]


def as_elements(pointer: Value, fragment: Value) -> Value:
    """``pointer`` as one to the fragment's element type, where registers are seen recast."""
    if not isinstance(pointer.type, PtrType):
        return pointer  # an address of tensor memory
    kind, elem = pointer.type, fragment.type.elem  # type: ignore[attr-defined]  # of a fragment
    if kind.elem == elem or kind.elem.width == elem.width:
        return pointer
    return Builder.current().ptr_cast(pointer, PtrType(elem, kind.space, kind.align))


def check_types(atom: Any, src: Tensor, dst: Tensor, expected: ScalarType | None = None) -> None:
    """Copies move bits: both element types must be one, or be views of one width (integers, f32 and tf32)."""
    a, b = src.element_type.ir_type, dst.element_type.ir_type
    loose = a.width == b.width and (a.is_integer or b.is_integer or {a, b} == {F32, TF32})
    if a != b and not loose:
        raise ConstraintError(
            f"{atom}: copies {a} to {b} without converting: load(), .to({dst.element_type}) and store() first"
        )
    if expected is not None and expected.width != a.width:
        raise ConstraintError(
            f"{atom}: was made for elements of {expected}, but the tensors hold {a}: make the copy atom for "
            f"{src.element_type}"
        )
