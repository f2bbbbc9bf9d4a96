"""``range`` with bounds and steps of every type, known while staging or not: the indices are Python's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.errors import StagingError
from tilewright.testing import per_thread

KINDS = {name: getattr(cutlass, name) for name in "Int8 Int16 Int32 Int64 Uint8 Uint16 Uint32 Uint64".split()}


def counted(kinds: list[Any], span: list[int], known: list[bool]) -> list[int]:
    """How many indices a run-time loop has, and their sum."""

    @cute.kernel
    def kernel(given: tuple, out: cute.Tensor) -> None:
        bounds = [span[i] if known[i] else given[i] for i in range(3)]
        count, total = cutlass.Int32(0), cutlass.Int64(0)
        for i in range(*bounds):
            count += 1
            total += cutlass.Int64(i)
        out[0], out[1] = cutlass.Int64(count), total

    @cute.jit
    def host(given: tuple, out: cute.Tensor) -> None:
        kernel(given, out).launch(grid=1, block=1)

    out = np.zeros(2, np.int64)
    host(tuple(kind(x) for kind, x in zip(kinds, span, strict=True)), out)
    return out.tolist()


@pytest.mark.parametrize("name", KINDS)
def test_the_indices_are_those_of_python(name: str) -> None:
    """Near the ends of narrow types, too, where the last step goes past them."""
    choose, kind = random.Random(name), KINDS[name]
    low, high = (int(kind.min), int(kind.max)) if kind.width < 32 else (0 if name[0] == "U" else -90, 90)
    for _ in range(6):
        steps = [1, 2, 3, 7, 100] + ([-1, -2, -50] if kind.signed else [])
        start, step = choose.choice([low, low + 1, high - 3, high, 5]), choose.choice(steps)
        stop = min(high, max(low, start + choose.choice([0, 1, 5, 9, -1, 120]) * step))
        known = [choose.random() < 0.3 for _ in range(3)]
        wanted = range(start, stop, step)
        assert counted([kind] * 3, [start, stop, step], known) == [len(wanted), sum(wanted)], (start, stop, step, known)


def test_a_step_with_a_sign_beside_bounds_without() -> None:
    assert counted([cutlass.Uint32, cutlass.Uint32, cutlass.Int32], [7, 0, -2], [False] * 3) == [4, 16]
    assert counted([cutlass.Uint8, cutlass.Uint8, cutlass.Int32], [200, 250, 30], [False] * 3) == [2, 430]
    with pytest.raises(StagingError, match="range in Uint64 by a step whose sign is not known"):
        counted([cutlass.Uint64, cutlass.Uint64, cutlass.Int64], [7, 0, -2], [False] * 3)


def test_a_step_of_zero_is_an_error() -> None:
    for kind in (cutlass.Uint32, cutlass.Int32):
        with pytest.raises(cutlass.errors.TilewrightError, match="range.. by a step of zero never ends"):
            counted([kind] * 3, [0, 4, 0], [True, False, False])


def test_a_step_of_each_thread_in_a_warp_of_few() -> None:
    """The lanes that the block does not have hold zeros."""
    assert per_thread(lambda t: summed(cutlass.Uint32(t + 1)), 8) == [sum(range(0, 10, t + 1)) for t in range(8)]


@cute.jit
def summed(step: Any) -> Any:
    total = cutlass.Int32(0)
    for i in range(cutlass.Uint32(0), cutlass.Uint32(10), step):
        total += cutlass.Int32(i)
    return total
