"""Partitions of any tiled copy and MMA: every element belongs to exactly the threads it should, and to one value."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.universal import UniversalCopy
from tilewright.ir.types import F16
from tilewright.layout import Layout, left_inverse, make_layout, make_ordered_layout, size
from tilewright.tiled import (
    CopyAtom,
    make_cotiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_tv,
    make_tiled_mma,
    retile_through,
)

EXTENTS = st.sampled_from([1, 2, 3, 4, 6, 8])
ORDERS = st.sampled_from([(0, 1), (1, 0)])


def owners(tiled: Any, which: str, shape: tuple[int, int]) -> Counter[int]:
    """How many (thread, value) hold each element of a tensor of ``shape``."""
    whole = make_layout(shape)
    found: Counter[int] = Counter()
    for thread in range(tiled.size):
        part, offset = getattr(tiled.get_slice(thread), f"partition_{which}")(whole)
        found.update(offset + part(i) for i in range(size(part)))
    return found


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_copies_cover_every_element_once(data: st.DataObject) -> None:
    draw = data.draw
    threads = make_ordered_layout((draw(EXTENTS), draw(EXTENTS)), draw(ORDERS))
    values = make_ordered_layout((draw(EXTENTS), draw(EXTENTS)), draw(ORDERS))
    run = values.shape[values.stride.index(1)] if 1 in values.stride else 1  # values 0, 1, ... lie along one mode
    bits = draw(st.sampled_from([b for b in (16, 32, 64, 128) if run % (b // 16) == 0]))
    tiled = make_tiled_copy_tv(CopyAtom(UniversalCopy(bits), F16), threads, values)
    m, n = (threads.shape[i] * values.shape[i] * draw(st.integers(1, 3)) for i in range(2))
    for which in "SD":
        assert owners(tiled, which, (m, n)) == Counter(range(m * n))


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_mmas_cover_c_once_and_operands_once_a_row_of_atoms(data: st.DataObject) -> None:
    draw = data.draw
    atom = MMA_SYNC[draw(st.sampled_from(sorted(MMA_SYNC)))]
    if atom.sm == 70:  # thread ids with gaps: the slices are those of 32 lanes
        return
    across, down = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 2]))
    m, n, k = atom.shape_mnk
    tile = [m * across * draw(st.integers(1, 2)), n * down * draw(st.integers(1, 2)), k]
    order = draw(st.sampled_from([(0, 1, 2), (1, 0, 2)]))
    mma = make_tiled_mma(atom, make_ordered_layout((across, down, 1), order), tuple(tile))
    rests = [draw(st.integers(1, 2)) for _ in range(2)]
    for which, rows, columns, copies in (("A", 0, 2, down), ("B", 1, 2, across), ("C", 0, 1, 1)):
        shape = (tile[rows] * rests[0], tile[columns] * rests[1])
        expected = Counter({i: copies for i in range(shape[0] * shape[1])})
        assert owners(mma, which, shape) == expected


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_retile_names_the_register_of_every_element(data: st.DataObject) -> None:
    """``retile`` of the fragment is ``rA o (gA^-1 o gC)``, and the inverse leads each element back to its value."""
    draw = data.draw
    mma = make_tiled_mma(
        MMA_SYNC["SM80_16x8x16_F32F16F16F32_TN"],
        make_layout((draw(st.integers(1, 2)), draw(st.integers(1, 2)), 1)),
        (32 * draw(st.integers(1, 2)), 32 * draw(st.integers(1, 2)), 16),
    )
    makers = {"A": make_tiled_copy_A, "B": make_tiled_copy_B, "C": make_tiled_copy_C}
    operand, make = draw(st.sampled_from(sorted(makers.items())))
    names = ["UniversalCopy<uint16_t>", "UniversalCopy<uint32_t>"]
    names += ["SM90_U32x2_STSM_N"] if operand == "C" else ["SM75_U32x4_LDSM_N", "SM75_U16x4_LDSM_T"]
    copy = make(CopyAtom(COPIES[draw(st.sampled_from(names))], F16), mma)
    rows, columns = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}[operand]
    memory = make_layout((mma.tile_shape_mnk[rows] * 2, mma.tile_shape_mnk[columns] * 2))
    thread = draw(st.integers(0, mma.size - 1))
    gA, offset = getattr(mma.get_slice(thread), f"partition_{operand}")(memory)
    gC, other = getattr(copy.get_slice(thread), "partition_S" if operand == "C" else "partition_D")(memory)
    assert offset == other
    rA = mma.fragment_layout(operand, gA)
    retiled, through = copy.retile(rA), retile_through(rA, gA, gC)
    back = left_inverse(gA)
    for i in range(size(gC)):
        assert retiled(i) == through(i) == rA(back(gC(i)))


@pytest.mark.parametrize(
    "data", [Layout((16, 32), (32, 1)), Layout((16, 32), (40, 1)), Layout((32, 8, 2), (1, 64, 32))]
)
def test_cotiled_copies_hold_the_addresses_asked_for(data: Layout) -> None:
    """Where neighbours in memory are neighbours of a row or column, thread t holds addresses 8 t ... 8 t + 7."""
    run = Layout((4, 8), (8, 1))
    copy = make_cotiled_copy(CopyAtom(UniversalCopy(128), F16), run, data)
    for thread in range(4):
        part, offset = copy.get_slice(thread).partition_S(data)
        assert [offset + part(i) for i in range(8)] == [8 * thread + i for i in range(8)]
