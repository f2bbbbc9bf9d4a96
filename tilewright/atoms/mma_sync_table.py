"""Every mma.sync atom by CuTe's name, generated from the rows of the PTX ISA's table of shapes and types."""

from __future__ import annotations

from itertools import product

from tilewright.atoms.gauss_complex import GaussComplexMma
from tilewright.atoms.mma_sync import MmaSync, Shape3
from tilewright.atoms.mma_sync_sparse import SparseMmaSync
from tilewright.atoms.value_types import B1, C64, GC64, shown
from tilewright.errors import ConstraintError
from tilewright.ir.types import BF16, E4M3, E5M2, F16, F32, F64, I4, I8, I32, TF32, U4, U8, ScalarType


def _floats() -> list[MmaSync]:
    half = [MmaSync(70, (8, 8, 4), d, F16, F16, majors) for d in (F16, F32) for majors in ("TN", "NT", "NN", "TT")]
    half += [MmaSync(75, (16, 8, 8), d, F16, F16) for d in (F16, F32)]
    half += [MmaSync(80, (16, 8, k), d, F16, F16) for k in (8, 16) for d in (F16, F32)]
    rest = [MmaSync(80, (16, 8, k), F32, BF16, BF16) for k in (8, 16)]
    rest += [MmaSync(80, (16, 8, k), F32, TF32, TF32) for k in (4, 8)]
    rest += [MmaSync(89, (16, 8, 32), d, a, b) for d in (F16, F32) for a, b in product((E4M3, E5M2), repeat=2)]
    rest += [GaussComplexMma(80, (8, 8, 4), GC64, C64, C64)]
    for type_ in (F64, C64):
        rest += [MmaSync(80, (8, 8, 4), type_, type_, type_)]
        rest += [MmaSync(90, (16, 8, k), type_, type_, type_) for k in (4, 8, 16)]
    return half + rest


def _integers() -> list[MmaSync]:
    rows = [MmaSync(75, (8, 8, 16), I32, I8, I8)]
    bytes_: list[Shape3] = [(8, 8, 16), (16, 8, 16), (16, 8, 32)]
    nibbles: list[Shape3] = [(8, 8, 32), (16, 8, 32), (16, 8, 64)]
    families: list[tuple[list[Shape3], tuple[ScalarType, ScalarType]]] = [(bytes_, (I8, U8)), (nibbles, (I4, U4))]
    for shapes, types in families:
        for shape, a, b, saturate in product(shapes, types, types, (False, True)):
            rows.append(MmaSync(80, shape, I32, a, b, saturate=saturate))
    bits: list[Shape3] = [(8, 8, 128), (16, 8, 128), (16, 8, 256)]
    return rows + [MmaSync(80, shape, I32, B1, B1, bit_op=how) for shape in bits for how in ("xor", "and")]


def _sparse() -> list[SparseMmaSync]:
    """K is that of B: twice the dense instruction's."""
    rows = [SparseMmaSync(80, (16, 8, k), d, F16, F16) for k in (16, 32) for d in (F16, F32)]
    rows += [SparseMmaSync(80, (16, 8, k), F32, BF16, BF16) for k in (16, 32)]
    rows += [SparseMmaSync(80, (16, 8, k), F32, TF32, TF32) for k in (8, 16)]
    rows += [SparseMmaSync(89, (16, 8, 64), F32, a, b) for a, b in product((E4M3, E5M2), repeat=2)]
    for k, a, b, saturate in product((32, 64), (I8, U8), (I8, U8), (False, True)):
        rows.append(SparseMmaSync(80, (16, 8, k), I32, a, b, saturate=saturate))
    return rows


MMA_SYNC: dict[str, MmaSync] = {atom.cute_name: atom for atom in (*_floats(), *_integers())}
SPARSE_MMA_SYNC: dict[str, MmaSync] = {atom.cute_name: atom for atom in _sparse()}


def check_known(atom: MmaSync) -> MmaSync:
    """``atom`` if the hardware has it; else a ConstraintError that lists the shapes for its types."""
    table = SPARSE_MMA_SYNC if atom.sparsity > 1 else MMA_SYNC
    if atom.cute_name in table:
        return atom
    same = sorted(
        f"{'x'.join(map(str, x.shape_mnk))} with {shown(x.type_d)} accumulators"
        for x in table.values()
        if (x.type_a, x.type_b, x.saturate, x.bit_op) == (atom.type_a, atom.type_b, atom.saturate, atom.bit_op)
    )
    what = f"{shown(atom.type_a)} x {shown(atom.type_b)}"
    others = f"for {what} there are: {', '.join(dict.fromkeys(same))}" if same else f"no instruction for {what}"
    opcode = atom.name if atom.sparsity > 1 else "mma.sync"
    raise ConstraintError(
        f"no {opcode} of shape {'x'.join(map(str, atom.shape_mnk))} takes {what} into {shown(atom.type_d)}; {others}"
    )
