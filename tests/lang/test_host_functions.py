"""Errors that arise on the way into a kernel: host functions on run-time values, what is compiled, what is marked."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tilewright import Constexpr, Float32, cute
from tilewright.cute.runtime import from_dlpack
from tilewright.cute.testing import autotune_jit
from tilewright.errors import ArgumentError, KeywordError, StagingError, byte_count

USE = r"(take|Use) cute\.math"


def staged(body: Callable[[Any], Any]) -> None:
    @cute.jit
    def program(x: cute.Tensor) -> None:
        body(cute.make_tensor(x.iterator, cute.make_layout(4)))  # here

    program(np.ones(4, np.float32))


@pytest.mark.parametrize(
    "body",
    [
        lambda x: math.exp(x[0]),
        lambda x: math.sqrt(x[0].to(cute.Int32)),
        lambda x: math.floor(x[0]),
        lambda x: math.sin(x.load()),
        lambda x: math.trunc(x[0]),
        lambda x: math.trunc(x[0].to(cute.Int32)),
        lambda x: math.gcd(x.load(), 2),
        lambda x: float(x),
        lambda x: math.exp(x),
        lambda x: np.exp(x[0]),
        lambda x: np.sqrt(x.load()),
    ],
)
def test_functions_of_math_and_numpy_name_cute_math(body: Callable[[Any], Any]) -> None:
    with pytest.raises(StagingError, match=rf"(?s){USE}.*\n  at .*test_host_functions.py:\d+"):
        staged(body)


def test_functions_of_other_libraries_name_cute_math() -> None:
    """In Python, where a variable holds the number, and in C, whose message names its class."""
    bodies = [
        lambda x: Fraction(x[0].to(cute.Int32), 2),
        lambda x: Decimal(x[0]),
        lambda x: statistics.mean([x[0], x[1]]),
        lambda x: json.dumps([x[0]]),
    ]
    for body in bodies:
        with pytest.raises(StagingError, match=rf"(?s)libraries .*{USE}.*\n  at .*test_host_functions.py:\d+"):
            staged(body)
    with pytest.raises(TypeError, match="Rational"):
        staged(lambda x: Fraction("half", 2.5))
    with pytest.raises(StagingError, match=r"unsupported operand type\(s\) for \*\* or pow"):
        staged(lambda x: pow(x[0].to(cute.Int32), 2, 5))


def test_functions_of_pytorch_name_cute_math() -> None:
    torch = pytest.importorskip("torch")
    bodies = [
        lambda x: torch.exp(x[0]),
        lambda x: torch.exp(x.load()),
        lambda x: torch.exp(x),
        lambda x: torch.maximum(x[0], x[1]),
        lambda x: torch.sigmoid(x.load()),
    ]
    for body in bodies:
        with pytest.raises(StagingError, match=rf"(?s)PyTorch .*{USE}.*\n  at .*test_host_functions.py:\d+"):
            staged(body)


def test_a_users_own_complaint_stays_his() -> None:
    def mine(x: Any) -> None:
        raise TypeError("weight must be Tensor, not ndarray")

    with pytest.raises(TypeError, match="^weight must be Tensor, not ndarray$"):
        staged(mine)


def test_cute_compile_of_an_object_whose_call_is_a_kernel() -> None:
    class Scale:
        @cute.kernel
        def __call__(self, x: cute.Tensor) -> None:
            x[0] = Float32(1)

    words = r"Scale\.__call__ is a @cute\.kernel; launch it in a method marked @cute\.jit"
    with pytest.raises(ArgumentError, match=words):
        cute.compile(Scale(), np.ones(4, np.float32))


def test_arrays_of_one_element_do_not_show_which_mode_leads() -> None:
    """Documented: deduction fails when several modes have stride 1 and none has size > 1."""
    for rank in (2, 3):
        ones = np.ones((1,) * rank, np.float32)
        with pytest.raises(ArgumentError, match=rf"all have stride 1 and extent 1, .*leading_dim={rank - 1}"):
            from_dlpack(ones).mark_layout_dynamic()
        marked = from_dlpack(ones).mark_layout_dynamic(leading_dim=0)
        assert marked.stride[0] == 1 and str(marked.layout).startswith("(?")
    assert from_dlpack(np.ones(1, np.float32)).mark_layout_dynamic().stride == (1,)  # exactly one mode has stride 1

    @cute.jit
    def program(x: cute.Tensor) -> None:
        x[0, 0] = x[0, 0] + 1

    one = np.ones((1, 1), np.float32)
    program(one)  # passed as it is: any mode will do
    assert one[0, 0] == 2


def test_a_misspelt_argument_of_a_tuned_function_names_the_nearest() -> None:
    seen = []

    @autotune_jit(params_dict={"tile": [1, 2]}, warmup_iterations=0, iterations=1)
    @cute.jit
    def program(x: cute.Tensor, factor: cute.Int32, tile: Constexpr = 1) -> None:
        seen.append(tile)
        x[0] = x[0] * factor

    x = np.ones(4, np.float32)
    with pytest.raises(KeywordError, match="keyword argument 'facter'; did you mean 'factor'"):
        program(x, facter=3)
    with pytest.raises(ArgumentError, match="tile is chosen by autotune_jit"):
        program(x, factor=3, tile=2)
    assert not seen
    program(x, factor=3)
    assert sorted(seen) == [1, 2] and x[0] == 27  # each once, then the best again


def test_numbers_of_bytes() -> None:
    assert [byte_count(n) for n in (0, 1, 2)] == ["0 bytes", "1 byte", "2 bytes"]


@cute.kernel
def numbered(x: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    x[t] = t


@pytest.mark.parametrize("most", (63, 64, (8, 8, 1)))
def test_a_block_has_at_most_as_many_threads_as_it_was_said_to_have(most: Any) -> None:
    @cute.jit
    def host(x: cute.Tensor) -> None:
        numbered(x).launch(grid=(1, 1, 1), block=(64, 1, 1), max_number_threads=most)

    x = np.zeros(64, np.int32)
    if most == 63:
        with pytest.raises(StagingError, match="a block of 64 threads, but max_number_threads=63"):
            host(x)
    else:
        host(x)
        assert x.tolist() == list(range(64))
