"""What is known of a kernel's loops and of the waits that tokens decide over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.sim.checks.guarded_waits import guarded_waits
from tilewright.sim.checks.kinds import polling_loops


def compiled(kernel: Any, *arrays: Any) -> Any:
    @cute.jit
    def host(*tensors: cute.Tensor):
        kernel(*tensors).launch(grid=(1, 1, 1), block=(32, 1, 1))

    return cute.compile(host, *arrays).kernels[0]


def flag_of(p: Any) -> Any:
    return cute.arch.load(p, sem="acquire", scope="gpu")


@cute.jit
def not_at_least(v, n, turn, x):
    return not v >= n


@cute.jit
def noted(v, n, turn, x):
    x[3] = v
    return v < n


LOOPS: dict[str, tuple[Callable[..., Any], int, int]] = {  # how many reads are known, in the condition and carried
    "a literal": (lambda v, n, turn, x: v < 3, 1, 2),
    "the other way round": (lambda v, n, turn, x: 3 > v, 1, 2),
    "equal": (lambda v, n, turn, x: v != n, 1, 2),
    "a sum of the outside": (lambda v, n, turn, x: v < n * 2 + 1, 1, 2),
    "not": (not_at_least, 1, 2),
    "noted": (noted, 0, 0),
    "what changes": (lambda v, n, turn, x: v < turn, 1, 0),
    "a sum with what changes": (lambda v, n, turn, x: v < n + turn, 1, 0),
    "what is read": (lambda v, n, turn, x: v < x[1], 0, 0),
    "itself": (lambda v, n, turn, x: v < v + n, 0, 0),
    "a wider number": (lambda v, n, turn, x: v.to(cutlass.Int64) < 3, 1, 0),
    "a narrower number": (lambda v, n, turn, x: v.to(cutlass.Int16) < cutlass.Int16(3), 0, 0),
    "a float": (lambda v, n, turn, x: v.to(cutlass.Float32) < 3.0, 0, 0),
    "a sum of it": (lambda v, n, turn, x: v + 1 < n, 0, 0),
    "two conditions": (lambda v, n, turn, x: (v < n) & (n < 9), 0, 0),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("carried", [False, True])
def test_awaited_value_of_polling_loops(name: str, carried: bool) -> None:
    asks, *found = LOOPS[name]

    @cute.kernel
    def kernel(x: cute.Tensor):
        n, turn = x[2], cutlass.Int32(0)
        if cutlass.const_expr(carried):
            v = flag_of(x.iterator)
            while asks(v, n, turn, x):
                v = flag_of(x.iterator)
                turn += 1
        else:
            while asks(flag_of(x.iterator), n, turn, x):
                turn += 1

    ops = list(compiled(kernel, np.zeros(4, np.int32)).walk())
    assert len(polling_loops(ops)) == found[carried]


@pytest.mark.parametrize("kind", ["a value", "used", "twice"])
def test_a_loop_whose_value_is_used_elsewhere_waits_for_more(kind: str) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor):
        v = flag_of(x.iterator)
        while v < 3:
            v = flag_of(x.iterator)
            if cutlass.const_expr(kind == "twice"):
                x[3] = v
        if cutlass.const_expr(kind == "used"):
            x[3] = v

    found = polling_loops(list(compiled(kernel, np.zeros(4, np.int32)).walk()))
    assert bool(found) == (kind == "a value")


@cute.jit
def without(token, other, n):
    return not token


@cute.jit
def without_both(token, other, n):
    return not (token and other)


@cute.jit
def without_one(token, other, n):
    return not (token or other)


@cute.jit
def without_and_small(token, other, n):
    return not token and n


TOKENS: dict[str, tuple[Callable[..., Any], int]] = {
    "not": (without, 1),
    "both": (without_both, 2),
    "one of them": (without_one, 2),
    "an argument": (lambda t, o, n: n, 0),
    "an argument too": (without_and_small, 0),
    "the token itself": (lambda token, other, n: token, 1),
}


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("more", [False, True])
def test_waits_that_a_try_wait_token_decides(name: str, more: bool) -> None:
    asks, tokens = TOKENS[name]

    @cute.kernel
    def kernel(x: cute.Tensor, n: cutlass.Boolean):
        full = cute.arch.alloc_smem(cutlass.Int64, 2)
        token = cute.arch.mbarrier_try_wait(full, 0)
        other = cute.arch.mbarrier_try_wait(full + 1, 0)
        if asks(token, other, n):
            cute.arch.mbarrier_wait(full, 0)
            if cutlass.const_expr(more):
                x[0] = cutlass.Int32(1)

    @cute.jit
    def host(x: cute.Tensor, n: cutlass.Boolean):
        kernel(x, n).launch(grid=(1, 1, 1), block=(32, 1, 1))

    function = cute.compile(host, np.zeros(4, np.int32), True).kernels[0]
    found = [len(tests) for tests in guarded_waits(function).values()]
    assert found == [tokens] * (bool(tokens) and not more)


@pytest.mark.parametrize("start", [None, False, True])
@pytest.mark.parametrize("vote", [False, True])
def test_a_token_that_the_program_sets(start: bool | None, vote: bool) -> None:
    """False asks for the wait whatever try_wait has answered; and other instructions answer other questions."""

    @cute.kernel
    def kernel(n: cutlass.Int32):
        full = cute.arch.alloc_smem(cutlass.Int64, 2)
        token = cute.arch.mbarrier_try_wait(full, 0)
        if cutlass.const_expr(start is not None):
            token = cutlass.Boolean(start)
            if n > 1:
                token = cute.arch.mbarrier_try_wait(full, 0)
        if cutlass.const_expr(vote):
            token = cute.arch.vote_any_sync(token)
        if not token:
            cute.arch.mbarrier_wait(full, 0)

    @cute.jit
    def host(n: cutlass.Int32):
        kernel(n).launch(grid=(1, 1, 1), block=(32, 1, 1))

    found = guarded_waits(cute.compile(host, 3).kernels[0])
    assert len(found) == (start is not False and not vote)
