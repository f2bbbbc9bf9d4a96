"""On a real GPU: streams, graphs, shared memory, clusters, failures, the cost of a launch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.cuda.build import Kernel, device_pointer, pointer
from tests.cuda.test_text import saxpy
from tests.cuda.toy import ToyBarrier
from tilewright.ir.runtime import LaunchConfig
from tilewright.ir.types import I32, U64, VecType

pytestmark = pytest.mark.gpu
N = 1 << 16


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def machine() -> Any:
    from tilewright.cuda.machine import machine

    return machine()


def blocks(n: int, block: int = 256) -> LaunchConfig:
    return LaunchConfig((-(-n // (4 * block)), 1, 1), (block, 1, 1))


def test_saxpy_on_the_current_stream(torch: Any, machine: Any) -> None:
    kernel = machine.load(saxpy().done())
    x, y = torch.randn(N, device="cuda"), torch.randn(N, device="cuda")
    want = 3 * x + y
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        kernel(blocks(N), [device_pointer(x), device_pointer(y), 3.0, N])
        torch.cuda.current_stream().synchronize()
    torch.testing.assert_close(y, want)


def test_a_launch_is_captured_in_a_graph(torch: Any, machine: Any) -> None:
    """The very first launch, module loading included, may happen while a graph is captured."""
    kernel = machine.load(saxpy().done())
    x, y = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    args = [device_pointer(x), device_pointer(y), 2.0, N]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(blocks(N), args)
        kernel(blocks(N), args)
    assert float(y.sum()) == 0.0, "capturing runs nothing"
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert float(y.min()) == float(y.max()) == 12.0


def test_a_given_stream_is_used(torch: Any, machine: Any) -> None:
    kernel = machine.load(saxpy().done())
    x, y = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    config = blocks(N)._replace(stream=stream.cuda_stream)
    kernel(config, [device_pointer(x), device_pointer(y), 2.0, N])
    stream.synchronize()
    assert float(y.min()) == 2.0


def test_two_hundred_kilobytes_of_shared_memory(torch: Any, machine: Any) -> None:
    """Each thread writes at the far end, reads its neighbour's number after a barrier."""
    size = 160_000
    k = Kernel("large", {"smem_bytes": size}, out=pointer(I32))
    shared = k.smem_alloc(size - 1024, 1024, 16, I32, "far")
    t = k.sreg("tid.x")
    k.store(k.at(shared, t), k.binary("mul", t, k.number(3)))
    k.call(ToyBarrier(), [])
    k.store(k.at(k.out, t), k.load(k.at(shared, k.binary("xor", t, k.number(1)))))
    out = torch.zeros(256, dtype=torch.int32, device="cuda")
    machine.load(k.done())(LaunchConfig((1, 1, 1), (256, 1, 1)), [device_pointer(out)])
    assert out.tolist() == [(t ^ 1) * 3 for t in range(256)]


@pytest.mark.parametrize("cluster", (1, 2, 4, 8, 16))
def test_clusters(torch: Any, machine: Any, cluster: int) -> None:
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("clusters need Hopper")
    k = Kernel("ranks", {"max_threads": 32}, rank=pointer(I32), size=pointer(I32))
    k.store(k.at(k.rank, k.sreg("ctaid.x")), k.sreg("cluster_ctarank"))
    k.store(k.at(k.size, k.sreg("ctaid.x")), k.sreg("cluster_nctaid.x"))
    rank, size = (torch.full((32,), -1, dtype=torch.int32, device="cuda") for _ in range(2))
    allowed = ("non_portable_cluster",) if cluster > 8 else ()
    config = LaunchConfig((32, 1, 1), (32, 1, 1), (cluster, 1, 1), attributes=allowed)
    machine.load(k.done())(config, [device_pointer(rank), device_pointer(size)])
    assert rank.tolist() == [b % cluster for b in range(32)] and set(size.tolist()) == {cluster}


def test_vector_parameters_arrive(torch: Any, machine: Any) -> None:
    k = Kernel("described", None, n=I32, map=VecType(U64, 16), out=pointer(U64))
    k.store(k.at(k.out, k.sreg("tid.x")), k.extract(k.map, 11))
    out = torch.zeros(4, dtype=torch.int64, device="cuda")
    descriptor = b"".join(i.to_bytes(8, "little") for i in range(100, 116))
    machine.load(k.done())(LaunchConfig((1, 1, 1), (4, 1, 1)), [1, descriptor, device_pointer(out)])
    assert out.tolist() == [111] * 4


FAULT = """
import torch
from tests.cuda.build import Kernel, device_pointer, pointer
from tilewright.cuda.machine import machine
from tilewright.errors import MachineError
from tilewright.ir.core import Location
from tilewright.ir.runtime import LaunchConfig
from tilewright.ir.types import F32, I32
k = Kernel("fault", None, x=pointer(F32), n=I32)
k.loc = Location("/user/kernel.py", 33)
{body}
x = torch.zeros(32, device="cuda")
gpu = machine()
try:
    gpu.load(k.done())(LaunchConfig((1, 1, 1), (1, 1, 1)), [device_pointer(x), 5])
    gpu.synchronize()
except MachineError as error:
    print("caught", error)
"""


OUT_OF_BOUNDS = "k.store(k.at(k.x, k.binary('mul', k.n, k.number(1 << 28))), k.constant(F32, 1.0))"
ASSERTION = "k.emit('assert', (k.compare('lt', k.n, k.number(3)),), (), {'message': 'small n'})"


@pytest.mark.parametrize("body, words", ((OUT_OF_BOUNDS, "not its own"), (ASSERTION, "/user/kernel.py:33")))
def test_faults_of_kernels_are_explained(body: str, words: str) -> None:
    code = FAULT.replace("{body}", body)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    output = done.stdout + done.stderr
    assert "caught waiting for cuda:0" in output and words in output, output


def test_the_table_of_architectures_agrees_with_the_driver() -> None:
    from tilewright.cuda import libcuda, toolchain
    from tilewright.cuda.limits import limits
    from tilewright.ir.target import MULTIPROCESSORS, architecture
    from tilewright.utils import HardwareInfo

    arch, info = architecture(limits(0).arch), HardwareInfo()
    assert arch.smem == limits(0).smem == info.get_shared_memory_per_block()
    assert info.get_compute_capability() == divmod(arch.capability, 10)
    threads = libcuda.device_attribute(libcuda.handle(0), 39)  # CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR
    assert threads == 32 * MULTIPROCESSORS[arch.capability].warps
    assert info.get_driver_version() == libcuda.driver_version() >= 12000
    assert toolchain.nvrtc_for(arch).fits(toolchain.driver_version())
