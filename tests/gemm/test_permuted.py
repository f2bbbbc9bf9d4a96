"""``Permuted``: D's modes in another order, in every family of kernels; gradients; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.covering import covering
from tests.gemm.test_hopper import sized
from tilewright.errors import ArgumentError
from tilewright.gemm import matmul
from tilewright.gemm.epilogue.permute import Permuted

RNG = np.random.default_rng(0)
A, B = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((2 * 37, 32), (32, 3 * 4 * 8)))
EXACT = A.astype(np.float64) @ B
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
KERNELS = {
    "simt": "simt_f32",
    "tensorop": "tensorop_f16",
    "hopper": sized((64, 64)),
    "transposed": sized((64, 32), transposed=True),
    "chosen": None,
}
FORMS = {
    "heads": ((2, 37, 12, 8), (0, 2, 1, 3), 2),
    "query, key and value": ((2, 37, 3, 4, 8), (2, 0, 3, 1, 4), 2),
    "transposed": ((74, 96), (1, 0), 1),
    "rows in three": ((2, 1, 37, 96), (3, 2, 0, 1), 3),
}


@pytest.mark.parametrize(("form", "kernel"), covering(list(FORMS), list(KERNELS), strength=1))
def test_exact(form: str, kernel: str) -> None:
    """Behind a bias, into a part of a larger array of another type."""
    whole, order, rows = FORMS[form]
    dtype = np.float32 if kernel == "simt" else np.float16
    shape = [whole[mode] for mode in order]
    memory = np.full([extent + 1 for extent in shape], 7, np.float32)
    matrix = memory[tuple(slice(extent) for extent in shape)]
    bias = np.arange(96).astype(dtype)
    how: dict[str, Any] = {"kernel": KERNELS[kernel], "bias": bias, "epilogue": Permuted(matrix, order, rows)}
    assert matmul(A.astype(dtype), B.astype(dtype), **how) is matrix
    np.testing.assert_array_equal(matrix, (EXACT + bias).reshape(whole).transpose(order))
    assert memory.sum() == matrix.sum() + 7 * (memory.size - matrix.size)


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_and_gradients_of_pytorch(device: str) -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(x).to(device) for x in (A, B))
    for shift in (0, 1):  # the second one is the launch of the first with other numbers
        matrix = torch.full((2, 12, 37, 8), float("nan"), device=device)
        assert matmul((a + shift).view(2, 37, 32), b, epilogue=Permuted(matrix)) is matrix
        exact = (A + shift).astype(np.float64) @ B
        np.testing.assert_array_equal(matrix.cpu(), exact.reshape(2, 37, 12, 8).transpose(0, 2, 1, 3))
    graded = a.clone().requires_grad_()
    weights = torch.from_numpy(RNG.integers(-2, 3, (2, 12, 37, 8)).astype(np.float16)).to(device)
    result = matmul(graded, b, epilogue=Permuted(torch.empty_like(weights)))
    (grad,) = torch.autograd.grad((result * weights).sum(), graded)
    wanted = weights.cpu().numpy().astype(np.float64).transpose(0, 2, 1, 3).reshape(74, 96) @ B.T
    np.testing.assert_array_equal(grad.cpu(), wanted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"matrix": np.empty((2, 12, 37, 7))}, r"D is 74 x 96, and matrix of shape \(2, 12, 37, 7\) in order"),
        ({"matrix": np.empty((2, 12, 37))}, r"matrix has 4 modes, as order has, not the shape \(2, 12, 37\)"),
        ({"order": (0, 1, 1, 2)}, "order is a tuple of the modes 0, 1"),
        ({"order": [0, 2, 1, 3]}, "order is a tuple of the modes 0, 1"),
        ({"rows": 4}, "order is a tuple of the modes 0, 1"),
        ({"matrix": A[:1].reshape(2, 2, 2, 4)}, "D is 74 x 96|overlaps a"),
        ({"matrix": None}, "Permuted takes an array, not None"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"matrix": np.empty((2, 12, 37, 8), np.float16), **change}
    with pytest.raises(ArgumentError, match=message):
        matmul(A, B, epilogue=Permuted(**given))


def test_out_beside_it_is_refused() -> None:
    out = np.full((74, 96), 7, np.float16)
    with pytest.raises(ArgumentError, match="Permuted leaves the result unwritten here, and out is given"):
        matmul(A, B, out, epilogue=Permuted(np.empty((2, 12, 37, 8), np.float16)))
    assert (out == 7).all()
