"""Products of views on one buffer: with equal addresses another extent, stride or type is another product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.hopper.test_tma import smem
from tests.hopper.tma_programs import Through
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm import gemm, launcher, matmul

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.unchecked

N = 32
VIEWS: dict[str, tuple[str, tuple[int, int], tuple[int, int]]] = {
    "first": ("float16", (N, N), (N, 1)),
    "rows": ("float16", (N - 16, N), (N, 1)),
    "columns": ("float16", (N, N - 16), (N, 1)),
    "stride": ("float16", (N, N), (2 * N, 1)),
    "turned": ("float16", (N, N), (1, N)),
    "bfloat16": ("bfloat16", (N, N), (N, 1)),
    "float32": ("float32", (N, N), (N, 1)),
}
"""Type, extents and strides of what lies at one address."""


def view(memory: Any, name: str) -> Any:
    """The view of the buffer, which is filled with small integers."""
    dtype, shape, stride = VIEWS[name]
    typed = memory.view(getattr(torch, dtype))
    typed.copy_((torch.arange(typed.numel()) * 5 % 7 - 3).to(typed.dtype))
    return torch.as_strided(typed, shape, stride)


def run(how: str, a: Any, b: Any, d: Any) -> None:
    if how == "matmul":
        matmul(a, b, d)
    elif how == "gemm":
        gemm(a, b, out=d)
    else:
        launcher(a, b, d)()


def check(device: str, how: str) -> None:
    """Every operand at its one address, in all its forms, in any order."""
    buffers = [torch.zeros(16 * N * N, dtype=torch.uint8, device=device) for _ in range(3)]
    rng = np.random.default_rng(2)
    for _ in range(8 if device == "cuda" else 1):
        for name in rng.permutation([*VIEWS, "first"]):
            a = view(buffers[0], name)
            _, (m, k), _ = VIEWS[name]
            b = torch.as_strided(buffers[1].view(a.dtype), (k, N), (N, 1))
            b.copy_((torch.arange(k * N).reshape(k, N) * 3 % 5 - 2).to(a.dtype))
            d = torch.as_strided(buffers[2].view(a.dtype), (m, N), (N, 1) if name != "stride" else (2 * N, 1))
            run(how, a, b, d)
            expected = (a.double() @ b.double()).to(a.dtype)
            assert torch.equal(d, expected), name


@pytest.mark.parametrize("how", ["matmul", "gemm", "launcher"])
def test_views_on_one_buffer(how: str) -> None:
    check("cpu", how)


@pytest.mark.gpu
@pytest.mark.parametrize("how", ["matmul", "gemm", "launcher"])
def test_views_on_one_buffer_of_a_gpu(how: str) -> None:
    check("cuda", how)


@cute.jit
def through_tma(a: cute.Tensor, b: cute.Tensor):
    Through((32, 32), smem("K", "SW64", "f16", (32, 32)))(a, b)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_tensor_maps_of_views_on_one_buffer(device: str) -> None:
    """A compiled program keeps the tensor maps of a GPU by address, extents and strides: each alone is changed."""
    buffer = (torch.arange(64 * 128, device=device) % 13).half().reshape(64, 128)
    views = [buffer, buffer[:32], buffer[:, :64], buffer[::2, :64], buffer.view(128, 64)[:64], buffer[32:]]
    program = None
    for _ in range(2):
        for a in views:
            b = torch.zeros(a.shape, dtype=a.dtype, device=device)
            tensors = [from_dlpack(x, assumed_align=16).mark_layout_dynamic() for x in (a, b)]
            program = program or cute.compile(through_tma, *tensors)
            program(*tensors)
            assert torch.equal(a, b)
