"""for_generate, while_generate and yield_out: loops of functions that are not rewritten."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cutlass_dsl import for_generate, while_generate, yield_out
from tilewright.errors import StagingError


def run(body: Any, *numbers: int) -> list[int]:
    """What ``body(out, *numbers)`` writes in one thread."""

    @cute.kernel(preprocessor=False)
    def kernel(out: cute.Tensor, a: cutlass.Int32, b: cutlass.Int32):
        body(out, a, b)

    @cute.jit(preprocessor=False)
    def host(out: cute.Tensor, a: cutlass.Int32, b: cutlass.Int32):
        kernel(out, a, b).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(8, np.int32)
    host(out, *numbers)
    return out.tolist()


def test_a_loop_without_values() -> None:
    def body(out: Any, a: Any, b: Any) -> None:
        for i in for_generate(a, b, 2):
            out[i] = i * 10
            yield_out()

    assert run(body, 1, 6) == [0, 10, 0, 30, 0, 50, 0, 0]


def test_one_value_is_carried() -> None:
    def body(out: Any, a: Any, b: Any) -> None:
        total = None
        for i, x, total in for_generate(0, b, 1, [a]):  # noqa: B007 - read after the loop
            yield_out([x + i])
        out[0] = total

    assert run(body, 100, 5)[0] == 110
    assert run(body, 7, 0)[0] == 7


def test_several_values_are_carried() -> None:
    def body(out: Any, a: Any, b: Any) -> None:
        for _, (x, y), result in for_generate(0, b, iter_args=[a, cutlass.Int32(1)]):  # noqa: B007 - read after the loop
            yield_out([y, x + y])
        out[0], out[1] = result

    assert run(body, 0, 10)[:2] == [55, 89]


def test_while_loops() -> None:
    def body(out: Any, a: Any, b: Any) -> None:
        loop = while_generate([a, cutlass.Int32(0)], lambda x, steps: x != 1)
        with loop as (x, steps):
            yield_out([cutlass.Int32(x // 2), steps + 1])
        out[0], out[1] = loop.results
        single = while_generate([b], lambda x: x < 50)
        with single as (y,):
            yield_out(y * 3)
        out[2] = single.results

    assert run(body, 64, 2)[:3] == [1, 6, 54]


def test_loops_nest() -> None:
    def body(out: Any, a: Any, b: Any) -> None:
        for i in for_generate(a):
            for j, x, total in for_generate(0, b, 1, [cutlass.Int32(0)]):  # noqa: B007 - read after the loop
                yield_out([x + i * j])
            out[i] = total
            yield_out()

    assert run(body, 4, 3)[:4] == [0, 3, 6, 9]


def test_mistakes() -> None:
    def forgotten(out: Any, a: Any, b: Any) -> None:
        for _ in for_generate(0, b, 1, [a]):
            pass

    def too_many(out: Any, a: Any, b: Any) -> None:
        for _ in for_generate(0, b, 1, [a]):
            yield_out([a, b])

    def twice(out: Any, a: Any, b: Any) -> None:
        for _ in for_generate(b):
            yield_out()
            yield_out()

    for body, words in ((forgotten, "needs yield_out"), (too_many, "carries 1 values"), (twice, "already")):
        with pytest.raises(StagingError, match=words):
            run(body, 1, 2)
    with pytest.raises(StagingError, match="yield_out must be at the end"):
        yield_out()
