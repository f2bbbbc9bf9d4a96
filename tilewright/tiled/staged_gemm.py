"""``cute.gemm``: all rest modes of an MMA staged as one instruction call."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from tilewright.atoms.mma import Mma
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Value
from tilewright.ir.ops import ELEMENTWISE
from tilewright.lang.numbers.numeric import Int32
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.registers import Registers
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.layout import Layout, make_layout, rank, size
from tilewright.tiled.asynchronous_mma import stage_asynchronous
from tilewright.tiled.atom import MmaAtom
from tilewright.tiled.operands import need_type, register_operand
from tilewright.tiled.staged_copy import basic_copy
from tilewright.tiled.tiled_mma import make_tiled_mma
from tilewright.tiled.vectors import autovec_copy

_OF_NUMBERS = ELEMENTWISE | {"cast"}
FACTORS = {"sf_a", "sf_b"}
"""The fields of scale factors."""


def gemm(
    atom: MmaAtom,
    d: Tensor,
    a: Tensor | Sequence[Tensor],
    b: Tensor | Sequence[Tensor],
    c: Tensor,
    *,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``d = a * b + c`` with the instruction of ``atom``.

    Shapes: (V) x (V) -> (V); (V,M) x (V,N) -> (V,M,N); (V,M,K) x (V,N,K) -> (V,M,N); and for instructions with one
    value also (M) x (N) -> (M,N) and (M,K) x (N,K) -> (M,N). V are the values of one thread for one instruction; M, N
    and K repeat it.

    Args:
        atom: the instruction: of ``make_mma_atom``, or a tiled MMA. Of wgmma and tcgen05 its field ``ACCUMULATE`` says
            whether ``c`` is added.
        d: (V,M,N), the accumulators, in registers (tcgen05: tensor memory).
        a: (V,M,K), in registers or shared memory, from which it is copied to registers first. For wgmma and tcgen05 an
            operand in shared memory is a tensor of descriptors (``make_fragment_A``). For sparse instructions a pair:
            the stored elements, and their metadata (1,M,K / 64) in registers of Int32. With block scales ``a`` and
            ``b`` may be pairs: the operand and its factors, (V,M,K) in registers (sm_120) or in tensor memory.
        b: (V,N,K), as ``a``.
        c: (V,M,N), what is added; may be ``d``.

    Raises:
        ConstraintError: shapes, element types or register layouts do not fit the instruction.

    >>> from tilewright import Float32
    >>> def dot(t, p):
    ...     mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(Float32))  # one thread, one product at a time
    ...     a, b = cute.make_tensor(p, (1, 1, 4)), cute.make_tensor(p + 4, (1, 1, 4))  # (MMA, MMA_M or MMA_N, MMA_K)
    ...     fragment_a, fragment_b = cute.make_fragment_like(a), cute.make_fragment_like(b)
    ...     cute.autovec_copy(a, fragment_a)
    ...     cute.autovec_copy(b, fragment_b)
    ...     acc = cute.make_rmem_tensor((1, 1, 1), Float32)  # (MMA, MMA_M, MMA_N)
    ...     acc.fill(0.0)
    ...     for k in range(4):
    ...         cute.gemm(mma, acc, fragment_a[None, None, k], fragment_b[None, None, k], acc)
    ...     return acc[0]
    >>> per_thread(dot, 1, memory=[1, 2, 3, 4, 10, 20, 30, 40], dtype=Float32)[0]
    [300.0]
    """
    if not isinstance(atom, MmaAtom):
        raise ConstraintError(f"cute.gemm takes an MMA atom first, not {atom!r}: make one with cute.make_tiled_mma")
    instruction = atom.instruction
    if FACTORS & {*instruction.fields, *instruction.register_fields} and isinstance(a, (tuple, list)):
        return _with_factors(atom, d, a, b, c)
    stored, metadata = _operand_and_metadata(instruction, a)
    d, a, b, c = (_ranked(instruction, role, x, d) for role, x in zip("DABC", (d, stored, b, c), strict=True))
    if instruction.descriptor_format is not None:
        need_type(instruction, "D", d, instruction.type_d)
        _copy_accumulators(instruction, c, d)
        return stage_asynchronous(atom, d, a, b, metadata)
    a, b = _from_shared(atom, "A", a), _from_shared(atom, "B", b)
    for role, x, required in (
        ("D", d, instruction.type_d),
        ("A", a, instruction.stored_type("A")),
        ("B", b, instruction.stored_type("B")),
    ):
        need_type(instruction, role, x, required)
    _copy_accumulators(instruction, c, d)
    operands = {
        "d": register_operand(instruction, "D", d),
        "a": register_operand(instruction, "A", a),
        "b": register_operand(instruction, "B", b),
    }
    attrs: dict[str, Any] = {}
    if metadata is not None:
        operands["e"] = register_operand(instruction, "E", metadata)
    for name, (_, layout, offset) in operands.items():
        attrs[f"{name}_layout"], attrs[f"{name}_offset"] = layout, offset
    fragments = [frag for frag, _, _ in operands.values()]
    Builder.current().call(instruction, [*fragments, *atom.words_of_factors()], **attrs)
    return None


def _with_factors(atom: MmaAtom, d: Tensor, of_rows: Any, of_columns: Any, c: Tensor) -> None:
    """One gemm for each instruction, the fields of the factors set before each."""
    instruction = atom.instruction
    pairs = (of_rows, of_columns)
    if not all(isinstance(x, (tuple, list)) and len(x) == 2 for x in pairs):
        raise ConstraintError(f"{instruction}: A and B are pairs, [operand, its scale factors], both or neither")
    (a, of_a), (b, of_b) = (
        [_ranked(instruction, role, x, d) for x in pair] for role, pair in zip("AB", pairs, strict=True)
    )
    d, c = _ranked(instruction, "D", d, d), _ranked(instruction, "C", c, d)
    _copy_accumulators(instruction, c, d)
    extents = [size(x.linear[i]) for x, i in ((a, 1), (b, 1), (a, 2))]
    for x, required in ((of_a, [extents[0], extents[2]]), (of_b, [extents[1], extents[2]])):
        if [size(x.linear[i]) for i in (1, 2)] != required:
            raise ConstraintError(
                f"{instruction}: factors {x.linear} for operands (V,M,K) {a.linear} and (V,N,K) {b.linear}: they have "
                "the modes of their operand"
            )
    once = copy.copy(atom)
    once._registers, once._places = dict(atom._registers), dict(atom._places)
    # From registers an instruction at a time; in tensor memory the factors of all of M and N follow each other.
    whole = not instruction.register_fields
    for k in range(extents[2]):
        for m in range(1 if whole else extents[0]):
            for n in range(1 if whole else extents[1]):
                rows, columns = (None, None) if whole else (m, n)  # type: tuple[Any, Any]
                once.set("sf_a", _at(of_a, m, k))
                once.set("sf_b", _at(of_b, n, k))
                part: Any = d[None, rows, columns]
                gemm(once, part, a[None, rows, k], b[None, columns, k], part)
        if whole:
            once._accumulates = True


def _at(factors: Any, row: int, k: int) -> Any:
    """Where the factors of an instruction begin."""
    return factors[None, row, k].iterator


def mma_atom_call(
    atom: MmaAtom, d: Tensor, a: Tensor, b: Tensor, c: Tensor, *, loc: Any = None, ip: Any = None
) -> None:
    """One instruction: the tensors have exactly the values of one thread, mode (V).

    >>> from tilewright import Float32
    >>> def multiply_add(t):
    ...     atom = cute.make_mma_atom(cute.nvgpu.MmaUniversalOp(Float32))
    ...     a, b, c = (cute.make_rmem_tensor(1, Float32) for _ in range(3))
    ...     a[0], b[0], c[0] = Float32(t), 10.0, 1.0
    ...     cute.mma_atom_call(atom, c, a, b, c)
    ...     return c[0]
    >>> per_thread(multiply_add, 4, dtype=Float32)
    [1.0, 11.0, 21.0, 31.0]
    """
    for x in (d, a, b, c):
        if any(size(x.linear[i]) != 1 for i in range(1, rank(x.linear))):
            raise ConstraintError(f"{atom.instruction}: one call takes tensors (V), not {x.linear}: use cute.gemm")
    gemm(atom, d, a, b, c)


def _operand_and_metadata(instruction: Mma, a: Any) -> tuple[Any, Tensor | None]:
    """A, and its metadata where the instruction reads some."""
    pair = isinstance(a, tuple | list)
    if instruction.sparsity == 1:
        if pair:
            raise ConstraintError(f"{instruction}: A is one tensor, not {len(a)}: its elements are all stored")
        return a, None
    if not pair or len(a) != 2 or not all(isinstance(x, Tensor) for x in a):
        raise ConstraintError(
            f"{instruction}: A is a pair, (stored elements, metadata): a tensor as make_fragment_A gives it, and "
            f"registers of Int32 (1,M,K / 64); not {a!r}"
        )
    return a[0], a[1]


def _copy_accumulators(instruction: Mma, c: Tensor, d: Tensor) -> None:
    """C into D, unless they are the same registers, or the same place in tensor memory."""
    if instruction.in_tensor_memory("C"):
        if not _same_tensor_memory(c, d):
            raise ConstraintError(f"{instruction}: C must be D, which is in tensor memory, not {c}")
    elif not _same_registers(c, d):
        if [size(mode) for mode in c.linear] != [size(mode) for mode in d.linear]:
            raise ConstraintError(f"{instruction}: C {c.linear} and D {d.linear} differ in shape: both are (V,M,N)")
        basic_copy(c, d)


def _ranked(instruction: Mma, role: str, x: Tensor, d: Tensor) -> Tensor:
    """``x`` as (V, M, N), (V, M, K) or (V, N, K)."""
    if not isinstance(x, Tensor) or not isinstance(x.linear, Layout):
        raise ConstraintError(f"{instruction}: {role} must be a tensor with a plain layout, not {x!r}")
    one = Layout(1, 0)
    modes = list(x.linear) if isinstance(x.linear.shape, tuple) else [x.linear]
    if rank(d.linear) == 2 and size(instruction.layout_c[1]) == 1:
        modes = [one, *modes]  # (M,N), (M) or (M,K): the instruction has one value
    modes = [*modes, *[one] * (3 - len(modes))]
    if len(modes) != 3:
        raise ConstraintError(
            f"{instruction}: {role} {x.linear} has {len(modes)} modes; gemm takes (V,M,N) = (V,M,K) x (V,N,K): "
            "slice the stage and the K block first"
        )
    return x.with_layout(make_layout(*modes))


def _from_shared(atom: MmaAtom, role: str, x: Tensor) -> Tensor:
    if isinstance(x.engine, Registers):
        return x
    if x.memspace is not AddressSpace.smem:
        raise ConstraintError(
            f"{atom.instruction}: {role} must be in registers (or shared memory), not in {x.memspace}: copy the part "
            f"of the thread (partition_{role}) to a fragment (make_fragment_{role}) first"
        )
    tiled = atom if hasattr(atom, "make_fragment_A") else make_tiled_mma(atom)
    fragment: Tensor = getattr(tiled, f"make_fragment_{role}")(x)
    autovec_copy(x, fragment)
    return fragment


def _same_tensor_memory(c: Tensor, d: Tensor) -> bool:
    one, other = c.engine, d.engine
    if not isinstance(one, TensorMemory) or not isinstance(other, TensorMemory):
        return c is d
    if one.offset != other.offset or c.linear != d.linear:
        return False
    return one.address is other.address or _computed_alike(*(Int32(x.address).ir_value() for x in (one, other)))


def _computed_alike(a: Value, b: Value) -> bool:
    """Whether two numbers are the same because the same operations give them, as of a slice that is written twice."""
    if a is b:
        return True
    if isinstance(a, Constant) and isinstance(b, Constant):
        return a.type == b.type and a.value == b.value
    one, other = a.op, b.op
    if one is None or other is None or one.opcode not in _OF_NUMBERS or one.opcode != other.opcode or a.type != b.type:
        return False
    alike = one.attrs == other.attrs and len(one.operands) == len(other.operands)
    return alike and all(_computed_alike(x, y) for x, y in zip(one.operands, other.operands, strict=True))


def _same_registers(c: Tensor, d: Tensor) -> bool:
    """Whether it is known while staging; a run-time offset is refused for D afterwards."""
    one, other = c.engine, d.engine
    if not isinstance(one, Registers) or not isinstance(other, Registers) or one.frag is not other.frag:
        return False
    is_static = isinstance(one.offset, int) and isinstance(other.offset, int)
    return is_static and one.offset == other.offset and c.linear == d.linear
