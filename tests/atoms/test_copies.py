"""Copy instructions on a fake machine, cell by cell against their bit layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.atoms.fake import FakeLanes, Memory, call, emit, pointer_type
from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.cp_async import CpAsync, CpAsyncCommit, CpAsyncWait, LoadCacheMode
from tilewright.atoms.ldmatrix import LdMatrix
from tilewright.atoms.matrix_copy import MatrixCopy
from tilewright.atoms.movmatrix import MovMatrix
from tilewright.atoms.shuffle import ShuffleTranspose
from tilewright.atoms.stmatrix import StMatrix
from tilewright.atoms.universal import UniversalCopy
from tilewright.errors import ConstraintError, SimulationError
from tilewright.ir.core import Constant
from tilewright.ir.types import BOOL, F16, F32, U8, U32, FragType, MemSpace, PtrType, ScalarType
from tilewright.layout import recast_layout

MATRIX = [(kind, n, t) for kind in (LdMatrix, StMatrix) for n in (1, 2, 4) for t in (False, True)]
RNG = np.random.default_rng(11)


def pattern(type_: ScalarType, shape: Any) -> np.ndarray[Any, Any]:
    raw = RNG.integers(0, 100, shape)
    return raw.astype(type_.dtype)


@pytest.mark.parametrize("type_", [F16, U8, F32])
@pytest.mark.parametrize(("kind", "n", "transpose"), MATRIX)
def test_matrix_copies(kind: Any, n: int, transpose: bool, type_: ScalarType) -> None:
    if transpose and type_ == F32:
        return
    atom: MatrixCopy = kind(n, transpose)
    warps, row, per = 2, 128 // type_.width, 32 // type_.width
    reg = per * n
    memory = Memory(pattern(type_, 4000))
    start = (RNG.permutation(4000 // row - 1)[: 32 * warps] * row).astype(np.intp)
    fragment = pattern(type_, (32 * warps, 2 * reg))
    registers = (tuple(range(reg, 2 * reg)),)
    op = call(
        atom,
        [FragType(type_, 2 * reg), pointer_type(type_)],
        registers=registers,
        store=kind is StMatrix,
        predicated=False,
    )
    atom.verify(op)
    old_memory, old_fragment = memory.values.copy(), fragment.copy()
    atom.simulate(FakeLanes(warps), op, [fragment, (memory, start)])
    # The bit layouts say which element of which side is which.
    register_side = recast_layout(type_.width, 1, atom.register_bits)
    memory_side = recast_layout(type_.width, 1, atom.memory_bits)
    where = {memory_side(t, v): (t, v) for t in range(8 * n) for v in range(row)}
    expected_fragment, expected_memory = old_fragment.copy(), old_memory.copy()
    for warp in range(warps):
        for t in range(32):
            for v in range(reg):
                lane, element = where[register_side(t, v)]
                address = start[32 * warp + lane] + element
                if kind is LdMatrix:
                    expected_fragment[32 * warp + t, reg + v] = old_memory[address]
                else:
                    expected_memory[address] = old_fragment[32 * warp + t, reg + v]
    np.testing.assert_array_equal(fragment, expected_fragment)
    np.testing.assert_array_equal(memory.values, expected_memory)


def test_matrix_copies_need_whole_warps_and_packed_registers() -> None:
    atom = LdMatrix(2)
    frag, ptr = FragType(F16, 8), pointer_type(F16)
    values = [np.zeros((32, 8), np.float16), (Memory(np.zeros(400, np.float16)), np.arange(32) * 8)]
    op = call(atom, [frag, ptr], registers=((0, 1, 2, 3),), store=False, predicated=False)
    with pytest.raises(SimulationError, match="all 32 lanes"):
        atom.simulate(FakeLanes(1, np.arange(32) < 8), op, values)
    with pytest.raises(ConstraintError, match="V0..V1 are the fragment elements .0, 2"):
        atom.verify(call(atom, [frag, ptr], registers=((0, 2, 4, 6),), store=False, predicated=False))
    with pytest.raises(ConstraintError, match="16-byte aligned, but its address is only known to be a multiple of 8"):
        atom.verify(
            call(atom, [frag, pointer_type(F16, align=8)], registers=((0, 1, 2, 3),), store=False, predicated=False)
        )
    with pytest.raises(ConstraintError, match="must be in smem, but the tensor is in gmem"):
        atom.verify(
            call(
                atom, [frag, pointer_type(F16, MemSpace.GMEM)], registers=((0, 1, 2, 3),), store=False, predicated=False
            )
        )
    with pytest.raises(ConstraintError, match="1, 2 or 4 matrices"):
        LdMatrix(3)
    with pytest.raises(ConstraintError, match="tear"):
        atom32 = LdMatrix(1, True)
        atom32.verify(
            call(atom32, [FragType(F32, 1), pointer_type(F32)], registers=((0,),), store=False, predicated=False)
        )


@pytest.mark.parametrize("bits", [8, 16, 32, 64, 128])
@pytest.mark.parametrize("contiguous", [True, False])
def test_universal_between_registers_and_memory(bits: int, contiguous: bool) -> None:
    atom = UniversalCopy(bits)
    n = bits // 8
    memory = Memory(pattern(U8, 2048))
    start = np.arange(32, dtype=np.intp) * 16
    registers = tuple(range(n, 2 * n)) if contiguous else tuple(range(0, 2 * n, 2))
    types = [FragType(U8, 2 * n), pointer_type(U8, MemSpace.GMEM), BOOL]
    predicate = np.arange(32) % 3 == 0
    for store in (False, True):
        op = call(atom, types, registers=(registers,), store=store, predicated=True)
        atom.verify(op)
        fragment = pattern(U8, (32, 2 * n))
        expected_fragment, expected_memory = fragment.copy(), memory.values.copy()
        for lane in np.flatnonzero(predicate & (np.arange(32) < 20)):
            for i, r in enumerate(registers):
                if store:
                    expected_memory[start[lane] + i] = fragment[lane, r]
                else:
                    expected_fragment[lane, r] = memory.values[start[lane] + i]
        atom.simulate(FakeLanes(1, np.arange(32) < 20), op, [fragment, (memory, start), predicate])
        np.testing.assert_array_equal(fragment, expected_fragment)
        np.testing.assert_array_equal(memory.values, expected_memory)


def test_universal_between_memories() -> None:
    atom = UniversalCopy(64)
    source, target = Memory(pattern(F16, 256)), Memory(np.zeros(256, np.float16))
    kinds = [pointer_type(F16, MemSpace.GMEM)] * 2 + [pointer_type(F16)] * 2
    op = call(atom, kinds, count=2, predicated=False)
    atom.verify(op)
    lanes = np.arange(32, dtype=np.intp) * 4
    atom.simulate(FakeLanes(1), op, [(source, lanes), (source, lanes + 128), (target, lanes + 128), (target, lanes)])
    np.testing.assert_array_equal(target.values, np.roll(source.values, 128))


def test_universal_checks() -> None:
    atom = UniversalCopy(128)
    with pytest.raises(ConstraintError, match="only known to be a multiple of 2 bytes: use num_bits_per_copy"):
        atom.verify(
            call(
                atom,
                [FragType(F16, 8), pointer_type(F16, align=2)],
                registers=(tuple(range(8)),),
                store=False,
                predicated=False,
            )
        )
    with pytest.raises(ConstraintError, match="one element width, not f32 and f16"):
        atom.verify(
            call(atom, [FragType(F32, 4), pointer_type(F16)], registers=((0, 1, 2, 3),), store=False, predicated=False)
        )
    with pytest.raises(ConstraintError, match="moves 8 x f16 for one thread, but 4 registers"):
        atom.verify(
            call(atom, [FragType(F16, 8), pointer_type(F16)], registers=((0, 1, 2, 3),), store=False, predicated=False)
        )
    with pytest.raises(ConstraintError, match="not 48"):
        UniversalCopy(48)


@pytest.mark.parametrize("zero_fill", [False, True])
def test_cp_async_lands_when_waited_for(zero_fill: bool) -> None:
    atom = CpAsync(64, zero_fill=zero_fill)
    source, target = Memory(pattern(F16, 256) + 1), Memory(np.full(256, -1, np.float16))
    kinds = [pointer_type(F16, MemSpace.GMEM), pointer_type(F16), BOOL]
    op = call(atom, kinds, count=1, predicated=True)
    atom.verify(op)
    where, lanes = np.arange(32, dtype=np.intp) * 4, FakeLanes(1)
    chosen = np.arange(32) % 2 == 0
    atom.simulate(lanes, op, [(source, where), (target, where), chosen])
    CpAsyncCommit().simulate(lanes, op, [])
    CpAsyncWait(1).simulate(lanes, op, [])
    assert (target.values[:128] == -1).all()
    CpAsyncWait(0).simulate(lanes, op, [])
    expected = np.where(chosen[:, None], source.values[:128].reshape(32, 4), 0 if zero_fill else -1)
    np.testing.assert_array_equal(target.values[:128].reshape(32, 4), expected)


def test_cp_async_checks() -> None:
    with pytest.raises(ConstraintError, match="128 bits only, not 64"):
        CpAsync(64, LoadCacheMode.GLOBAL)
    with pytest.raises(ConstraintError, match="32, 64 or 128 bits, not 16"):
        CpAsync(16)
    atom = CpAsync(32)
    with pytest.raises(ConstraintError, match="destination must be in smem"):
        atom.verify(call(atom, [pointer_type(F16, MemSpace.GMEM)] * 2, count=1, predicated=False))
    with pytest.raises(ConstraintError, match="static count"):
        CpAsyncWait(-1)


@pytest.mark.parametrize("xor", [1, 4])
def test_shuffle_follows_its_layout(xor: int) -> None:
    atom = ShuffleTranspose(xor)
    source = np.arange(64, dtype=np.uint32).reshape(32, 2)
    target = np.zeros((32, 2), np.uint32)
    op = call(atom, [FragType(U32, 2)] * 2, registers=((0, 1),), source_registers=((0, 1),))
    atom.verify(op)
    atom.simulate(FakeLanes(1), op, [target, source])
    layout = recast_layout(32, 1, atom.dst_bits)
    expected = [[layout(t, v) for v in range(2)] for t in range(32)]
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("type_", [F16, U8])
def test_movmatrix_transposes_each_matrix(type_: ScalarType) -> None:
    """Lane l holds row l / 4, columns 2 (l % 4) and the next, of its warp's matrix of 16-bit cells."""
    per = 32 // type_.width
    cells = np.arange(2 * 2 * 64, dtype=np.uint16).reshape(2, 2, 8, 8) * 251  # (warp, repetition, row, column)
    source, target = (np.zeros((64, 2 * per), type_.dtype) for _ in range(2))
    wanted = target.copy()
    for lane in range(64):
        row, column = lane % 32 // 4, 2 * (lane % 4)
        for r in range(2):
            matrix = cells[lane // 32, r]
            source[lane, per * r : per * (r + 1)] = matrix[row, column : column + 2].copy().view(type_.dtype)
            turned = np.array([matrix[column, row], matrix[column + 1, row]], np.uint16)
            wanted[lane, per * r : per * (r + 1)] = turned.view(type_.dtype)
    atom, numbers = MovMatrix(), (tuple(range(per)), tuple(range(per, 2 * per)))
    op = call(atom, [FragType(type_, 2 * per)] * 2, registers=numbers, source_registers=numbers)
    atom.verify(op)
    atom.simulate(FakeLanes(2), op, [target, source])
    np.testing.assert_array_equal(target.view("u1"), wanted.view("u1"))
    op.attrs["registers"] = (tuple(range(1, 1 + per)), numbers[1])
    with pytest.raises(ConstraintError, match=f"holds {per} neighbours"):
        atom.verify(op)
    with pytest.raises(ConstraintError, match="would tear f32 apart"):
        atom.verify(call(atom, [FragType(F32, 1)] * 2, registers=((0,),), source_registers=((0,),)))
    with pytest.raises(SimulationError, match="only lanes"):
        atom.simulate(FakeLanes(1, np.arange(32) < 5), op, [target, source])


def test_texts() -> None:
    ptr, frag = pointer_type(F16), FragType(F16, 16)
    out = emit(
        call(LdMatrix(4, True), [frag, ptr], registers=(tuple(range(8, 16)),), store=False, predicated=False),
        ["a", "p"],
    )
    assert out.lines == [
        "ldmatrix_x4_trans(static_cast<uint32_t>(__cvta_generic_to_shared(p)), "
        + ", ".join(f"reinterpret_cast<uint32_t&>(a[{i}])" for i in (8, 10, 12, 14))
        + ");"
    ]
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" in out.helpers["ldmatrix_x4_trans"]
    out = emit(
        call(UniversalCopy(128), [frag, ptr], registers=(tuple(range(8)),), store=False, predicated=False), ["a", "p"]
    )
    assert out.lines == ["*reinterpret_cast<uint4*>(&a[0]) = *reinterpret_cast<uint4 const*>(p);"]
    out = emit(
        call(UniversalCopy(32), [frag, ptr, BOOL], registers=((1, 5),), store=True, predicated=True), ["a", "p", "ok"]
    )
    assert out.lines[:2] == ["if (ok) {", "  alignas(4) tw::f16 parts[2] = {a[1], a[5]};"]
    gmem = PtrType(F16, MemSpace.GMEM, 16)
    out = emit(call(CpAsync(128, LoadCacheMode.GLOBAL), [gmem, ptr, BOOL], count=1, predicated=True), ["g", "s", "ok"])
    assert out.lines == ["if (ok) cp_async_cg_16(static_cast<uint32_t>(__cvta_generic_to_shared(s)), g);"]
    with pytest.raises(ConstraintError, match="needs sm_90"):
        emit(call(StMatrix(1), [frag, ptr], registers=((0, 1),), store=True, predicated=False), ["a", "p"], arch=80)


def test_a_false_constant_predicate_prints_nothing() -> None:
    op = call(UniversalCopy(32), [FragType(F32, 1), pointer_type(F32)], registers=((0,),), store=False, predicated=True)
    op.operands.append(Constant(BOOL, False))
    assert emit(op, ["a", "p", "false"]).lines == []


def test_copy_atoms_are_found_by_their_cute_name() -> None:
    for name, atom in COPIES.items():
        if name in ("DefaultCopy", "AutoVectorizingCopy"):  # CuTe's short names of another one
            continue
        assert atom.cute_name == name or atom.cute_name.split("<")[0] == name.split("<")[0]
