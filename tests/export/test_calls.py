"""An exported function sends the driver what a call in Python sends it, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tilewright as cutlass
from tests.export.harness import Driver, GpuArray, needs_compiler, parameter_sizes, program_text, run_c
from tilewright import cute
from tilewright.cute.runtime import from_dlpack, load_module, make_fake_compact_tensor, make_fake_stream
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import MemSpace
from tilewright.lang.tensors.host_pointer import HostPointer

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
    assert found[1:4] == expected[1:4]
    # Python loads a kernel at its first launch, C all of them at once.
    assert set(expected.loads) <= set(found.loads) and len(found.loads) == len(found.unloads) == len(executor.kernels)
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


class Shape(NamedTuple):
    rows: cutlass.Int32
    columns: cutlass.Int64


@dataclass
class Options:
    scale: cutlass.Float64
    flag: cutlass.Boolean
    static: int


@cute.kernel
def many_kernel(
    out: cute.Pointer,
    a: cutlass.Int8,
    b: cutlass.Uint8,
    c: cutlass.Int16,
    d: cutlass.Uint16,
    e: cutlass.Uint32,
    f: cutlass.Int64,
    g: cutlass.Uint64,
    h: cutlass.Float16,
    i: cutlass.BFloat16,
    shape,
    options,
):
    total = a + b + c + d + cutlass.Int64(e) + f + cutlass.Int64(g) + shape.rows + shape.columns
    out[0] = cutlass.Float32(h) + cutlass.Float32(i) + cutlass.Float32(options.scale) + cutlass.Float32(total)
    if options.flag:
        out[1] = cutlass.Float32(0)


@cute.jit
def many(
    out: cute.Pointer,
    a: cutlass.Int8,
    b: cutlass.Uint8,
    c: cutlass.Int16,
    d: cutlass.Uint16,
    e: cutlass.Uint32,
    f: cutlass.Int64,
    g: cutlass.Uint64,
    h: cutlass.Float16,
    i: cutlass.BFloat16,
    shape,
    options,
):
    many_kernel(out, a, b, c, d, e, f, g, h, i, shape, options).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_numbers_of_every_type_pointers_and_groups(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = HostPointer(DevicePointer(0x7000, "cuda:0", 0x7000, 0x8000, None), cutlass.Float32, MemSpace.GMEM, 16)
    numbers = (-3, 200, -300, 60000, 4000000000, -(1 << 40), (1 << 64) - 1, 1.5, -2.25)
    kinds = (
        cutlass.Int8,
        cutlass.Uint8,
        cutlass.Int16,
        cutlass.Uint16,
        cutlass.Uint32,
        cutlass.Int64,
        cutlass.Uint64,
        cutlass.Float16,
        cutlass.BFloat16,
    )
    given = tuple(kind(x) for kind, x in zip(kinds, numbers, strict=True))
    options = Options(cutlass.Float64(0.1), cutlass.Boolean(True), 7)
    args = (out, *given, Shape(cutlass.Int32(5), cutlass.Int64(6)), options)
    found = both(cute.compile(many, *args), args, driver, tmp_path, monkeypatch)
    assert found.launches[0].split()[-14:-4] == [
        "0070000000000000",
        "fd",
        "c8",
        "d4fe",
        "60ea",
        "00286bee",
        "0000000000ffffff",
        "ff" * 8,
        "003e",
        "10c0",
    ]


@cute.kernel
def step_kernel(a: cute.Tensor, i: cute.Int32):
    smem = cute.arch.get_dyn_smem(cutlass.Float32)
    smem[0] = a[0]
    a[i] = smem[0]


@cute.kernel
def end_kernel(a: cute.Tensor, total: cute.Int32):
    a[0] = cutlass.Float32(total)


@cute.jit
def several(a: cute.Tensor, steps: cute.Int32, stride: cute.Int32, bytes: cute.Int32):
    total = cutlass.Int32(0)
    product = cutlass.Int32(1)
    for i in range(0, steps, stride):
        step_kernel(a, i).launch(grid=(i + 1, 1, 1), block=(32, 1, 1), smem=bytes)
        total = total + i * i
        product = product * 3 - total
    if total > 10:
        end_kernel(a, total).launch(grid=(1, 2, 1), block=(32, 1, 1), use_pdl=True)
    else:
        end_kernel(a, product // 4).launch(grid=(1, 1, 1), block=(1, 1, 1), cooperative=True)
    step_kernel(a, product % 7).launch(grid=(total - 5, 1, 1), block=(32, 1, 1), smem=49140)


@pytest.mark.parametrize("steps, stride, launches", [(8, 2, 6), (3, 1, 4)])
def test_several_kernels_loops_and_branches(
    steps: int, stride: int, launches: int, driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With (3, 1) the sum is 5: the last launch is of no block, and is left out. Its shared memory is more than 48 KiB
    with the 16 bytes that the driver says are static."""
    a = GpuArray(0x4000, (100,), "<f4")
    executor = cute.compile(several, a, 8, 1, 128)
    found = both(executor, (a, steps, stride, 256), driver, tmp_path, monkeypatch)
    assert len(found.launches) == launches
    assert ("attribute 6 = 1" if total(steps, stride) > 10 else "attribute 2 = 1") in found.launches[-2 + (steps == 3)]
    assert len(found.attributes) == (steps == 8)


def total(steps: int, stride: int) -> int:
    return sum(i * i for i in range(0, steps, stride))


def test_the_newest_code_that_the_device_runs(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python compiles for the very device; of the exported code that for sm_89 is taken, wherever it stands."""
    args = (*(GpuArray(0x10000 * i, (1000,), "<f4") for i in (1, 2, 3)), 0.1, STREAM)
    monkeypatch.setenv("FAKE_CAPABILITY", "89")
    for i, archs in enumerate((("sm_80", "sm_89", "sm_90a"), ("sm_89", "sm_86", "sm_80"))):
        both(compiled_add(), args, driver, tmp_path / str(i), monkeypatch, gpu_arch=archs)


@cute.jit
def in_clusters(a: cute.Tensor):
    end_kernel(a, 1).launch(grid=(32, 1, 1), block=(32, 1, 1), cluster=(16, 1, 1), non_portable_cluster=True)


def test_clusters_of_sixteen_blocks(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = GpuArray(0x4000, (100,), "<f4")
    found = both(cute.compile(in_clusters, a), (a,), driver, tmp_path, monkeypatch, gpu_arch="sm_90a")
    assert found.attributes == ["attribute end_kernel 14 1"]
