"""Numbers at the ends of their types: loops whose last step would pass the end, the least number of 16 bits."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.machines import MACHINES, OnMachine
from tilewright import cute

pytestmark = pytest.mark.unchecked
LANES = 64
SIGNED, UNSIGNED = ("int8", "int32", "int64"), ("uint8", "uint32", "uint64")


@cute.kernel
def walked(out: cute.Tensor, bounds: cute.Tensor, step: cutlass.Constexpr):
    lane, _, _ = cute.arch.thread_idx()
    count, last = cutlass.Int32(0), bounds[lane, 0]
    by = bounds[lane, 2] if cutlass.const_expr(step is None) else step
    for i in range(bounds[lane, 0], bounds[lane, 1], by):
        count += 1
        last = i.to(last.dtype)
    out[lane, 0] = count
    out[lane, 1] = cutlass.Int64(last)


@cute.jit
def walk(out: cute.Tensor, bounds: cute.Tensor, step: cutlass.Constexpr):
    walked(out, bounds, step).launch(grid=1, block=LANES)


def drawn_bounds(choose: random.Random, low: int, high: int, step: int | None) -> tuple[int, int, int]:
    """Of a range of at most 12 numbers, at the ends of a type or anywhere."""
    while True:
        ends = [low, high, high - 1, low + 1, 0, 1, high - choose.randint(0, 20), low + choose.randint(0, 20)]
        start, by = choose.choice([*ends, choose.randint(low, high)]), step
        if by is None:
            by = choose.choice([1, 2, 3, high // 2, high, *((-1, -3, low, low // 2) if low else ())])
        stop = choose.choice([start + choose.randint(-2, 12) * by + choose.choice([0, 0, 1, -1]), low, high])
        if low <= stop <= high and (stop - start) // by <= 12:
            return start, stop, by


@MACHINES
@pytest.mark.parametrize("kind", [*SIGNED, *UNSIGNED])
def test_a_loop_has_the_iterations_of_pythons_range(machine: OnMachine, kind: str) -> None:
    info = np.iinfo(kind)
    low, high = int(info.min), int(info.max)
    for step in (None, 3, high // 2 + 1, *((-1, -(high // 3)) if low else ())):
        rows = [drawn_bounds(random.Random(lane), low, high, step) for lane in range(LANES)]
        given, out = np.array(rows, dtype=object).astype(kind), np.zeros((LANES, 2), np.int64)
        machine.run(walk, out, given, step)
        ranges = [range(*row) for row in rows]
        np.testing.assert_array_equal(out[:, 0], [len(r) for r in ranges])
        last = np.array([r[-1] if len(r) else r.start for r in ranges], kind)
        np.testing.assert_array_equal(out[:, 1], last.astype(np.int64))


@cute.kernel
def negated(x: cute.Tensor, out: cute.Tensor, to_float: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    a = x[lane]
    wide = cutlass.Int32(a)
    forms = (-a, (a * (-1)).to(a.dtype), 0 - a, (~a) + 1, (wide * (-1)).to(a.dtype), (0 - wide).to(a.dtype))
    for i in cutlass.range_constexpr(len(forms)):
        out[lane, i, 0] = 1 - cutlass.Int32(forms[i])
        out[lane, i, 1] = 7 * cutlass.Int32(forms[i])
        out[lane, i, 2] = cutlass.Int32(forms[i] > 5)
        to_float[lane, i] = cutlass.Float32(forms[i])


@cute.jit
def negate(x: cute.Tensor, out: cute.Tensor, to_float: cute.Tensor):
    negated(x, out, to_float).launch(grid=1, block=8)


@MACHINES
@pytest.mark.parametrize("kind", ["int8", "int16", "uint8", "uint16"])
def test_a_negated_narrow_number_is_reduced_before_it_is_widened(machine: OnMachine, kind: str) -> None:
    info = np.iinfo(kind)
    x = np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1, 5, 6], kind)
    out, floats = np.zeros((8, 6, 3), np.int32), np.zeros((8, 6), np.float32)
    machine.run(negate, x, out, floats)
    reduced = (-x.astype(np.int64)).astype(kind).astype(np.int64)[:, None]
    expected: Any = np.stack([1 - reduced, 7 * reduced, reduced > 5], -1)
    np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))
    np.testing.assert_array_equal(floats, np.broadcast_to(reduced, floats.shape))
