"""PyTorch's CUDA device, served by the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from tilewright import compat, cute
from tilewright.cute.runtime import from_dlpack
from tilewright.lang.arguments.streams import current_stream


@pytest.fixture(autouse=True)
def served() -> Iterator[None]:
    compat.install(cpu=True)
    yield
    compat.uninstall()


@cute.kernel
def double(x: cute.Tensor) -> None:
    i, _, _ = cute.arch.thread_idx()
    x[i] = x[i] * 2


@cute.jit
def run(x: cute.Tensor) -> None:
    double(x).launch(grid=(1, 1, 1), block=(cute.size(x), 1, 1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(3, device="cuda"),
        lambda: torch.zeros(3).cuda(),
        lambda: torch.zeros(3).to("cuda"),
        lambda: torch.tensor([1, 2], device="cuda:0"),
        lambda: torch.zeros(3).to(device="cuda", dtype=torch.float16),
        lambda: torch.empty_like(torch.ones(2, device=torch.device("cuda"))),
        lambda: torch.zeros(3).cuda(0),
        lambda: torch.zeros(2, device="cuda")[0],
        lambda: torch.zeros(2, device="cuda") + 1,
        lambda: torch.empty_strided((2, 2), (1, 2), device="cuda", dtype=torch.bfloat16),
        lambda: torch.zeros(3, pin_memory=True).to(torch.zeros(1, device="cuda")),
        lambda: torch.zeros(2, 2, device="cuda").chunk(2)[1],
        lambda: torch.zeros(3).to("cuda", non_blocking=True),
        lambda: torch.zeros(4).to("cuda", torch.float64),
        lambda: torch.randn(2, device="cuda").permute(0),
    ],
)
def test_simulated_cuda_tensors_report_device_cuda(make: Any) -> None:
    made = make()
    assert made.device == torch.device("cuda", 0) and made.is_cuda and not made.is_cpu and made.get_device() == 0
    home = made.cpu()
    assert home.device.type == "cpu" and not home.is_cuda
    assert made.to("cpu").device.type == "cpu" and made.to("cuda").is_cuda


def test_tensors_made_on_the_host_stay_on_the_cpu() -> None:
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda
    for made in (torch.zeros(2), torch.zeros(2, device="cpu"), torch.from_numpy(np.zeros(2)), torch.zeros(2).half()):
        assert made.device.type == "cpu" and not made.is_cuda


def test_copies_are_copies() -> None:
    host = torch.arange(4.0)
    there = host.cuda()
    before = there.cpu()
    run(from_dlpack(there))
    run(there)
    assert host.tolist() == before.tolist() == [0, 1, 2, 3] and there.tolist() == [0, 4, 8, 12]
    assert there.to("cuda").data_ptr() == there.data_ptr()
    torch.testing.assert_close(there.cpu(), host * 4)


def test_a_graph_runs_at_its_replays() -> None:
    x = torch.ones(4, device="cuda")
    run(x)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):
        assert torch.cuda.is_current_stream_capturing() and int(current_stream()) == stream.cuda_stream
        run(x)
        y = x + 1
        y.mul_(10)
    assert x.tolist() == [2] * 4
    for expected in (4, 8):
        graph.replay()
        assert x.tolist() == [expected] * 4 and y.tolist() == [10 * (expected + 1)] * 4


def test_streams_events_and_the_device() -> None:
    stream, begin, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        begin.record()
    end.record()
    torch.cuda.synchronize()
    assert begin.cuda_event and not torch.cuda.Event().cuda_event
    assert torch.cuda.current_stream().cuda_stream == 0 and begin.elapsed_time(end) >= 0
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    assert torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.get_device_properties(0).multi_processor_count == 132
    numbers = torch.Generator(device="cuda")
    assert isinstance(numbers, torch.Generator)
    numbers.manual_seed(3)
    assert torch.rand(2, generator=numbers, device="cuda").is_cuda


def test_pointer_to_simulated_cuda_memory_is_a_host_pointer() -> None:
    from tilewright.cute import AddressSpace, Float32
    from tilewright.cute.runtime import make_ptr

    x = torch.ones(4, device="cuda")
    assert make_ptr(Float32, x.data_ptr(), AddressSpace.gmem).device_pointer().device == "cpu"


def test_torch_patches_are_removed_completely() -> None:
    x = torch.zeros(2, device="cuda")
    assert '"cuda"' in compat.served()
    available = torch.cuda.is_available
    compat.uninstall()
    assert torch.cuda.is_available is not available and x.device.type == "cpu"
    assert isinstance(torch.Generator(), torch.Generator) and torch.Generator.__module__ != "torch"


def test_operators_of_the_programs_own() -> None:
    @torch.library.custom_op("tilewright_tests::doubled", mutates_args=(), device_types="cuda")
    def doubled(x: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda
        out = x.clone()
        run(from_dlpack(out))
        return out

    @torch.library.custom_op("tilewright_tests::double_it", mutates_args={"x"}, device_types=("cuda",))
    def double_it(x: torch.Tensor, times: int = 1) -> None:
        for _ in range(times):
            run(from_dlpack(x.detach()))

    x = torch.ones(4, device="cuda")
    made = doubled(x)
    assert made.is_cuda and made.tolist() == [2] * 4 and x.tolist() == [1] * 4
    double_it(x, times=3)
    assert x.tolist() == [8] * 4


def test_compiled_functions_run_as_they_are_written() -> None:
    """PyTorch's compiler needs a real device: its names take what they take there, and the function means the same."""

    @torch.library.custom_op("tilewright_tests::doubled_again", mutates_args=(), device_types="cuda")
    def doubled(x: torch.Tensor) -> torch.Tensor:
        out = x.clone()
        run(from_dlpack(out))
        return out

    @torch.compile(fullgraph=True, mode="max-autotune")
    def compiled(x: torch.Tensor) -> torch.Tensor:
        return doubled(x + 1) * 3

    x, layer = torch.ones(4, device="cuda"), torch.nn.Linear(4, 4, device="cuda")
    assert compiled(x).is_cuda and compiled(x).tolist() == [12] * 4
    assert torch.equal(torch.compile(layer, dynamic=True)(x), layer(x))
    before = layer(x)
    layer.compile()
    assert torch.equal(layer(x), before)
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        torch.compile(layer, mode="fast")
    ours = torch.compile
    compat.uninstall()
    assert torch.compile is not ours


def test_patched_torch_names_have_distinct_functions() -> None:
    """PyTorch's compiler keeps a rule by function: one for two names is an error when it is first imported."""
    import types

    names = [vars(torch.cuda), vars(torch.cuda.nvtx)]
    ours = [
        (name, value)
        for module in names
        for name, value in module.items()
        if isinstance(value, types.FunctionType) and value.__module__ == "tilewright.compat.torch_names"
    ]
    assert len(ours) > 25
    shared = ("stream", "StreamContext", "device", "device_of", "range")
    functions = [value for name, value in ours if name not in shared]
    assert len(set(functions)) == len(functions)
    with torch.cuda.nvtx.range("a part of {}", 1):
        pass


def test_tensors_print_their_device() -> None:
    assert repr(torch.tensor([1.0, 2.0], device="cuda")) == "tensor([1., 2.], device='cuda:0')"
    half = torch.zeros(2, 1, dtype=torch.float16, device="cuda")
    assert str(half) == "tensor([[0.],\n        [0.]], device='cuda:0', dtype=torch.float16)"
    assert f"{torch.empty(0, 3, device='cuda')}" == "tensor([], device='cuda:0', size=(0, 3))"
    grad = torch.ones(1, device="cuda", requires_grad=True)
    assert repr(grad) == "tensor([1.], device='cuda:0', requires_grad=True)"
    assert repr(grad.cpu().detach()) == "tensor([1.])"


def test_a_function_of_autograd_sees_the_gpu_in_both_directions() -> None:
    seen: list[bool] = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = torch.empty_like(x)
            seen.append(y.is_cuda)
            y.copy_(x * 2)
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, y = ctx.saved_tensors
            seen.extend([dy.is_cuda, x.is_cuda, y.is_cuda, torch.empty(2, device="cuda").is_cuda])
            dy = dy.clone()
            run(dy)
            return dy

    x = torch.ones(3, device="cuda", requires_grad=True)
    Double.apply(x).sum().backward()
    assert seen == [True] * 5
    assert x.grad.is_cuda and x.grad.tolist() == [2.0] * 3, "dy is 1, doubled by the kernel"
    seen.clear()
    host = torch.ones(3, requires_grad=True)
    with pytest.raises(AssertionError):
        _host_only(Double).apply(host).sum().backward()
    assert host.grad is None


def _host_only(cls: Any) -> Any:
    class Check(cls):
        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            assert dy.is_cuda, "on the host"

    return Check


def test_autograd_is_as_before_when_the_gpu_is_not_served() -> None:
    from torch.autograd.function import BackwardCFunction, Function

    during = Function.__dict__["apply"], BackwardCFunction.__dict__["saved_tensors"]
    compat.uninstall()
    try:
        assert Function.__dict__["apply"] is not during[0] and "saved_tensors" not in BackwardCFunction.__dict__
    finally:
        compat.install(cpu=True)
