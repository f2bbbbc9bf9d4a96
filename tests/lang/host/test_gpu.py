"""Executors on a GPU: arrays choose the machine, streams are respected, mixed devices are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.errors import ArgumentError

pytestmark = pytest.mark.gpu


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    if i < cute.size(x):
        y[i] = x[i] * factor


@cute.jit
def scale(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, stream):
    scale_kernel(x, y, factor).launch(grid=cute.ceil_div(cute.size(x), 128), block=128, stream=stream)


@cute.jit
def scale_here(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32):
    scale_kernel(x, y, factor).launch(grid=cute.ceil_div(cute.size(x), 128), block=128)


def test_one_executor_runs_on_both_machines():
    compiled = cute.compile(scale_here, torch.zeros(4), torch.zeros(4), 1.0)
    x = torch.arange(1000, dtype=torch.float32)
    for device in ("cuda", "cpu"):
        a, b = x.to(device), torch.zeros(1000, device=device)
        compiled(a, b, 3.0)
        assert torch.equal(b.cpu(), x * 3)
    with pytest.raises(ArgumentError, match="several devices .cpu, cuda:0"):
        compiled(x, x.cuda(), 1.0)
    with pytest.raises(ArgumentError, match="argument 'x'"):
        compiled(x.cuda().double(), x.cuda(), 1.0)


def test_tensors_that_change_between_calls():
    """Repeated calls with the same tensors, then with one that was changed in place, moved, or of another device."""
    compiled = cute.compile(scale_here, torch.zeros(4), torch.zeros(4), 1.0)
    x, y = torch.arange(1000, dtype=torch.float32, device="cuda"), torch.zeros(1000, device="cuda")
    for factor in (2.0, 2.0, 3.0):
        compiled(x, y, factor)
        assert torch.equal(y, x * factor)
    for a, b in ((x.clone(), torch.zeros_like(y)), (x, y), (y, y)):
        expected = a * 5
        compiled(a, b, 5.0)
        assert torch.equal(b, expected)
    x.resize_(300)
    y.data = y.data[:300].fill_(0)
    for _ in range(2):
        compiled(x, y, 2.0)
        assert torch.equal(y, x * 2)
    x.data = x.data.double()
    with pytest.raises(ArgumentError, match="argument 'x'"):
        compiled(x, y, 1.0)
    here = torch.arange(300, dtype=torch.float32)
    compiled(here, there := torch.zeros(300), 3.0)
    assert torch.equal(there, here * 3)


def test_streams_and_graphs():
    x, y = torch.arange(4096, dtype=torch.float32, device="cuda"), torch.zeros(4096, device="cuda")
    stream = torch.cuda.Stream()
    compiled = cute.compile(scale, x, y, 1.0, stream)
    torch.cuda.synchronize()
    compiled(x, y, 2.0, stream)
    stream.synchronize()
    assert torch.equal(y, x * 2)
    compiled(x, y, 3.0, stream.cuda_stream)
    torch.cuda.synchronize()
    assert torch.equal(y, x * 3)
    here = cute.compile(scale_here, x, y, 1.0)
    here(x, y, 1.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # the current stream is the capturing one
        here(x, y, 5.0)
        here(y, y, 2.0)
    y.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, x * 10)


def test_host_code_does_not_touch_gpu_memory():
    @cute.jit
    def peek(x: cute.Tensor):
        x[0] = x[1] + 1.0

    with pytest.raises(cutlass.errors.MachineError, match="an array on cuda:0; only a kernel can"):
        peek(torch.zeros(4, device="cuda"))
    a = np.zeros(4, np.float32)
    peek(a)
    assert a[0] == 1
