"""Machine code that is loaded and launched by hand (``cutlass.cuda``), against a driver without a GPU and on a GPU."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
from tests.cuda.test_launch import Driver, built, driver
from tilewright import Float32, Int32, Int64, cute
from tilewright.cuda import modules
from tilewright.cuda.context import _host
from tilewright.errors import ArgumentError, MachineError

__all__ = ["built", "driver"]
ELF = b"\177ELF machine code"


@cute.kernel
def scale(x: cute.Tensor, factor: Float32) -> None:
    i = cute.arch.block_idx()[0] * 32 + cute.arch.thread_idx()[0]
    x[i] = x[i] * factor


@cute.jit
def host(x: cute.Tensor, factor: Float32) -> None:
    scale(x, factor).launch(grid=(2, 1, 1), block=(32, 1, 1))


def compiled() -> tuple[bytes, str]:
    program = cute.compile(host, np.zeros(64, np.float32), Float32(1))
    artifact = cutlass.cuda.compile(program.kernels[0], "sm_90a")
    return artifact.cubin, program.kernels[0].name


def test_modules_and_libraries(driver: Driver, tmp_path: Path) -> None:
    cuda = cutlass.cuda
    cuda.initialize_cuda_context(0)
    path = tmp_path / "kernel.cubin"
    path.write_bytes(ELF)
    for load in (lambda: cuda.load_cubin_module(path), lambda: cuda.load_cubin_module_data(ELF)):
        module = load()
        function = cuda.get_kernel_function(module, "scale")
        cuda.unload_cubin_module(module)
    for source in (
        lambda: cuda.load_library(ELF),
        lambda: cuda.load_library(path),
        lambda: cuda.load_library_data(ELF),
        lambda: cuda.load_library_from_file(str(path)),
    ):
        library = source()
        kernel = cuda.get_library_kernel(library, "scale")
        cuda.set_kernel_attribute(kernel, 8, 100_000)
        assert cuda.get_function_from_kernel(kernel) == function and driver.last.smem_allowed == 100_000
        cuda.unload_library(library)
    assert driver.get("unloaded") == 6
    with pytest.raises(MachineError, match="finding the kernel missing in a library"):
        cuda.get_library_kernel(library, "missing")
    with pytest.raises(MachineError, match="loading a module"):
        cuda.load_cubin_module_data(b"no machine code")
    with pytest.raises(ArgumentError, match=r"load_cubin_module.*nowhere"):
        cuda.load_cubin_module(tmp_path / "nowhere.cubin")


def test_launch_kernel_passes_grid_stream_and_arguments(driver: Driver) -> None:
    cuda = cutlass.cuda
    cuda.initialize_cuda_context(0)
    function = cuda.get_kernel_function(cuda.load_cubin_module_data(ELF), "scale")
    arguments = [Int32(7), Int64(1 << 40), ctypes.c_uint8(3), np.float32(1.5), ctypes.c_void_p(4096)]
    cuda.launch_kernel(function, (4, 2, 1), (64, 1, 1), 5, 1000, arguments)
    last = driver.last
    assert (list(last.grid), list(last.block), last.stream, last.smem) == ([4, 2, 1], [64, 1, 1], 5, 1000)
    record = np.dtype(
        {"names": "abcde", "formats": ["i4", "i8", "u1", "f4", "u8"], "offsets": [0, 8, 16, 20, 24], "itemsize": 32}
    )
    assert np.frombuffer(bytes(last.parameters[: last.size]), record)[0].tolist() == (7, 1 << 40, 3, 1.5, 4096)
    cuda.launch_kernel(function, (1, 1, 1), (1, 1, 1))
    assert driver.last.launches == 2
    with pytest.raises(ArgumentError, match=r"argument 0 is 3 \(int\), whose bytes are not known"):
        cuda.launch_kernel(function, (1, 1, 1), (1, 1, 1), kernel_args=[3])
    with pytest.raises(ArgumentError, match=r"grid_dims=\(1, 1\); it is three ints"):
        cuda.launch_kernel(function, (1, 1), (1, 1, 1))
    for extents in (((1, 0, 1), (1, 1, 1)), ((1, 1, 1), (1, 1, 0))):
        with pytest.raises(ArgumentError, match="it is three ints of at least 1"):
            cuda.launch_kernel(function, *extents)


@pytest.mark.gpu
def test_a_compiled_kernel_is_loaded_and_launched_by_hand() -> None:
    cuda = cutlass.cuda
    cubin, name = compiled()
    cuda.initialize_cuda_context(0)
    given, back = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    address, stream = cuda.allocate(given.nbytes), cuda.stream_create()
    cuda.memcpy_h2d(given, address)
    library = cuda.load_library_data(cubin)
    function = cuda.get_function_from_kernel(cuda.get_library_kernel(library, name))
    cuda.launch_kernel(function, (2, 1, 1), (32, 1, 1), stream, 0, [ctypes.c_void_p(address), Float32(3)])
    cuda.stream_sync(stream)
    module = cuda.load_cubin_module_data(cubin)
    function = cuda.get_kernel_function(module, name)
    cuda.launch_kernel(function, (2, 1, 1), (32, 1, 1), stream, 0, [ctypes.c_void_p(address), Float32(2)])
    cuda.stream_sync(stream)
    cuda.memcpy_d2h(address, back)
    np.testing.assert_array_equal(back, 6 * given)
    cuda.unload_cubin_module(module)
    cuda.unload_library(library)
    cuda.stream_destroy(stream)
    cuda.deallocate(address)


def test_a_null_handle_is_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "_call", lambda *arguments, **more: None)
    assert modules.get_library_kernel(1, "name") == modules.get_function_from_kernel(1) == 0


@pytest.mark.parametrize("dims", [(0, 1, 1), (1, 1, 0), (-1, 1, 1), (1, 1), (1, 1, 1, 1)])
def test_a_grid_and_a_block_are_three_positive_ints(dims: tuple[int, ...]) -> None:
    for grid, block in ((dims, (32, 1, 1)), ((1, 1, 1), dims)):
        with pytest.raises(ArgumentError, match="three ints of at least 1"):
            cutlass.cuda.launch_kernel(0, grid, block, 0, 0)


def test_copies_stay_within_the_array() -> None:
    array = np.zeros(4, np.uint8)
    assert [_host(array, size)[1] for size in (None, 4, 3)] == [4, 4, 3]
    with pytest.raises(ArgumentError, match="size_in_bytes=5, but the array has 4 bytes"):
        _host(array, 5)
    with pytest.raises(ArgumentError, match="contiguous"):
        _host(array[::2], None)
    assert _host(4096, 5) == (4096, 5)
    with pytest.raises(ArgumentError, match="needs size_in_bytes"):
        _host(4096, None)
