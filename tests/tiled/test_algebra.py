"""TiledMma and TiledCopy as layout algebra: golden lines, the seed's derivations, errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests import golden, golden_tiled
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.names import copy_by_name, mma_by_name
from tilewright.errors import ConstraintError
from tilewright.ir.types import F16, F32
from tilewright.layout import Layout, left_inverse, make_layout, size, with_shape
from tilewright.tiled.atom import CopyAtom, make_copy_atom
from tilewright.tiled.make_copy import (
    make_cotiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_C,
    make_tiled_copy_tv,
)
from tilewright.tiled.retile import check_retiled, retile_through
from tilewright.tiled.thread_values import derive_tv_from_thread_value, thrfrg
from tilewright.tiled.tiled_mma import TiledMma, make_tiled_mma

assert golden_tiled  # registers its handlers

F16_ATOM = "SM80_16x8x16_F32F16F16F32_TN"


@pytest.mark.parametrize("name", ["atoms", "tiled"])
def test_golden(name: str) -> None:
    lines = list(golden.read(golden.DATA / f"{name}.jsonl"))
    problems = [problem for line in lines if (problem := golden.check(line))]
    assert not problems, problems[:3]
    assert len(lines) > 100


def mma_of(name: str = F16_ATOM, atoms: Any = (2, 2, 1), tile: Any = (32, 32, 16)) -> TiledMma:
    return make_tiled_mma(mma_by_name(name), make_layout(atoms), tile)


# -- the table of an instruction derived in two ways
# ----------------------------------------------------------------------


def operand_tables() -> list[tuple[str, str, Layout, int, int]]:
    """(name, operand, table, extent of rows, extent of columns) of every operand of every mma.sync."""
    rows = []
    for name, atom in MMA_SYNC.items():
        m, n, k = atom.shape_mnk
        rows += [
            (name, "A", atom.layout_a, m, k),
            (name, "B", atom.layout_b, n, k),
            (name, "C", atom.layout_c, m, n),
        ]
    return rows


class Cell(NamedTuple):
    """How threads and values lie over the least tile, which is repeated for further values, then for threads."""

    threads: Layout
    values: Layout
    repeat: tuple[int, int] = (1, 1)
    thr_repeat: tuple[int, int] = (1, 1)

    @property
    def tile(self) -> tuple[int, int]:
        (m, n), (vm, vn) = self.threads.shape, self.values.shape
        return m * vm, n * vn


def cell(name: str, operand: str, table: Layout, rows: int, columns: int) -> Cell:
    """Quad pairs of SM70 hold rows or columns; a warp's 32 lanes are 8 rows of 4, each with neighbours along a row."""
    if name.startswith("SM70"):
        if operand == "C" and "F32F16F16F32" in name:
            return Cell(make_layout((2, 2)), make_layout((1, 2)), (2, 2), (2, 1))
        if operand == "C" or str(table) == "(8,4):(1,8)":
            return Cell(make_layout((8, 1)), make_layout((1, columns)))
        return Cell(make_layout((2, 4), stride=(4, 1)), make_layout((4, 1)))
    per = next((e for e, d in zip(_flat(table[1].shape), _flat(table[1].stride), strict=True) if d == rows), 1)
    return Cell(make_layout((8, 4), stride=(4, 1)), make_layout((1, per)), (rows // 8, columns // (4 * per)))


def _flat(x: Any) -> tuple[int, ...]:
    return tuple(y for part in x for y in _flat(part)) if isinstance(x, tuple) else (x,)


def test_every_mma_sync_has_its_three_tables_derived() -> None:
    assert len(operand_tables()) == 3 * len(MMA_SYNC) > 3 * 80


@pytest.mark.parametrize(("name", "operand", "table", "rows", "columns"), operand_tables())
def test_tables_by_product_and_inverse(name: str, operand: str, table: Layout, rows: int, columns: int) -> None:
    """raked_product + inverse + with_shape, repeated by blocked_product, is the instruction's table."""
    derived = derive_tv_from_thread_value(*cell(name, operand, table, rows, columns))
    assert size(derived[0]) == size(table[0])
    assert [derived(i) for i in range(size(table))] == [table(i) for i in range(size(table))]


@pytest.mark.parametrize(("name", "operand", "table", "rows", "columns"), operand_tables())
def test_tables_by_divide_and_composition(name: str, operand: str, table: Layout, rows: int, columns: int) -> None:
    """Divide by the least tile, put its table on it by composition; threads and values absorb the rest."""
    least = cell(name, operand, table, rows, columns)
    tile_tv = derive_tv_from_thread_value(least.threads, least.values)
    if least.thr_repeat == (1, 1):
        divided = thrfrg(make_layout((rows, columns)), least.tile, tile_tv)
    else:  # tiles of one thread lie side by side before those of the next threads: cut into those first
        block = tuple(e * r for e, r in zip(least.tile, least.repeat, strict=True))
        inner = thrfrg(make_layout(block), least.tile, tile_tv)
        table_of_block = make_layout(inner[0][0], make_layout(inner[1][0], inner[1][1]))
        divided = thrfrg(make_layout((rows, columns)), block, table_of_block, least.thr_repeat)
    derived = make_layout(make_layout(divided[0][0], divided[0][1]), make_layout(divided[1][0], divided[1][1]))
    assert size(derived[0]) == size(table[0])
    assert [derived(i) for i in range(size(table))] == [table(i) for i in range(size(table))]


# -- partitioning
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [F16_ATOM, "SM80_16x8x8_F32TF32TF32F32_TN", "SM80_8x8x4_F64F64F64F64_TN"])
@pytest.mark.parametrize("which", ["A", "B", "C"])
def test_partitions_cover_the_tile(name: str, which: str) -> None:
    """Every element of C belongs to one thread; of A and B to the threads of one row or column of atoms."""
    atom = mma_by_name(name)
    m, n, k = atom.shape_mnk
    mma = make_tiled_mma(atom, make_layout((2, 2, 1)), (2 * m, 4 * n, k))
    shape = {"A": (4 * m, 2 * k), "B": (4 * n, 2 * k), "C": (4 * m, 4 * n)}[which]
    whole = make_layout(shape)
    owners: dict[int, int] = {}
    for thread in range(mma.size):
        layout, offset = mma.get_slice(thread).partition(which, whole)
        for i in range(size(layout)):
            owners[offset + layout(i)] = owners.get(offset + layout(i), 0) + 1
    assert set(owners) == set(range(size(whole)))
    assert set(owners.values()) == {1 if which == "C" else 2}


def test_partition_shapes_keep_the_permutation_apart() -> None:
    mma = make_tiled_mma(
        mma_by_name("UniversalFMA<float>"),
        make_layout((16, 16, 1), stride=(16, 1, 0)),
        (make_layout((16, 4), stride=(4, 1)), make_layout((16, 4), stride=(4, 1)), None),
    )
    assert mma.partition_shape("C", (128, 128)) == (1, (4, 2), (4, 2))
    assert mma.partition_shape_C((128, 128)) == (1, 8, 8)  # of accumulators, which have no gaps


def test_swizzled_partitions_have_one_shape_for_all_threads() -> None:
    from tilewright.layout import parse

    copy = make_tiled_copy_A(CopyAtom(copy_by_name("SM75_U32x4_LDSM_N"), F16), mma_of())
    swizzled = parse("Sw<3,3,3> o 0 o ((8,8),(64,1)):((64,512),(1,0))")
    shapes = {copy.get_slice(t).partition_S(swizzled)[0].shape for t in range(copy.size)}
    assert shapes == {((8, 1), 2, (2, 2))}


# -- retile
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copy_name", ["SM75_U32x4_LDSM_N", "UniversalCopy<uint32_t>", "SM75_U32x2_LDSM_N"])
def test_retile_is_inverse_and_composition(copy_name: str) -> None:
    """CuTe's retile names, for every coordinate, the register that ``rA o (gA^-1 o gC)`` names."""
    mma = mma_of()
    copy = make_tiled_copy_A(CopyAtom(copy_by_name(copy_name), F16), mma)
    memory = make_layout((64, 32))
    for thread in (0, 5, 77):
        gA, _ = mma.get_slice(thread).partition_A(memory)
        gC, _ = copy.get_slice(thread).partition_D(memory)
        rA = mma.fragment_layout("A", gA)
        retiled = copy.retile(rA)
        assert [size(mode) for mode in retiled] == [size(mode) for mode in gC]
        through = retile_through(rA, gA, gC)
        assert [through(i) for i in range(size(gC))] == [retiled(i) for i in range(size(gC))]
        check_retiled(retiled, rA, gA, gC)


def test_the_natural_layout_is_the_wrong_registers() -> None:
    mma = mma_of()
    copy = make_tiled_copy_A(CopyAtom(copy_by_name("UniversalCopy<uint32_t>"), F16), mma)
    memory = make_layout((64, 32), stride=(32, 1))
    gA, _ = mma.get_slice(0).partition_A(memory)
    gC, _ = copy.get_slice(0).partition_D(memory)
    with pytest.raises(ConstraintError, match="use thr_copy.retile"):
        check_retiled(make_layout(gC.shape), mma.fragment_layout("A", gA), gA, gC)


def test_retile_refuses_other_elements() -> None:
    with pytest.raises(ConstraintError, match="different elements"):
        retile_through(Layout((2, 2)), Layout((2, 2), (1, 4)), Layout((2, 2), (1, 8)))
    with pytest.raises(ConstraintError, match="one partition has 4 elements"):
        retile_through(Layout((2, 2)), Layout((2, 2), (1, 4)), Layout((2, 4), (1, 8)))


# -- errors and equality
# --------------------------------------------------------------------------------------------------


def test_errors_name_what_does_not_fit() -> None:
    with pytest.raises(ConstraintError, match="48 along M is not a multiple of the 32 that 2 atoms of 16 cover"):
        mma_of(tile=(48, 32, 16))
    with pytest.raises(ConstraintError, match="fewer modes than the tile"):
        atom = make_copy_atom(copy_by_name("UniversalCopy<uint128_t>"), F16)
        make_tiled_copy_tv(atom, make_layout((4, 8)), make_layout((8, 1))).get_slice(0).partition_S(make_layout(64))
    with pytest.raises(
        ConstraintError, match="moves 8 x f16 for each thread, but the thread-value layout .* gives it 4"
    ):
        make_tiled_copy_tv(atom, make_layout((4, 8)), make_layout((4, 1)))
    with pytest.raises(ConstraintError, match="needs a multiple of 32 threads"):
        make_tiled_copy_tv(CopyAtom(copy_by_name("SM75_U32x1_LDSM_N"), F16), make_layout((4, 4)), make_layout((1, 2)))
    with pytest.raises(ConstraintError, match="is not a multiple of the 32 bits"):
        make_copy_atom(copy_by_name("UniversalCopy<uint32_t>"), F32, num_bits_per_copy=16)
    with pytest.raises(ConstraintError, match="values of f32 do not fit in"):
        CopyAtom(copy_by_name("UniversalCopy<uint16_t>"), F32)
    with pytest.raises(ConstraintError, match="address 8 of thread T2, value V0 .* does not occur in the data layout"):
        word = CopyAtom(copy_by_name("UniversalCopy<uint32_t>"), F32)
        make_cotiled_copy(word, make_layout((8, 4), stride=(4, 1)), make_layout((8, 4), stride=(1, 64)))


def test_atoms_are_equal_by_content() -> None:
    assert mma_of() == mma_of() and hash(mma_of()) == hash(mma_of()) and mma_of() != mma_of(tile=(64, 32, 16))
    atom = CopyAtom(copy_by_name("UniversalCopy<uint64_t>"), F32)
    assert make_tiled_copy_C(atom, mma_of()) == make_tiled_copy_C(atom, mma_of())
    assert "Thr Layout VMNK: (32,2,2,1):(1,32,64,0)" in str(mma_of())


def test_inverse_of_a_table_gives_back_thread_and_value() -> None:
    table = mma_by_name(F16_ATOM).layout_c
    inverse = with_shape(left_inverse(table), (16, 8))
    for thread in range(32):
        for value in range(4):
            place = table(thread, value)
            assert inverse(place % 16, place // 16) == thread + 32 * value
