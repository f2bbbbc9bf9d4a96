"""Kernels of the library that follow each other may overlap: each waits before it touches memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilewright.errors import SimulationError
from tilewright.gemm import SplitK, gemm, gemm_grouped, kernels
from tilewright.gemm.family.compile import stage
from tilewright.gemm.host import plan
from tilewright.gemm.kernel import warp_specialized
from tilewright.sim.checks.dependents import waits_first
from tilewright.sim.events import observing

KERNELS = (
    ("hopper_f16", {}, "data_parallel"),
    ("hopper_f16", {}, "stream_k"),
    ("hopper_f16", {}, "dynamic"),
    ("hopper_f16", {"roles": "one", "consumers": (1, 1), "tile": (64, 64, 64)}, "data_parallel"),
    ("tensorop_f16", {}, "data_parallel"),
    ("tensorop_f16", {}, "stream_k"),
    ("simt_f32", {}, "data_parallel"),
    ("small_m_f16", {}, "data_parallel"),
)


@pytest.mark.parametrize(("name", "change", "decomposition"), KERNELS, ids=lambda x: str(x))
def test_kernels_wait_before_anything_else(name: str, change: dict[str, Any], decomposition: str) -> None:
    function = stage(replace(kernels()[name].config, **change), decomposition)
    assert waits_first(function)
    assert any(getattr(op.attrs.get("atom"), "action", "") == "launch_dependents" for op in function.walk())


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float16)


@pytest.mark.parametrize("work", ("gemm", "grouped", "parallel"))
def test_every_launch_may_begin_early(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the kernels that copy, add up or make tensor maps, too."""
    monkeypatch.setattr(plan, "MUCH_FASTER", 1e9)  # copies to aligned rows count nothing
    found: list[tuple[str, tuple[str, ...]]] = []
    a, b = integers(0, 70, 131), integers(1, 131, 72)
    with observing(lambda name, config: found.append((name, config.attributes))):
        if work == "gemm":
            d = np.asarray(gemm(a, b, machine="cpu").d)
        elif work == "grouped":
            (d,) = gemm_grouped([(a, b)])
        else:
            a, b = integers(0, 64, 128), integers(1, 128, 72)
            d = np.asarray(gemm(a, b, machine="cpu", decomposition=SplitK(2, "parallel")).d)
    np.testing.assert_array_equal(d, a.astype(np.float64) @ b.astype(np.float64))
    assert found and all("use_pdl" in attributes for _, attributes in found), found


def test_a_kernel_that_does_not_wait_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second product reads what the first writes."""
    a, b = integers(0, 64, 64), integers(1, 64, 64)
    entry = kernels()["hopper_f16"]
    entry = entry.only(replace(entry.config, tile=(64, 64, 64), consumers=(1, 1), group=5))

    def twice() -> np.ndarray:
        first = np.asarray(gemm(a, b, kernel=entry, machine="cpu").d)
        return np.asarray(gemm(first, b, kernel=entry, machine="cpu").d)

    whole = twice()
    np.testing.assert_array_equal(whole, (a @ b) @ b)
    monkeypatch.setattr(warp_specialized, "wait_for_earlier", lambda: None)
    entry = entry.only(replace(entry.config, group=6))
    with pytest.raises(SimulationError, match="griddepcontrol_wait"):
        twice()


@pytest.mark.gpu
@pytest.mark.parametrize("shape", ((64, 64, 64), (2048, 1024, 96), (300, 200, 4096)), ids=str)
def test_chains_of_products_on_the_gpu(shape: tuple[int, int, int]) -> None:
    """Each of 200 products reads what the one before wrote; a permutation leaves no sums to round."""
    import torch

    from tilewright.gemm import matmul

    m, n, k = shape
    size = max(n, k)
    order = torch.randperm(size, device="cuda")
    turned = torch.eye(size, device="cuda", dtype=torch.float16)[order]
    x = torch.randint(-3, 4, (m, size), device="cuda").half()
    buffers = [x.clone(), torch.empty_like(x)]
    expected = x
    for step in range(200):
        matmul(buffers[step % 2], turned, out=buffers[(step + 1) % 2])
        expected = expected[:, torch.argsort(order)]
    assert torch.equal(buffers[0], expected)


@pytest.mark.gpu
def test_products_of_a_graph_overlap_with_products_only() -> None:
    """Edges behind PyTorch's kernels are plain ones, which cost less there; in a stream every launch may overlap."""
    import torch

    from tilewright.cuda.capture import may_overlap
    from tilewright.gemm import launcher

    a = torch.randint(-3, 4, (128, 128), device="cuda").half()
    order = torch.randperm(128, device="cuda")
    turned = torch.eye(128, device="cuda", dtype=torch.float16)[order]
    middle, out = torch.empty_like(a), torch.empty_like(a)
    first, second = launcher(a, a, middle), launcher(middle, turned, out)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    seen = []
    with torch.cuda.stream(stream):
        first(), second()
        assert may_overlap(stream.cuda_stream)
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            for step in (a.neg_, first, second, out.neg_):
                step()
                seen.append(may_overlap(stream.cuda_stream))
        for _ in range(3):
            graph.replay()
        stream.synchronize()
    assert seen == [False, True, True, False]
    exact = a.double() @ a.double()
    assert torch.equal(middle.double(), exact)
    assert torch.equal(out.double(), -(exact @ turned.double()))
