"""Dropout in an epilogue: the words are Philox's, the mask that of the seed in every family of kernels; gradients;
refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gemm.test_hopper import sized
from tilewright.errors import ArgumentError
from tilewright.gemm import gemm, grouped_matmul, matmul
from tilewright.gemm.epilogue.dropout import WORD, Dropout, dropout_mask, keeps, philox, threshold
from tilewright.gemm.epilogue.functions import Chain, RowBias

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
KERNELS = {
    "simt": ("simt_f32", np.float32),
    "tensorop": ("tensorop_f16", np.float16),
    "hopper": (sized((64, 64)), np.float16),
    "transposed": (sized((64, 32), transposed=True), np.float16),
    "f64": ("tensorop_f64", np.float64),
    "chosen": (None, np.float16),
}


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((WORD,) * 4, (WORD,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_known_answers(counter: Any, key: Any, words: Any) -> None:
    """Those of Random123, whose generator cuRAND's and PyTorch's are."""
    assert philox(counter, key, lambda a, b: (a * b >> 32, a * b & WORD), lambda a, b: a + b & WORD) == words


def test_a_mask_is_the_words_of_its_blocks() -> None:
    """Element by element, in Python's integers."""
    m, n, p, seed, offset = 37, 11, 0.3, 2**63 + 12345678901, 5 * 2**32 + 7
    mask = dropout_mask(m, n, p, seed, offset)
    for row, column in np.ndindex(m, n):
        counter = offset & WORD, offset >> 32, column // 2, row // 16 * 8 + row % 8
        key = seed & WORD, seed >> 32
        words = philox(counter, key, lambda a, b: (a * b >> 32, a * b & WORD), lambda a, b: a + b & WORD)
        assert mask[row, column] == (words[row // 8 % 2 * 2 + column % 2] < threshold(p))
    assert abs(dropout_mask(512, 512, p, 1).mean() - 0.7) < 0.005
    assert (dropout_mask(512, 512, 0.5, 1) == dropout_mask(512, 512, 0.5, 1, 1)).mean() < 0.51


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(list(KERNELS)),
    st.integers(1, 12),
    st.integers(1, 18),
    st.sampled_from([0.0, 0.25, 0.5, 0.75]),
    st.integers(-(2**63), 2**64 - 1),
    st.integers(0, 2**40),
)
def test_exact_in_every_family(name: str, m: int, n: int, p: float, seed: int, offset: int) -> None:
    """1 / (1 - p) is a multiple of 4 / 3 at most: sums of ones that it divides."""
    kernel, dtype = KERNELS[name]
    m, n = 8 * m - 3, 8 * n
    a, b = np.ones((m, 24), dtype), np.ones((24, n), dtype)
    bias = np.arange(m).astype(dtype) * 3
    d = matmul(a, b, kernel=kernel, epilogue=(RowBias(bias), Dropout(p, seed, offset)))
    sums = np.broadcast_to((24 + bias.astype(np.float64))[:, None], (m, n))
    wanted = np.where(dropout_mask(m, n, p, seed, offset), sums * np.float64(1 / (1 - p)), 0)
    np.testing.assert_allclose(d, wanted.astype(dtype), rtol=1e-3 if dtype == np.float16 else 1e-6)
    assert ((d != 0) == dropout_mask(m, n, p, seed, offset)).all()


@pytest.mark.parametrize("device", DEVICES)
def test_seeds_on_the_device_and_the_gradient(device: str) -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.ones(shape, dtype=torch.float16, device=device) for shape in ((40, 16), (16, 72)))
    seed, offset = torch.tensor([-5], device=device), torch.tensor(3, device=device)  # also of no dimensions
    for step in range(3):  # the second is the launch of the first
        mask = torch.from_numpy(dropout_mask(40, 72, 0.5, -5, 3 + step)).to(device)
        assert torch.equal(matmul(a, b, epilogue=Dropout(0.5, seed, offset)), torch.where(mask, 32.0, 0.0).half())
        offset += 1
    a.requires_grad_()
    weights = torch.randint(-2, 3, (40, 72), device=device).half()
    result = matmul(a, b, epilogue=Dropout(0.5, seed, offset))
    mask = torch.from_numpy(dropout_mask(40, 72, 0.5, -5, 6)).to(device)
    assert torch.equal(result, torch.where(mask, 32.0, 0.0).half())
    (grad,) = torch.autograd.grad((result * weights).sum(), a)
    assert torch.equal(grad, (torch.where(mask, 2 * weights, 0).float() @ b.T.float()).half())


def test_pytorch_has_the_same_mask() -> None:
    torch = pytest.importorskip("torch")
    rows, columns = torch.arange(33)[:, None], torch.arange(70)
    for seed, offset in ((0, 0), (-1, 2**62), (2**63 - 1, -(2**63))):
        found = keeps(rows, columns, seed, offset, 0.4)
        np.testing.assert_array_equal(found, dropout_mask(33, 70, 0.4, seed, offset))


ONES = np.ones((32, 32), np.float16)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Dropout(1.0), "p is the probability that an element becomes 0, 0 <= p < 1, not 1.0"),
        (lambda: Dropout(1 - 1e-12), "p is the probability"),
        (lambda: Dropout(float("nan")), "p is the probability"),
        (lambda: Dropout(True), "p is the probability"),
        (lambda: Dropout(0.5, seed=0.5), "seed is an integer or an array of one Int64, not 0.5"),
        (lambda: Dropout(0.5, np.zeros(1, np.int32)), "seed is an integer or an array of one Int64, not Int32"),
        (lambda: Dropout(0.5, 0, np.zeros(2, np.int64)), r"offset is an integer .*, not Int64 of shape \(2,\)"),
    ],
)
def test_bad_numbers_are_refused(call: Any, message: str) -> None:
    out = np.full((32, 32), 7, np.float16)
    with pytest.raises(ArgumentError, match=message):
        matmul(ONES, ONES, out, epilogue=call())
    assert (out == 7).all()


def test_stacks_groups_and_integers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="Dropout goes by the places of elements, which those of a stack"):
        gemm(ONES[None].repeat(2, 0), ONES[None].repeat(2, 0), epilogue=Chain((Dropout(0.5),)))
    with pytest.raises(ArgumentError, match="Dropout goes by the places of elements in one product, not in groups"):
        grouped_matmul(ONES, ONES[None], np.array([32], np.int32), epilogue=Dropout(0.5))
    with pytest.raises(Exception, match="Dropout divides sums by 1 - p, and these are integers"):
        matmul(ONES.astype(np.int8), ONES.astype(np.int8), epilogue=Dropout(0.5))
