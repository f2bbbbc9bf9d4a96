"""Plans of TMA copies as layout algebra: boxes and coordinates bring each element to its place, or the plan says no.

The draws of :mod:`tests.hopper.drawn_tma` without a kernel: what the tensor map and the coordinates of a plan say is
compared with the definition of the copy, byte by byte.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.hopper.drawn_tma import KINDS, OUTSIDE, DrawnCopy
from tilewright.errors import ConstraintError, LayoutError
from tilewright.ir.tensormap import SWIZZLE_SPANS, TensorMapTemplate
from tilewright.ir.types import F16, F32, F64, I32, U8, ScalarType
from tilewright.layout import (
    Layout,
    Swizzle,
    SymbolicInt,
    cosize,
    flatten_to_tuple,
    make_composed_layout,
    make_layout,
    make_ordered_layout,
    size,
    zipped_divide,
)
from tilewright.tiled.tma.partition import partition_layouts
from tilewright.tiled.tma.plan import TmaPlan, plan_of

TYPES = dict(zip(KINDS, (U8, F16, F32, I32, F64), strict=True))
NOTHING = OUTSIDE - 1


def moved(plan: TmaPlan, shape: Any, template: TensorMapTemplate, values: list[int], blocks: int) -> Any:
    """[tile, byte of shared memory] -> byte of the tensor, OUTSIDE of it, or NOTHING, as the hardware copies: rows of a
    box that are shorter than the swizzle's span are a span apart."""
    n, unit, width = plan.elements_per_instruction, plan.element.bytes, plan.source.bytes
    ends, strides = map(np.array, template.dims_and_strides(values))
    scales = tuple(template.scale(part, values, strides[-1]) for part in template.scales)
    tiles = zipped_divide(Layout(shape, plan.coordinates(scales).stride), plan.tiler)
    found = np.full((size(tiles.shape[1]), cosize(plan.smem) * width), NOTHING)
    box = np.array([step[::-1] for step in itertools.product(*map(range, reversed(plan.box)))])
    for block, t in itertools.product(range(blocks), range(len(found))):
        smem, gmem, start = partition_layouts(n, block, Layout(blocks), make_layout(plan.smem), tiles)
        for k in range(size(plan.smem) // n):
            at = flatten_to_tuple(gmem((start + k * n, t)))
            at = np.array([*at, *[0] * (len(ends) - len(at))]) + box
            inside = ((at >= 0) & (at < ends)).all(1)[:, None]
            units = (at.astype(int) @ strides)[:, None] + np.arange(unit)
            row = plan.box[0] * unit
            places = np.arange(units.size // row)[:, None] * max(row, SWIZZLE_SPANS[plan.swizzle]) + np.arange(row)
            places += smem(start + k * n) * width
            if places.max() >= found.shape[1]:  # past the end of the tile's memory
                return found
            assert (found[t, places] == NOTHING).all()
            found[t, places] = np.where(inside, units, OUTSIDE).reshape(places.shape)
    return found


def outcome(case: DrawnCopy, blocks: int) -> str:
    """``exact``, ``wrong`` or ``refused``; leaves that only the launch knows have names."""
    source, leaves = TYPES[case.kind], []

    def leaf(x: int, known: bool) -> Any:
        leaves.extend([] if known else [(SymbolicInt(f"n{len(leaves)}"), x)])
        return x if known else leaves[-1][0]

    def tree(x: Any, known: Any) -> Any:
        return tuple(map(tree, x, known)) if isinstance(x, tuple) else leaf(x, known)

    gmem = Layout(*(tree(x, known) for x, known in zip((case.shape, case.stride), case.known, strict=True)))
    element = source if case.internal is None else case.internal.ir_type
    try:
        offsets = case.offsets()
        plan = plan_of(gmem, case.smem, case.tiler, source, element, blocks)
        template = plan.template(places=lambda x: [x is y for y, _ in leaves].index(True))
    except (ConstraintError, LayoutError):
        return "refused"
    values = [x for _, x in leaves]
    at_launch = template.part_problem(values) or template.problem(0, *template.dims_and_strides(values))
    if plan.problems() or at_launch:
        return "refused"
    wanted = np.full((len(offsets), cosize(plan.smem) * source.bytes), NOTHING)
    for i, b in itertools.product(range(size(plan.smem)), range(source.bytes)):
        inside = offsets[:, i] > OUTSIDE
        wanted[:, plan.smem(i) * source.bytes + b] = np.where(inside, offsets[:, i] * source.bytes + b, OUTSIDE)
    return "exact" if (moved(plan, case.shape, template, values, blocks) == wanted).all() else "wrong"


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_drawn_plans_are_exact_or_refused(blocks: int) -> None:
    counts: Counter[str] = Counter()
    for case in map(DrawnCopy, range(60)):
        if size(case.shape) <= 3000:
            counts[found := outcome(case, blocks)] += 1
            assert found != "wrong", case
    wanted = {1: 21, 2: 17, 4: 10}[blocks]
    assert counts["exact"] == wanted, "a plan that was exact is refused now, or the other way round"


@pytest.mark.parametrize("seed", [84, 205, 725])
def test_blocks_share_a_tile_along_a_mode_of_extent_1(seed: int) -> None:
    """The parts of all blocks but the first are past its end: zeros."""
    assert outcome(DrawnCopy(seed), 2) == "exact"


N, S, T = SymbolicInt("n"), SymbolicInt("s"), SymbolicInt("t")
SIX = (1152, 384, 192, 96, 32, 1)
LAST = "1@1,1@2,1@3,3@4,1@4,1@0"
"""Of six modes the last two share the fifth TMA mode."""


def smem_of(tile: tuple[int, ...], bits: int = 0) -> Any:
    """The tile compactly, its last mode contiguous."""
    layout = make_ordered_layout(tile, tuple(reversed(range(len(tile)))))
    return make_composed_layout(Swizzle(bits, 4, 3), 0, layout) if bits else layout


@pytest.mark.parametrize(
    ("shape", "stride", "tile", "bits", "element", "box", "steps"),
    [
        # Neighbours along two modes are one mode of up to 256 elements, under a swizzle of up to its span ...
        ((4, 2, 128), (256, 128, 1), None, 0, F16, (256, 4), "1@1,128@0,1@0"),
        ((4, 3, 128), (384, 128, 1), None, 0, F16, (128, 12), "3@1,1@1,1@0"),
        ((8, 2, 32), (64, 32, 1), None, 3, F16, (64, 8), "1@1,32@0,1@0"),
        ((8, 2, 64), (128, 64, 1), None, 3, F16, (64, 16), "2@1,1@1,1@0"),
        ((16, 16, 64), (2048, 128, 1), None, 3, F16, (64, 256), "16@1,1@1,1@0"),
        ((17, 16, 64), (2048, 128, 1), None, 3, F16, (64, 16, 17), "1@2,1@1,1@0"),
        # ... unless a tile reaches past the end of the first, or a stride is not known.
        ((4, 40), (32, 1), (4, 32), 0, F16, (32, 4), "1@1,1@0"),
        ((4, 3, 32), (64, 32, 1), (4, 2, 32), 0, F16, (64, 4), "1@1,32@0,1@0"),
        ((4, 4, 32), (64, S, 1), (4, 2, 32), 0, F16, (32, 2, 4), "1@2,1@1,1@0"),
        ((4, 4, 32), (S, 32, 1), (4, 2, 32), 0, F16, (64, 4), "1@1,32@0,1@0"),
        ((4, 4, 32), (S, T, 1), (4, 2, 32), 0, F16, (32, 2, 4), "1@2,1@1,1@0"),
        ((4, N, 32), (64, 32, 1), (4, 2, 32), 0, F16, (64, 4), "1@1,32@0,1@0"),
        # The contiguous mode is counted in the copied elements, the others are not.
        ((8, 64), (80, 1), None, 0, I32, (32, 8), "1@1,1/2@0"),
        ((8, 64), (80, 1), None, 0, U8, (128, 8), "1@1,2@0"),
        ((8, 1), (80, 1), (8, 8), 0, F16, (8, 8), "1@1,0"),
        # Five modes: the rest shares the last one.
        ((2, 2, 2, 2, 8), (64, 32, 16, 8, 1), (1, 1, 1, 1, 8), 0, F16, (8, 1, 1, 1, 1), "1@1,1@2,1@3,1@4,1@0"),
        ((2, 3, 2, 2, 3, 16), SIX, (1, 1, 1, 1, 1, 8), 0, F16, (8, 1, 1, 1, 1), LAST),
        ((N, 3, 2, N, N, 16), SIX, (1, 1, 1, 1, 1, 8), 0, F16, (8, 1, 1, 1, 1), LAST),
        ((3, 3, 2, 2, 3, 16), SIX, (2, 1, 1, 1, 1, 8), 0, F16, (8, 2, 1, 1, 1), LAST),
        ((2, 3, 2, 2, 3, 16), SIX, (2, 3, 1, 1, 1, 8), 0, F16, (8, 6, 1, 1, 1), "3@1,1@1,1@2,1@3,1@4,1@0"),
        ((2, 3, 2, 2, 3, 16), SIX, (1, 2, 1, 1, 1, 8), 0, F16, (8, 2, 1, 1, 1), "1@2,1@1,1@3,3@4,1@4,1@0"),
    ],
)
def test_boxes_and_steps(
    shape: Any, stride: Any, tile: Any, bits: int, element: ScalarType, box: tuple[int, ...], steps: str
) -> None:
    tile = tile or shape
    plan = plan_of(Layout(shape, stride), smem_of(tile, bits), tile, F16, element, 1)
    assert (plan.box, plan.problems()) == (box, [])
    assert ",".join(map(str, plan.coordinates().stride)) == steps


@pytest.mark.parametrize(
    ("shape", "stride", "tile", "words"),
    [
        ((3, 4, 8), (128, 64, 1), (2, 2, 8), "past the end of mode 0 would be taken from another"),
        ((3, 2, 8), (128, 64, 1), (2, 2, 8), ""),
        ((2, 2, 2, 2, 2, 8), (16 * 1024, 4096, 1024, 256, 64, 1), (2,) * 5 + (8,), "does not step evenly"),
        ((2, 2, 2, 2, 2, 8), (S, 4096, 1024, 256, 64, 1), (2,) * 5 + (8,), "strides must be known while staging"),
        ((2, 2, 2, 2, 2, 8), (4096, S, 1024, 256, 64, 1), (2, 1, 2, 2, 2, 8), "strides must be known while staging"),
        ((2, 2, 2, 2, 2, 8), (4096, 8192, 1024, 256, 64, 1), (2, 1, 2, 2, 2, 8), ""),
        ((3, 2, 2, 2, 2, 8), (4096, 8192, 1024, 256, 64, 1), (2, 1, 2, 2, 2, 8), "past the end of mode 0"),
        ((3, N, 2, 2, 2, 8), (4096, 8192, 1024, 256, 64, 1), (2, 1, 2, 2, 2, 8), "past the end of mode 0"),
        ((3, 3, 2, 2, 2, 8), (8192, 4096, 1024, 256, 64, 1), (2, 2, 2, 2, 2, 8), "past the end of mode 1"),
        ((N, 1, 2, 2, 2, 8), (4096, 8192, 1024, 256, 64, 1), (2, 1, 2, 2, 2, 8), ""),
    ],
)
def test_modes_that_share_a_tma_mode(shape: Any, stride: Any, tile: Any, words: str) -> None:
    problems = plan_of(Layout(shape, stride), smem_of(tile), tile, F16, F16, 1).problems()
    assert (words in problems[0]) if words else not problems


@pytest.mark.parametrize(
    ("tile", "blocks", "box"),
    [
        ((16, 64), 1, (64, 16)),
        ((16, 64), 4, (64, 4)),
        ((16, 64), 16, (64, 1)),
        ((2, 64), 4, (32,)),
        ((2, 8), 4, (4, 1)),
        ((6, 64), 4, "does not divide the box (64,6)"),
        ((6, 64), 5, "does not divide the box (64,6)"),
        ((2, 8), 32, "cuts the box (8,2) into more parts"),
        ((2, 8), 16, (1, 1)),
        ((2, 8), 8, (2, 1)),
        ((6, 64), 3, (64, 2)),
    ],
)
def test_multicast_cuts_the_box(tile: Any, blocks: int, box: Any) -> None:
    def made() -> TmaPlan:
        return plan_of(Layout((96, 64), (64 if tile == (2, 64) else 128, 1)), smem_of(tile), tile, F16, F16, blocks)

    if isinstance(box, str):
        with pytest.raises(ConstraintError, match=re.escape(box)):
            made()
    else:
        assert made().box == box


@pytest.mark.parametrize(
    ("gmem", "smem", "tile", "element", "words"),
    [
        (Layout((64, 64), (64, 1)), Layout((8, N), (N, 1)), (8, 64), F16, "the shared-memory layout must be static"),
        (Layout((64, 64), (64, 1)), Layout((8, 64), (64, 1)), (8, N), F16, "tiles of a static shape"),
        (Layout((64, 64), (64, 1)), Layout((8, 64), (64, 1)), (8, 32), F16, "both must cover one tile"),
        (Layout((64, 64), (64, 1)), Layout((8, 3), (3, 1)), (8, 3), I32, "are not a whole number of i32"),
        (Layout((64, 64), (64, S)), Layout((8, 64), (64, 1)), (8, 64), I32, "it must be 1 while staging"),
        (
            Layout((64, 64), (64, 1)),
            Layout((8, 64), (72, 1)),
            Layout(2, 0),
            F16,
            "TMA cannot copy tiles|both must cover",
        ),
    ],
)
def test_tma_plan_refuses_tiles_it_cannot_copy(
    gmem: Any, smem: Any, tile: Any, element: ScalarType, words: str
) -> None:
    with pytest.raises(ConstraintError, match=words):
        plan_of(gmem, smem, tile, F16, element, 1)


@pytest.mark.parametrize(
    ("bits", "width", "element", "words"),
    [
        (0, 8, F16, ""),
        (0, 4, F16, "not a multiple of 16 bytes: 4 x f16"),
        (0, 256, F16, ""),
        (0, 257, F16, "is more than 256 (257)"),
        (1, 16, F16, ""),
        (1, 24, F16, "exceeds the swizzle span: 24 x f16"),
        (3, 64, F16, ""),
        (3, 72, F16, "exceeds the swizzle span"),
        (0, 512, F16, "is more than 256 (512)"),
    ],
)
def test_rows_of_a_box(bits: int, width: int, element: ScalarType, words: str) -> None:
    problems = plan_of(Layout((8, 1024), (1024, 1)), smem_of((8, width), bits), (8, width), F16, element, 1).problems()
    assert (words in problems[0]) if words else not problems


def test_a_row_that_is_shorter_than_the_span_is_alone_in_its_box() -> None:
    """Of gather4 and scatter4 each row is a box of its own, and the next one follows a span apart."""
    plan = plan_of(Layout((8, 1024), (1024, 1)), smem_of((1, 16), 3), (1, 16), F16, F16, 1)
    assert not plan.problems()
    assert "less than the swizzle span" in plan.problems(separate_rows=True)[0]
