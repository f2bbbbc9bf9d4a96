"""wgmma and tcgen05.mma in the language: descriptors of partitioned shared-memory tensors, tensors of tensor memory,
and ``cute.gemm`` on them."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.matrix_descriptor import ABSOLUTE, ADDRESS_BITS, TCGEN05, descriptor_layout, matrix_descriptor
from tilewright.atoms.mma import Mma
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.lang.device.warps import make_warp_uniform
from tilewright.lang.numbers.numeric import Boolean, Int32, class_of
from tilewright.lang.tensors.descriptors import Descriptors
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.layout import Layout, is_static, rank, size
from tilewright.tiled.atom import MmaAtom
from tilewright.tiled.operands import need_type, register_operand


def make_descriptors(atom: MmaAtom, which: str, partition: Any) -> Tensor:
    """The descriptors (1, RestMN, RestK, ...) of operand ``which`` for a partition (V, RestMN, RestK, ...) in shared
    memory. They are made once; stages and K blocks add to them.

    Raises ConstraintError when the layout of one instruction's tile is not a canonical layout of the instruction.
    """
    instruction = atom.instruction
    format_ = instruction.descriptor_format
    assert format_ is not None
    if instruction.rows_go_on:
        raise ConstraintError(
            f"{instruction}: the rows of one MMA may go on in another buffer, which a fragment cannot say: make the "
            "descriptors of each MMA by tcgen05.make_umma_smem_desc with next_src, and call cute.mma_atom_call"
        )
    pointer = getattr(partition, "engine", None)
    if not isinstance(pointer, Pointer) or pointer.memspace is not AddressSpace.smem:
        raise ConstraintError(
            f"{instruction}: reads {which} from shared memory, so make_fragment_{which} takes the partition of a "
            f"shared-memory tensor, not {partition}"
        )
    type_, numbers = instruction.stored_type(which), instruction.type_a if which == "A" else instruction.type_b
    if type_ != numbers and partition.element_type.ir_type == numbers:
        raise ConstraintError(
            f"{instruction}: 16 numbers of {which} take 16 bytes of shared memory, but {partition} holds them without "
            f"gaps: allocate it for {class_of(type_)}, with the layout of make_smem_layout_{which.lower()}"
        )
    need_type(instruction, which, partition, type_)
    layout = partition.linear
    if not isinstance(layout, Layout) or not is_static(layout):
        raise ConstraintError(f"make_fragment_{which}: a shared-memory tensor has a static layout, not {layout}")
    values = instruction.layout_a[1] if which == "A" else instruction.layout_b[1]
    if rank(layout) < 3 or size(layout[0]) != size(values) or rank(layout[0]) != 2:
        raise ConstraintError(
            f"make_fragment_{which} takes a partition (V,Rest,Rest) with {values.shape} values in V, not {layout}: "
            f"partition the tensor first (partition_{which})"
        )
    whole = (size(layout[0][0]) * size(layout[1]), size(layout[0][1]) * size(layout[2]))
    major = instruction.major_of(which)
    pieces = 2 * instruction.sparsity if which == "B" else 2
    descriptor = matrix_descriptor(layout[0], pointer.swizzle, major, type_, whole=whole, format=format_, pieces=pieces)
    _check_alignment(instruction, which, pointer)
    address: Any = Int32(_unswizzled(pointer).toint())
    low = (address & ADDRESS_BITS) >> 4 | descriptor.low
    if not _is_static_place(pointer):
        low = make_warp_uniform(low)  # it is, for threads of a warpgroup share their tile; now the compiler knows
    value = low.ir_value()
    value.hint = value.hint or f"descriptor_{which.lower()}"
    return Tensor(Descriptors(low, descriptor.high, pointer.dtype), descriptor_layout(layout, type_))


def _unswizzled(pointer: Pointer) -> Pointer:
    """The place that the offsets name before the swizzle: where the descriptor of a swizzled tile points to."""
    base, offset = pointer.unswizzled()
    return base + offset


def _check_alignment(instruction: Mma, which: str, pointer: Pointer) -> None:
    """The swizzle permutes address bits, so its pattern must start at a multiple of its span."""
    swizzle = pointer.swizzle
    span = swizzle.span if swizzle is not None and swizzle.bits else 16
    plain = _unswizzled(pointer)
    if pointer.base_align % span or plain.alignment % 16:
        raise ConstraintError(
            f"{instruction}: {which} must start at a multiple of {span if pointer.base_align % span else 16} bytes for "
            f"its swizzle, but {pointer} is aligned to {min(pointer.base_align, plain.alignment)}: allocate it with "
            f"byte_alignment={max(span, 128)}"
        )


def _is_static_place(pointer: Pointer) -> bool:
    """Whether the address is the same for all threads because it is known while staging."""
    if not isinstance(pointer.pending, int):
        return False
    base: Any = pointer.base
    while isinstance(base, Value) and base.op is not None and base.op.opcode == "ptr.cast":
        base = base.op.operands[0]
    return isinstance(base, Value) and base.op is not None and base.op.opcode == "smem.alloc"


def stage_asynchronous(atom: MmaAtom, d: Tensor, a: Tensor, b: Tensor, metadata: Tensor | None = None) -> None:
    """The one call of a gemm: D in registers or tensor memory, B as a tensor of descriptors, A as either; ``metadata``
    of a sparse A in registers."""
    instruction = atom.instruction
    attrs: dict[str, Any] = {}
    operands = []
    for name, role, x in (("d", "C", d), ("a", "A", a), ("b", "B", b)):
        if instruction.reads_shared(role):
            value, attrs[f"{name}_layout"], attrs[f"{name}_high"] = _descriptor_operand(instruction, role, x)
        elif instruction.in_tensor_memory(role):
            value, attrs[f"{name}_layout"] = _tensor_memory_operand(instruction, role, x)
        else:
            value, attrs[f"{name}_layout"], attrs[f"{name}_offset"] = register_operand(instruction, name.upper(), x)
        operands.append(value)
    operands += [Boolean(atom.accumulates).ir_value(), *atom.places_of_factors()]
    if metadata is not None:
        value, attrs["e_layout"], attrs["e_offset"] = register_operand(instruction, "E", metadata)
        operands.append(value)
    Builder.current().call(instruction, operands, **attrs)


def _tensor_memory_operand(instruction: Mma, role: str, x: Tensor) -> tuple[Value, Layout]:
    memory, what = x.engine, "D" if role == "C" else role
    if not isinstance(memory, TensorMemory):
        raise ConstraintError(
            f"{instruction}: {what} is in tensor memory, not {x}: make_tensor of the pointer that retrieve_tmem_ptr "
            f"gives, with the layout of make_fragment_{role}"
        )
    if not is_static(x.linear):
        raise ConstraintError(f"{instruction}: the layout of {what} {x.linear} must be static: slice the stage")
    return memory.value(), x.linear


def _descriptor_operand(instruction: Mma, role: str, x: Tensor) -> tuple[Value, Layout, int]:
    iterator = x.engine
    if not isinstance(iterator, Descriptors):
        raise ConstraintError(
            f"{instruction}: {role} is read from shared memory through descriptors, not from {x}: pass a slice of "
            f"make_fragment_{role}(partition_{role}(...)) of the shared-memory tensor"
        )
    if not is_static(x.linear):
        raise ConstraintError(f"{instruction}: the rest modes of {role} {x.linear} must be static: slice the stage")
    if iterator.tile is not None:
        _check_single(instruction, role, iterator)
    return Int32(iterator.low + iterator.offset).ir_value(), x.linear, iterator.high


def _check_single(instruction: Mma, role: str, descriptor: Descriptors) -> None:
    """A descriptor of ``make_umma_smem_desc``, which did not know the instruction, names such a tile as it reads."""
    assert descriptor.tile is not None
    (major, rows), (m, n, _) = descriptor.tile, instruction.shape_mnk
    required = instruction.major_of(role), (m if role == "A" else n) // instruction.ctas
    if (major, rows) != required:
        raise ConstraintError(
            f"{instruction}: {role} is {required[0]}-major and a block has {required[1]} rows of it, but the "
            f"descriptor names a {major}-major tile of {rows}"
        )
    dtype, stored = descriptor.dtype.ir_type, instruction.stored_type(role)
    if dtype != stored and not (stored.width < dtype.width == 8):  # bytes hold two numbers of 4 bits
        raise ConstraintError(f"{instruction}: {role} is of {stored}, but the descriptor names a buffer of {dtype}")
    format_ = instruction.descriptor_format
    goes_on = bool(descriptor.high & ABSOLUTE)
    if format_ is not TCGEN05 or goes_on != instruction.rows_go_on:
        raise ConstraintError(
            f"{instruction}: its descriptors {'name' if instruction.rows_go_on else 'do not name'} the buffer where "
            f"rows go on: make_umma_smem_desc of tcgen05 with{'' if instruction.rows_go_on else 'out'} next_src"
        )
