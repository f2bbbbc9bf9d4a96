"""Where ``cute.gemm`` takes C and D from: registers or memory, another view of the same registers, run-time offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tiled.staging import run
from tilewright import Float32, cute
from tilewright.errors import ConstraintError
from tilewright.layout import Layout

M, N, K = 2, 3, 2
A, B, C = np.array([[1, 2], [3, 4]]), np.array([[1, 10], [2, 20], [3, 30]]), 100 * np.arange(1, 7).reshape(M, N)
SHAPE = (1, M, N)  # (V, M, N)


def filled(layout: Any, values: Any) -> Any:
    made = cute.make_rmem_tensor(layout, Float32)
    for i, value in enumerate(np.asarray(values).reshape(-1, order="F")):
        made[i] = float(value)
    return made


def memory(x: Any) -> Any:
    return cute.make_tensor(x.iterator, Layout(SHAPE, (0, N, 1)))


def in_memory(x: Any, n: Any) -> tuple[Any, Any]:
    return memory(x), filled(SHAPE, C * 0)


def one_fragment(x: Any, n: Any) -> tuple[Any, Any]:
    c = filled(SHAPE, C)
    return c, c


def neighbours(x: Any, n: Any) -> tuple[Any, Any]:
    both = filled((*SHAPE, 2), np.stack([C, C * 0], -1))
    return both[None, None, None, 0], both[None, None, None, 1]


def rows_and_columns(x: Any, n: Any) -> tuple[Any, Any]:
    """D has the registers of C in another order."""
    c = filled(SHAPE, C)
    return c, cute.make_tensor(c.iterator, Layout(SHAPE, (0, N, 1)))


def chosen_at_run_time(x: Any, n: Any) -> tuple[Any, Any]:
    both = filled((*SHAPE, 2), np.stack([C * 0, C], -1))
    return both[None, None, None, n[0]], both[None, None, None, 0]


def target_at_run_time(x: Any, n: Any) -> tuple[Any, Any]:
    both = filled((*SHAPE, 2), np.stack([C, C], -1))
    return both[None, None, None, 0], both[None, None, None, n[0]]


def to_memory(x: Any, n: Any) -> tuple[Any, Any]:
    return filled(SHAPE, C), memory(x)


def product(places: Callable[[Any, Any], tuple[Any, Any]]) -> Any:
    """D by rows, of one thread."""

    def body(t: Any, x: Any, n: Any, out: Any) -> None:
        c, d = places(x, n)
        mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(Float32))
        for k in range(K):
            a, b = filled((1, M), A[:, k]), filled((1, N), B[:, k])
            cute.gemm(mma, d, a, b, c if k == 0 else d)
        for i in range(M * N):
            out[i] = d[i]

    out = np.zeros(M * N, np.float32)
    run(body, C.astype(np.float32).reshape(-1), np.ones(1, np.int32), out, threads=1)
    return out.reshape(N, M).T


@pytest.mark.parametrize("places", [in_memory, one_fragment, neighbours, chosen_at_run_time, rows_and_columns])
def test_c_comes_from_where_it_lies(places: Any) -> None:
    np.testing.assert_array_equal(product(places), C + A @ B.T)


@pytest.mark.parametrize(
    ("places", "words"),
    [(target_at_run_time, "is indexed at run time"), (to_memory, "must be in registers, not in gmem")],
)
def test_accumulators_need_static_registers(places: Any, words: str) -> None:
    with pytest.raises(ConstraintError, match=words):
        product(places)
