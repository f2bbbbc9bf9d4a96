"""The library's GEMM kernels, exported: tensor maps, Stream-K's numbers and its workspace, clusters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.export.harness import Driver, GpuArray, needs_compiler, run_c
from tests.export.test_calls import both
from tilewright import cute
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.registry import KERNELS
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.family.base import kernel_of
from tilewright.gemm.schedule.launch_arguments import decomposition_of, workspace_of
from tilewright.gemm.schedule.streamk import StreamK

pytestmark = needs_compiler
WORKSPACE, FLAGS = 0x8000000, 0x70000000


def gemm(config: Any, shape: tuple[int, int, int], stream_k: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """The compiled kernel of ``config`` and its arguments, on an imaginary GPU."""
    m, n, k = shape
    places = ((m, k), (n, k), (m, n), (m, n))
    operands = zip(places, (config.a, config.b, config.c, config.c), strict=True)
    tensors = []
    for i, ((rows, columns), operand) in enumerate(operands, 1):
        major = operand.major.name == "K"
        stride = (columns, 1) if major else (1, rows)
        array = GpuArray(0x1000000 * i, (rows, columns), "<f2", stride)
        tensors.append(Matrix.of("operand", array).tensor(operand))
    plan = StreamK.of(shape, config.tile, multiprocessors=132, occupancy=1, fragments=config.fragments)
    shares = plan if stream_k else None
    needed = workspace_of(shares, config, (*shape, 1), False)
    partials, flags = max(1, needed.partials), max(1, needed.flags)
    workspace = GpuArray(WORKSPACE, (partials,), "<f4"), GpuArray(FLAGS, (flags,), "<i4")
    how = decomposition_of(shares, config, *workspace, 132, False)
    args = (*tensors, LinearCombination(config.acc_dtype(1.5), config.acc_dtype(0.25)), how)
    executor = cute.compile(kernel_of(config), *args)
    return executor, executor.arrange(args, {})


def test_tma_gemm(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = KERNELS["hopper_f16"].config
    executor, args = gemm(config, (520, 264, 96))
    found = both(executor, args, driver, tmp_path, monkeypatch, gpu_arch="sm_90a")
    assert len(found.maps) == 3 and "smem 229440" in found.launches[0] and len(found.attributes) == 1


def test_clusters(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(KERNELS["hopper_f16"].config, cluster=(2, 1))
    executor, args = gemm(config, (512, 512, 128))
    found = both(executor, args, driver, tmp_path, monkeypatch, gpu_arch="sm_90a")
    assert "attribute 4 = 2 1 1" in found.launches[0] or executor.kernels[0].attrs["cluster"]


def test_stream_k(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executor, args = gemm(KERNELS["hopper_f16"].config, (1152, 4096, 512), stream_k=True)
    assert args[5].plan.sk_tiles > 0
    found = both(executor, args, driver, tmp_path, monkeypatch, gpu_arch="sm_90a")
    workspace = WORKSPACE.to_bytes(8, "little").hex()
    assert "grid 132 1 1" in found.launches[0] and workspace in found.launches[0].split()


def test_the_header_says_how_large_the_workspace_is(driver: Driver, tmp_path: Path) -> None:
    config, shape = KERNELS["hopper_f16"].config, (1152, 4096, 512)
    executor, args = gemm(config, shape, stream_k=True)
    needed = workspace_of(args[5].plan, config, (*shape, 1), False)
    sizes = {"PARTIALS_BYTES": 4 * needed.partials, "FLAGS_BYTES": 4 * needed.flags}
    executor.export_to_c(str(tmp_path), "gemm", gpu_arch="sm_90a", constants=sizes)
    prints = "".join(f'printf("%lld\\n", (long long)gemm_{name});' for name in sizes)
    text = '#include <stdio.h>\n#include "gemm.h"\nint main(void) {' + prints + " return 0; }"
    assert run_c(text, tmp_path, ["gemm"], driver).stdout.split() == [str(size) for size in sizes.values()]
    assert min(sizes.values()) > 0


def test_ampere_gemm_for_two_architectures(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executor, args = gemm(KERNELS["tensorop_f16"].config, (300, 264, 96))
    monkeypatch.setenv("FAKE_CAPABILITY", "80")
    found = both(executor, args, driver, tmp_path, monkeypatch, gpu_arch=("sm_80", "sm_90a"))
    assert found.maps == [] and len(found.loads) == 1
