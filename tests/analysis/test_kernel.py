"""analyse_kernel: a small kernel compiled for every architecture, and artifacts made up to have given resources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import cute
from tilewright.analysis import KernelReport, analyse_kernel, occupancy
from tilewright.cuda import Artifact
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError
from tilewright.layout import Layout
from tilewright.utils import SmemAllocator


@cute.kernel
def reverse_kernel(mX: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    tile = SmemAllocator().allocate_tensor(mX.element_type, Layout(64), 16)
    mine = cute.make_rmem_tensor(1, mX.element_type)
    mine[0] = mX[tidx]
    tile[tidx] = mine[0]
    cute.arch.sync_threads()
    mX[tidx] = tile[63 - tidx]


@cute.jit
def reverse(mX: cute.Tensor):
    reverse_kernel(mX).launch(grid=1, block=64)


@cute.jit
def reverse_twice(mX: cute.Tensor):
    reverse_kernel(mX).launch(grid=1, block=64)
    reverse_kernel(mX).launch(grid=1, block=128)


def compiled(function: Any) -> Any:
    return cute.compile(function, from_dlpack(np.zeros(64, np.float32)))


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a"])
def test_a_compiled_kernel(arch: str) -> None:
    executor = compiled(reverse)
    report = analyse_kernel(executor, arch, grid=(1000, 2))
    assert (report.threads, report.smem, report.spills, report.arch) == (64, 256, 0, arch)
    assert 4 <= report.registers <= 32
    assert report.occupancy == occupancy(64, report.registers, 256, arch)
    assert report.waves is not None and report.waves.grid == 2000
    assert report.fragments is not None and [f.name for f in report.fragments.fragments] == ["mine"]
    assert report == analyse_kernel(executor.kernels[0], arch, grid=2000)


def artifact(registers: int, static: int = 0, dynamic: int = 0) -> Artifact:
    log = (
        "ptxas info    : 8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
        f"ptxas info    : Used {registers} registers, {static} bytes smem, 400 bytes cmem[0]\n"
    )
    return Artifact("made_up", "sm_90a", "", b"", log, dynamic)


def test_an_artifact_and_what_is_printed() -> None:
    report = analyse_kernel(artifact(244, dynamic=64 << 10), threads=128, grid=264)
    assert (report.registers, report.spills, report.stack, report.smem) == (244, 28, 8, 65536)
    assert (report.occupancy.blocks, report.occupancy.limited_by) == (2, ("registers",))
    text = str(report)
    assert text.startswith("made_up for sm_90a\n") and "65,536 bytes" in text
    assert "blocks allowed by        blocks 32, warps 16, registers 2, shared memory 3" in text
    assert "1 wave of 264 for 264 blocks: 100% full, on 132 multiprocessors" in text


def test_shared_memory_of_the_launch_counts() -> None:
    def report(**options: Any) -> KernelReport:
        return analyse_kernel(artifact(32, static=1024, dynamic=2048), threads=128, **options)

    assert report().smem == 3072
    assert report(smem=1024).smem == 3072
    assert report(smem=100 << 10).smem == (101 << 10) and report(smem=100 << 10).occupancy.blocks == 2


def test_mistakes() -> None:
    with pytest.raises(ArgumentError, match="threads="):
        analyse_kernel(artifact(32))
    with pytest.raises(ArgumentError, match=r"not 2 \(.*reverse.*\): pass .kernels\[i\]"):
        analyse_kernel(compiled(reverse_twice))
    with pytest.raises(ArgumentError, match="takes a staged or compiled kernel"):
        analyse_kernel("gemm")
