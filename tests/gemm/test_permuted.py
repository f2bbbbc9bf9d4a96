"""``Permuted`` and ``PermutedOperand``: modes in another order, in every family of kernels; gradients; refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.covering import covering
from tests.gemm.test_hopper import sized
from tilewright.errors import ArgumentError
from tilewright.gemm import (
    Bias,
    ColumnMajorInterleaved,
    PermutedOperand,
    RowMajorInterleaved,
    gemm,
    matmul,
)
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


@pytest.mark.parametrize(
    ("matrix", "message"),
    [(None, "matrix, the array that is written, is missing"), (np.empty((2, 12, 37, 4)), "D is 74 x 96, and matrix")],
)
def test_plain_arrays_are_checked(matrix: Any, message: str) -> None:
    """``gemm`` takes arrays as they are, without from_dlpack."""
    with pytest.raises(ArgumentError, match=message):
        gemm(A, B, epilogue=Permuted(matrix))
    with pytest.raises(ArgumentError, match="a vector of 96 elements"):
        gemm(A, B, epilogue=Bias(np.ones(7, np.float32)))


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_operands(data: st.DataObject) -> None:
    """Any order of up to five modes, as A, as B, and as a result."""
    whole = data.draw(st.lists(st.sampled_from([1, 2, 3, 8]), min_size=2, max_size=5))
    order = tuple(data.draw(st.permutations(range(len(whole)))))
    rows = data.draw(st.integers(1, len(whole) - 1))
    matrix = RNG.integers(-3, 4, (math.prod(whole[:rows]), math.prod(whole[rows:]))).astype(np.float32)
    operand = PermutedOperand(np.ascontiguousarray(matrix.reshape(whole).transpose(order)), order, rows)
    m, k = matrix.shape
    left, right = (RNG.integers(-3, 4, shape).astype(np.float32) for shape in ((5, m), (k, 16)))
    np.testing.assert_array_equal(matmul(operand, right), matrix @ right)
    np.testing.assert_array_equal(matmul(left, operand), left @ matrix)
    found = np.empty_like(operand.array)
    matmul(matrix, np.eye(k, dtype=np.float32), epilogue=Permuted(found, order, rows))
    np.testing.assert_array_equal(found, operand.array)


def test_interleaved_operands_of_int8() -> None:
    """As CUTLASS's interleaved products have them: A by columns, B by rows, the result by columns."""
    a, b = (RNG.integers(-9, 10, shape).astype(np.int8) for shape in ((48, 96), (96, 64)))
    A32 = ColumnMajorInterleaved(np.ascontiguousarray(a.reshape(48, 3, 32).transpose(1, 0, 2)))
    B32 = RowMajorInterleaved(np.ascontiguousarray(b.reshape(3, 32, 64).transpose(0, 2, 1)))
    d = np.empty((2, 48, 32), np.int32)
    assert matmul(A32, B32, epilogue=Permuted(d, (1, 0, 2), 1)) is d
    exact = a.astype(np.int32) @ b
    np.testing.assert_array_equal(d.transpose(1, 0, 2).reshape(48, 64), exact)


def test_views_and_gradients_of_operands() -> None:
    torch = pytest.importorskip("torch")
    heads = torch.from_numpy(RNG.integers(-3, 4, (2, 4, 5, 8)).astype(np.float32)).requires_grad_()
    weight = torch.from_numpy(RNG.integers(-3, 4, (32, 16)).astype(np.float32))
    matmul(PermutedOperand(heads), weight).sum().backward()
    wanted = weight.sum(1).reshape(4, 1, 8).expand(2, 4, 5, 8)
    assert torch.equal(heads.grad, wanted)
    tokens = heads.detach().transpose(1, 2).contiguous().transpose(1, 2)
    assert PermutedOperand(tokens).view().data_ptr() == tokens.data_ptr()
    with pytest.raises(ArgumentError, match="no matrix with one stride for its rows"):
        PermutedOperand(heads.detach()).view()


@pytest.mark.parametrize(
    ("operand", "message"),
    [
        (PermutedOperand(A), "array has 4 modes, as order has, not shape"),
        (PermutedOperand(A, (1, 1), 1), "PermutedOperand: order is a tuple of the modes"),
        (PermutedOperand(A, (1, 0), 2), "PermutedOperand: order is a tuple of the modes"),
        (PermutedOperand(None), "the array of a PermutedOperand is builtins.NoneType"),
        (ColumnMajorInterleaved(np.empty((2, 74, 32), np.float16)), "inner dimensions differ"),
    ],
)
def test_bad_operands_are_refused(operand: Any, message: str) -> None:
    out = np.full((74, 96), 7, np.float16)
    with pytest.raises(ArgumentError, match=message):
        matmul(operand, B, out)
    assert (out == 7).all()


def test_out_beside_it_is_refused() -> None:
    out = np.full((74, 96), 7, np.float16)
    with pytest.raises(ArgumentError, match="Permuted leaves the result unwritten here, and out is given"):
        matmul(A, B, out, epilogue=Permuted(np.empty((2, 12, 37, 8), np.float16)))
    assert (out == 7).all()
