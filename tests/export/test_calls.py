"""An exported function sends the driver what a call in Python sends it, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilewright as cutlass
from tests.export.harness import Driver, GpuArray, needs_compiler, parameter_sizes, program_text, run_c
from tilewright import cute
from tilewright.cute.runtime import from_dlpack, load_module, make_fake_compact_tensor, make_fake_stream

pytestmark = needs_compiler
STREAM = 0x5500


@cute.kernel
def scaled_add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, alpha: cute.Float32):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < cute.size(a):
        c[i] = a[i] + alpha * b[i]


@cute.jit
def scaled_add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, alpha: cute.Float32, stream: Any):
    grid = (cute.ceil_div(cute.size(a), 128), 1, 1)
    scaled_add_kernel(a, b, c, alpha).launch(grid=grid, block=(128, 1, 1), stream=stream)


def compiled_add() -> Any:
    n = cute.sym_int()
    tensors = [make_fake_compact_tensor(cutlass.Float32, (n,)) for _ in range(3)]
    return cute.compile(scaled_add, *tensors, cutlass.Float32(1), make_fake_stream())


def both(executor: Any, args: tuple[Any, ...], driver: Driver, folder: Path, monkeypatch: Any, **options: Any) -> Any:
    """What Python, the C program and the function that was loaded back send to the driver; all must be the same."""
    monkeypatch.setenv("FAKE_PARAMETERS", parameter_sizes(executor.kernels))
    executor(*args)
    expected = driver.calls()
    executor.export_to_c(str(folder), "f", **options)
    done = run_c(program_text(executor, "f", args), folder, ["f"], driver)
    assert done.returncode == 0, done.stderr
    found = driver.calls()
    assert found[:4] == expected[:4] and len(found.unloads) == len(executor.kernels)
    load_module(folder / "f.o").f(*args)
    assert driver.calls() == expected
    return expected


def test_elementwise(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = (*(GpuArray(0x10000 * i, (1000,), "<f4") for i in (1, 2, 3)), 0.1, STREAM)
    found = both(compiled_add(), args, driver, tmp_path, monkeypatch)
    assert len(found.loads) == 1 and found.maps == found.attributes == []
    (launch,) = found.launches
    assert "grid 8 1 1 block 128 1 1 smem 0 stream 0x5500" in launch
    assert launch.split()[-5:] == ["0000010000000000", "e8030000", "0000020000000000", "0000030000000000", "cdcccc3d"]


@cute.kernel
def copy_kernel(a: cute.Tensor, b: cute.Tensor):
    i, j, _ = cute.arch.block_idx()
    b[i, j] = a[i, j]


@cute.jit
def copy(a: cute.Tensor, b: cute.Tensor):
    copy_kernel(a, b).launch(grid=(*a.shape, 1), block=(1, 1, 1))


@pytest.mark.parametrize("wide", [False, True])
def test_dynamic_layouts(wide: bool, driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = GpuArray(0x1000, (12, 40), "<f2", (64, 1)), GpuArray(0x200000, (12, 40), "<f2", (1, 16))
    marked = [from_dlpack(x, use_32bit_stride=not wide).mark_layout_dynamic() for x in arrays]
    found = both(cute.compile(copy, *marked), tuple(marked), driver, tmp_path, monkeypatch)
    stride = (64).to_bytes(8 if wide else 4, "little").hex()
    assert stride in found.launches[0].split() and "grid 12 40 1" in found.launches[0]


def test_static_layouts_have_an_address_only(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = tuple(from_dlpack(GpuArray(a, (4, 8), "<f4"), assumed_align=16) for a in (0x1000, 0x2000))
    found = both(cute.compile(copy, *arrays), arrays, driver, tmp_path, monkeypatch)
    assert found.launches[0].split()[-2:] == ["0010000000000000", "0020000000000000"]
    assert "dynamic_" not in (tmp_path / "f.h").read_text()
