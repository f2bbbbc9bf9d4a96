"""Programs run twice: as plain Python, and staged into a kernel of one thread on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute

CLASSES = {int: cutlass.Int32, float: cutlass.Float32, bool: cutlass.Boolean}


def staged_run(program: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """The numbers that ``program`` gives when its arguments are run-time values."""
    inner = cute.jit(program)
    kinds: list[type] = []

    @cute.kernel
    def body(out: cute.Tensor, given: tuple):
        results = inner(*given)
        results = results if isinstance(results, tuple) else (results,)
        for i in cutlass.range_constexpr(len(results)):
            kinds.append(type(results[i].value) if hasattr(results[i], "value") else type(results[i]))
            out[i] = cutlass.Float64(results[i])
        kinds.append(len(results))

    @cute.jit
    def host(out: cute.Tensor, given: tuple):
        body(out, given).launch(grid=1, block=1)

    out = np.zeros(16)
    host(out, tuple(CLASSES[type(a)](a) for a in args))
    return tuple(out[: kinds[-1]].tolist())


@pytest.fixture
def both() -> Callable[..., None]:
    """``both(program, *args)``: the staged program gives what Python gives."""

    def check(program: Callable[..., Any], *args: Any) -> None:
        expected = program(*args)
        expected = expected if isinstance(expected, tuple) else (expected,)
        assert staged_run(program, *args) == tuple(float(x) for x in expected)

    return check


@pytest.fixture
def staged() -> Callable[..., tuple[Any, ...]]:
    return staged_run
