"""A C of another type than D's: exact in every family, through handles, updates and gradients; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.covering import covering
from tilewright.errors import ArgumentError
from tilewright.gemm import GemmUniversal, SplitK, gemm, matmul

M, N, K = 40, 32, 24
F16, F32 = np.float16, np.float32
RNG = np.random.default_rng(0)
A, B = (RNG.integers(-3, 4, shape).astype(F16) for shape in ((M, K), (K, N)))
SOURCES = {
    "rows": RNG.integers(-3, 4, (M, N)).astype(F32),
    "columns": RNG.integers(-3, 4, (N, M)).astype(F32).T,
    "gaps": RNG.integers(-3, 4, (M, 2 * N)).astype(F32)[:, ::2],
}


def expected(c: np.ndarray, alpha: float = 2.0, beta: float = 3.0) -> np.ndarray:
    return alpha * A.astype(np.float64) @ B + beta * c


@pytest.mark.parametrize(
    ("name", "kernel"), covering(list(SOURCES), [None, "tensorop_f16", "hopper_f16", "small_m_f16"], strength=1)
)
def test_exact(name: str, kernel: str | None) -> None:
    c = SOURCES[name]
    b = np.asfortranarray(B)  # as the kernel for few rows reads it
    a, source = (A[:16], c[:16]) if kernel == "small_m_f16" else (A, c)
    exact = expected(c)[: len(a)]
    out = np.empty(exact.shape, F16)
    np.testing.assert_array_equal(gemm(a, b, source, out=out, alpha=2, beta=3, kernel=kernel).d, exact)
    how: dict[str, Any] = {"c": source, "alpha": 2.0, "beta": 3.0, "kernel": kernel, "out_dtype": F16}
    np.testing.assert_array_equal(matmul(a, b, **how), exact)
    bias = np.arange(N).astype(F32)
    np.testing.assert_array_equal(matmul(a, b, bias=bias, activation="relu", **how), np.maximum(exact + bias, 0))
    np.testing.assert_array_equal(matmul(np.full_like(a, np.nan), b, **{**how, "alpha": 0.0}), 3 * source)


@pytest.mark.parametrize("how", ["stream_k", SplitK(2, "serial"), SplitK(2, "parallel")], ids=str)
def test_handles_and_updates(how: Any) -> None:
    handle, d, c = GemmUniversal("tensorop_f16", how), np.empty((M, N), F16), SOURCES["rows"]
    arguments = GemmUniversal.Arguments(A=A, B=B, C=c, D=d, alpha=2.0, beta=3.0)
    handle.initialize(arguments, np.empty(handle.workspace_size(arguments), np.uint8))
    handle.run()
    np.testing.assert_array_equal(d, expected(c))
    handle.update(GemmUniversal.Arguments(A=A, B=B, C=c + 1, D=d, alpha=1.0, beta=-1.0))
    handle.run()
    np.testing.assert_array_equal(d, expected(c + 1, 1.0, -1.0))
    with pytest.raises(ArgumentError, match="update wants the geometry that initialize had"):
        handle.update(GemmUniversal.Arguments(A=A, B=B, C=SOURCES["columns"], D=d))


def test_repeated_products_and_gradients() -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.from_numpy(A), torch.from_numpy(B)
    for c in SOURCES.values():
        for shift in (0, 1):  # the second one is the launch of the first with other numbers
            result = matmul(a, b, c=torch.from_numpy(c + shift), beta=1.0, out_dtype=torch.float16)
            np.testing.assert_array_equal(result, expected(c + shift, 1.0, 1.0))
    x, c = a.clone().requires_grad_(), torch.from_numpy(SOURCES["rows"]).requires_grad_()
    result = matmul(x, b, c=c, alpha=2.0, beta=3.0, out_dtype=torch.float16)
    found = torch.autograd.grad(result, (x, c), torch.ones_like(result))
    np.testing.assert_array_equal(found[0], np.broadcast_to(2 * B.astype(np.float64).sum(1), (M, K)))
    assert found[1].dtype is torch.float32 and bool((found[1] == 3).all())


@pytest.mark.parametrize(
    ("c", "message"),
    [
        (np.ones((M, N)), "c is Float64, which is not added to sums of Float32: convert it before"),
        (np.ones((M, N), np.int32), "c is Int32, which is not added to sums of Float32: convert it before"),
        (np.ones((M, N - 1), F32), r"a matrix of D's shape, \(40, 32\), is wanted|c must be 40 x 32, got 40 x 31"),
        ([[1.0]], "c is builtins.list, not an array|c must be a matrix"),
    ],
)
def test_bad_input_is_refused(c: Any, message: str) -> None:
    out = np.full((M, N), 7, F16)
    for call in (matmul, lambda a, b, out, c, beta: gemm(a, b, c, out=out, beta=beta)):
        with pytest.raises(ArgumentError, match=message):
            call(A, B, out, c, beta=1.0)
    assert (out == 7).all()


def test_other_forms_are_refused() -> None:
    memory = np.zeros(M * N, F32)
    with pytest.raises(ArgumentError, match="out overlaps c, and they are of two types, Float16 and Float32"):
        gemm(A, B, memory.reshape(M, N), out=memory.view(F16)[: M * N].reshape(M, N), beta=1.0)
    stacks = [np.stack([x] * 2) for x in (A, B, SOURCES["rows"])]
    with pytest.raises(ArgumentError, match="of stacks, lists and rows by index both have one dtype"):
        gemm(*stacks, out=np.empty((2, M, N), F16), beta=1.0)
    with pytest.raises(ArgumentError, match="which belongs to one product of matrices"):
        matmul(*stacks[:2], c=stacks[2], beta=1.0, out_dtype=F16)
