"""PyTorch's side of numbers of 4 and 6 bits: tensors like a reference, conversions both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.torch as cutlass_torch
from tilewright import Float4E2M1FN, Float6E2M3FN, Float6E3M2FN, Int4, Uint4, cute
from tilewright.cute import testing
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", [Float4E2M1FN, Float6E2M3FN, Float6E3M2FN, Int4, Uint4], ids=str)
@pytest.mark.parametrize("is_mode0_major", [False, True])
def test_a_tensor_like_a_reference_holds_its_numbers(dtype: Any, is_mode0_major: bool) -> None:
    begun = cutlass_torch.RandomInitConfig(0, 5) if dtype is Uint4 else None
    reference = cutlass_torch.matrix(3, 16, 8, is_mode0_major, cutlass.Float32, init_config=begun)
    tensor, storage = cutlass_torch.cute_tensor_like(reference, dtype, is_dynamic_layout=True)
    assert tensor.element_type is dtype and tensor.array.shape == (16, 8, 3)
    assert storage.numel() * storage.element_size() == reference.numel() * dtype.width // 8
    back = torch.zeros_like(reference)
    testing.convert(tensor, from_dlpack(back))
    assert torch.equal(back, reference)
    cutlass_torch.convert_cute_tensor(torch.ones_like(reference), tensor, dtype)
    testing.convert(tensor, from_dlpack(back))
    assert torch.equal(back, torch.ones_like(reference))


def test_a_kernel_reads_what_was_packed() -> None:
    @cute.jit
    def count(x: cute.Tensor, y: cute.Tensor) -> None:
        copied(x, y).launch(grid=(1, 1, 1), block=(16, 1, 1))

    @cute.kernel
    def copied(x: cute.Tensor, y: cute.Tensor) -> None:
        row, _, _ = cute.arch.thread_idx()
        y[row, None].store(x[row, None].load().to(cutlass.Float32))

    reference = torch.arange(-3, 5).repeat(16, 1).float()  # 2.5, 5 and more have neighbours in Float4E2M1FN
    tensor, storage = cutlass_torch.cute_tensor_like(reference, Float4E2M1FN, False, 8)
    assert storage.dtype == torch.float4_e2m1fn_x2 and storage.shape == (16, 4)
    seen = np.zeros((16, 8), np.float32)
    count(tensor, from_dlpack(seen))
    np.testing.assert_array_equal(seen, reference.numpy())


def test_numbers_round_to_even_and_saturate() -> None:
    given = torch.tensor([[0.2, 0.25, 0.75, 2.5, 5.0, -100.0]])
    tensor, _ = cutlass_torch.cute_tensor_like(given, Float4E2M1FN, False)
    back = torch.zeros_like(given)
    testing.convert(tensor, from_dlpack(back))
    assert back.tolist() == [[0.0, 0.0, 1.0, 2.0, 4.0, -6.0]]


def test_numbers_that_fill_no_whole_bytes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="a multiple of 2 elements"):
        cutlass_torch.cute_tensor_like(torch.zeros(4, 3), Float4E2M1FN, False)
    with pytest.raises(ArgumentError, match="one mode has stride 1"):
        cutlass_torch.cute_tensor_like(torch.zeros(4, 4)[:, ::2], Float4E2M1FN, False)
