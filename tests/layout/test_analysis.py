"""Analysis and swizzle design: counts against a brute-force count, the rule against the search."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layout.strategies import any_layouts, compact_layouts, injective_layouts
from tilewright.errors import LayoutError
from tilewright.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    bank_conflicts,
    blocked_product,
    coalescing,
    composition,
    contiguity,
    coordinates,
    design_swizzle,
    explain,
    flat_divide,
    get_nonswizzle_portion,
    is_bijective,
    is_compact,
    is_injective,
    is_major,
    leading_dim,
    logical_divide,
    make_smem_atom,
    offsets,
    raked_product,
    size,
    solve_swizzle,
    tiled_divide,
    zipped_divide,
)
from tilewright.layout.banks import lanes_together, request_wavefronts, wavefronts


@given(st.one_of(any_layouts(), compact_layouts(), injective_layouts()))
@settings(max_examples=200, deadline=None)
def test_predicates_and_tables_agree_with_the_function(a: Layout) -> None:
    values = [a(i) for i in range(size(a))]
    assert offsets(a).tolist() == values
    assert is_injective(a) == (len(set(values)) == len(values))
    assert is_bijective(a) == (sorted(values) == list(range(len(values))))
    assert is_compact(a) == (set(values) == set(range(len(set(values)))) and _no_alias(a))
    run = contiguity(a)
    assert values[:run] == list(range(run)) or run == 1
    assert [tuple(c) for c in coordinates(a.shape)][-1] == tuple(s - 1 for s in _leaves(a.shape))


def _leaves(t: Any) -> list[int]:
    return [x for y in t for x in _leaves(y)] if isinstance(t, tuple) else [t]


def _no_alias(a: Layout) -> bool:
    moving = [(s, d) for s, d in zip(_leaves(a.shape), _leaves(a.stride), strict=True) if d]
    return is_injective(Layout(tuple(s for s, _ in moving), tuple(d for _, d in moving))) if moving else True


def brute_wavefronts(layout: Any, access: Layout, element_bytes: int, vector: int) -> int:
    """Lane by lane, byte by byte."""
    threads, values = size(access[0]), size(access[1])
    width = element_bytes * vector
    lanes = 32 if width <= 4 else 128 // width
    total = 0
    for v in range(0, values, vector):
        for start in range(0, threads, lanes):
            words = defaultdict(set)
            for t in range(start, min(start + lanes, threads)):
                for j in range(vector):
                    first = layout(access(t, v + j)) * element_bytes
                    for byte in range(first, first + element_bytes):
                        words[byte // 4 % 32].add(byte // 4)
            total += max(len(w) for w in words.values())
    return total


@pytest.mark.parametrize(
    "bits,vector", [(8, 4), (8, 16), (16, 1), (16, 2), (16, 8), (32, 1), (32, 2), (32, 4), (64, 1)]
)
@pytest.mark.parametrize("swizzle", [Swizzle(0, 4, 3), Swizzle(2, 4, 3), Swizzle(3, 4, 3), Swizzle(3, 4, -3)])
def test_bank_conflicts_count_as_by_hand(bits: int, vector: int, swizzle: Swizzle) -> None:
    layout = ComposedLayout(swizzle, 0, Layout((64, 64), (64, 1)))
    for access in (Layout((32, 16), (1, 64)), Layout(((8, 4), 16), ((1, 1024), 64))):
        report = bank_conflicts(layout, access, bits, vector)
        assert report.cost == brute_wavefronts(layout, access, bits // 8, vector)
        assert report.conflicts >= 0 and report.ways >= 1


def test_a_broken_vector_is_named() -> None:
    with pytest.raises(LayoutError, match=r"thread 0 cannot access values 0\.\.3 as one vector of 4.*\(0,8,16,24\)"):
        bank_conflicts(Layout((8, 8), (1, 8)), Layout((8, 8), (1, 8)), 16, vector=4)
    with pytest.raises(LayoutError, match="thread 1 cannot"):
        bank_conflicts(Layout((8, 9), (9, 1)), Layout((8, 8), (1, 8)), 16, vector=8)
    with pytest.raises(LayoutError, match="reaches element"):
        bank_conflicts(Layout((4, 8), (8, 1)), Layout((8, 8), (1, 8)), 16)


def test_the_stride_of_one_element_says_nothing() -> None:
    assert is_bijective(Layout((1, 4), (-4, 1))) and not is_bijective(Layout((2, 4), (-4, 1)))


@pytest.mark.parametrize("bits,vector", [(48, 1), (96, 1), (6, 4), (4, 1), (16, 16), (8, 0)])
def test_accesses_that_no_instruction_makes(bits: int, vector: int) -> None:
    with pytest.raises(LayoutError, match=f"no instruction accesses {vector} x {bits} bits"):
        bank_conflicts(Layout(64), Layout((8, 4), (4, 1)), bits, vector)


def test_an_access_outside_of_the_layout_is_named() -> None:
    with pytest.raises(LayoutError, match="reaches element -1 of 64:1"):
        bank_conflicts(Layout(64), Layout((8, 1), (-1, 0)), 16)
    with pytest.raises(LayoutError, match="reaches element 70 of 64:1"):
        coalescing(Layout(64), Layout((8, 1), (10, 0)), 16)


def test_a_solution_says_how_far_its_swizzle_reaches() -> None:
    column = Layout((32, 1), (1, 32))
    solution = solve_swizzle(Layout((32, 12), (32, 1)), [(column, 1)], 32)
    assert max(solution.layout(i) for i in range(32 * 12)) == 1023
    assert "allocate 1024 elements: the swizzle reaches past 1004" in str(solution)
    assert "allocate" not in str(solve_swizzle(Layout((32, 32), (32, 1)), [(column, 1)], 32))


def test_coalescing() -> None:
    row_major = Layout((32, 32), (32, 1))
    along, across = Layout((32, 1), (32, 0)), Layout((32, 1), (1, 0))
    assert coalescing(row_major, along, 32).cost == 4
    assert coalescing(row_major, across, 32).cost == 32
    assert coalescing(row_major, Layout((8, 4), (128, 32)), 32, vector=4).conflicts == 0


ROWS = st.sampled_from([16, 32, 64, 128, 256])


@given(element=st.sampled_from([1, 2, 4]), row=ROWS)
def test_the_rule_is_free_of_conflicts(element: int, row: int) -> None:
    """8 rows read a 16-byte column at a time, and a row written 16 bytes a thread."""
    vector = 16 // element
    if row < vector:
        return
    swizzle = design_swizzle(element, vector, row)
    layout = ComposedLayout(swizzle, 0, Layout((32, row), (row, 1)))
    columns = Layout((32, row), (1, 32))
    assert bank_conflicts(layout, columns, 8 * element, vector).conflicts == 0
    rows = Layout((row // vector, vector), (32 * vector, 32))
    assert bank_conflicts(layout, rows, 8 * element, vector).conflicts == 0


def test_the_rule_gives_the_hardware_atoms() -> None:
    for kind, row_bytes in (("SW32", 32), ("SW64", 64), ("SW128", 128)):
        for bits in (8, 16, 32):
            by_rule = design_swizzle(bits // 8, 128 // bits, row_bytes * 8 // bits)
            assert by_rule == make_smem_atom("K", kind, bits).inner
    with pytest.raises(LayoutError, match="row = 48 is not a power of two"):
        design_swizzle(2, 8, 48)
    with pytest.raises(LayoutError, match="longer than the row"):
        design_swizzle(2, 8, 4)


def test_the_search_finds_the_least_and_proves_it() -> None:
    columns, rows = (Layout((8, 8), (1, 8)), 8), (Layout((8, 8), (64, 8)), 8)
    solution = solve_swizzle(Layout((8, 64), (64, 1)), [columns, rows], 16)
    assert solution.swizzle == design_swizzle(2, 8, 64) == Swizzle(3, 3, 3)
    assert [r.conflicts for r in solution.reports] == [0, 0]
    assert [r.conflicts for r in solution.plain] == [7, 0]
    for smaller in (Swizzle(2, 3, 3), Swizzle(1, 3, 3), Swizzle(2, 3, 4)):
        layout = ComposedLayout(smaller, 0, Layout((8, 64), (64, 1)))
        assert bank_conflicts(layout, columns[0], 16, 8).conflicts > 0
    assert "the least of" in str(solution)
    unneeded = solve_swizzle(Layout((8, 8), (8, 1)), [columns], 16)
    assert unneeded.swizzle.bits == 0 and unneeded.layout == Layout((8, 8), (8, 1))
    with pytest.raises(LayoutError, match="none of .* swizzles is free"):
        # The five bits that tell the lanes apart lie too far from each other for one field of a swizzle.
        solve_swizzle(Layout((2, 2, 2, 2, 2), (32, 128, 512, 2048, 8192)), [(Layout((32, 1), (1, 0)), 1)], 32)


@pytest.mark.parametrize("kind", ["INTER", "SW32", "SW64", "SW128"])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_the_search_finds_the_layouts_of_wgmma(kind: str, bits: int) -> None:
    """The four canonical layouts are the least swizzles under which 8 rows of 16 bytes come without a conflict."""
    atom = make_smem_atom("K", kind, bits)
    plain, vector = get_nonswizzle_portion(atom), 128 // bits
    solution = solve_swizzle(plain, [(Layout((8, vector), (1, 8)), vector)], bits)
    assert solution.layout == atom
    if kind == "INTER":
        assert solution.swizzle.bits == 0


def test_leading_dimension() -> None:
    assert leading_dim((8, 1), (1, 1)) == 0
    assert leading_dim((1, 8), (1, 1)) == 1
    assert leading_dim((1, 1), (1, 1)) == 0
    assert is_major((1, 0), (4, (1, 2))) and not is_major(0, (4, (1, 2)))


def test_explanations_end_with_the_result() -> None:
    a, b = Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2)
    for op, operands, last in (
        ("logical_divide", (a, b), "((2,2),(2,3)):((4,1),(2,8))"),
        ("complement", (b, 24), "(2,3):(1,8)"),
        ("composition", (a, b), "(2,2):(4,1)"),
        ("logical_product", (b, Layout(3)), "(4,3):(2,1)"),
        ("right_inverse", (Layout((8, 4), (4, 1)),), "(4,8):(8,1)"),
        ("left_inverse", (Layout((2, 2), (24, 4)),), "(4,6,2):(0,2,1)"),
    ):
        if op == "logical_product":
            operands, last = (Layout((2, 2), (4, 1)), Layout(6)), "((2,2),(2,3)):((4,1),(2,8))"
        assert last in explain(op, *operands).splitlines()[-1 if op != "composition" else -2], op
    tiles, layout = (Layout(3, 3), Layout((2, 4), (1, 8))), Layout((9, (4, 8)), (59, (13, 1)))
    for operation, operands in (
        (composition, (layout, (3, 4))),
        (composition, (layout, 9)),
        (logical_divide, (layout, tiles)),
        (zipped_divide, (layout, tiles)),
        (tiled_divide, (layout, tiles)),
        (flat_divide, (layout, tiles)),
        (zipped_divide, (a, 4)),
        (blocked_product, (Layout((2, 5), (5, 1)), Layout((3, 4)))),
        (raked_product, (Layout((2, 5), (5, 1)), Layout((3, 4)))),
    ):
        lines = explain(operation, *operands).splitlines()
        assert str(operation(*operands)) in "\n".join(lines[-2:])
        assert str(operands[0]) in lines[0]
    with pytest.raises(LayoutError, match="no explanation of size"):
        explain("size", a)


def test_the_short_cut_for_many_requests_counts_what_the_rule_counts() -> None:
    rng = np.random.default_rng(7)
    for width in (1, 2, 4, 8, 16):
        requests = rng.integers(0, 64, (50, lanes_together(width))) * width
        requests[rng.random(requests.shape) < 0.2] = -1  # idle lanes
        requests[:, 0] = np.maximum(requests[:, 0], 0)
        costs, ideals = request_wavefronts(requests, width)
        expected = [wavefronts([start for start in row if start >= 0], width) for row in requests.tolist()]
        assert list(zip(costs.tolist(), ideals.tolist(), strict=True)) == expected
