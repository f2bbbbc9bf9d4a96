"""``cutlass.cuda``: machine code (cubins) loaded and launched by hand, through the driver.

A *module* belongs to the context that is current (:func:`~tilewright.cuda.context.initialize_cuda_context`), a
*library* (CUDA 12) to all contexts. Handles are the driver's, as Python ints. Everything raises MachineError where
there is no GPU or the driver refuses.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

from tilewright.cuda import libcuda
from tilewright.errors import ArgumentError, MachineError
from tilewright.ir.types import ScalarType

Cubin = str | os.PathLike[str]
_PROTOTYPES: dict[str, list[Any]] = {
    "cuModuleUnload": [c_void_p],
    "cuLibraryLoadData": [POINTER(c_void_p), c_char_p, c_void_p, c_void_p, c_uint, c_void_p, c_void_p, c_uint],
    "cuLibraryUnload": [c_void_p],
    "cuLibraryGetKernel": [POINTER(c_void_p), c_void_p, c_char_p],
    "cuKernelGetFunction": [POINTER(c_void_p), c_void_p],
    "cuKernelSetAttribute": [c_int, c_int, c_void_p, c_int],
}
_PARAMETERS_BUFFER, _PARAMETERS_SIZE = 1, 2  # CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE


def load_cubin_module(cubin_file: Cubin) -> int:
    """The module in the file ``cubin_file``, loaded into the current context."""
    return load_cubin_module_data(_read(cubin_file, "load_cubin_module"))


def load_cubin_module_data(cubin_data: bytes) -> int:
    """The module whose machine code is ``cubin_data``, loaded into the current context."""
    module = c_void_p()
    libcuda.check(libcuda.library().cuModuleLoadData(byref(module), bytes(cubin_data)), "loading a module")
    return module.value or 0


def unload_cubin_module(module: int) -> None:
    """Give the module back; its kernels must have ended."""
    _call("cuModuleUnload", int(module), what="unloading a module")


def get_kernel_function(module: int, kernel_name: str) -> int:
    """The kernel ``kernel_name`` (as it is called in the machine code) of a module, to be launched."""
    function = c_void_p()
    code = libcuda.library().cuModuleGetFunction(byref(function), int(module), kernel_name.encode())
    libcuda.check(code, f"finding the kernel {kernel_name} in a module")
    return function.value or 0


def load_library(cubin: bytes | Cubin) -> int:
    """The library in ``cubin``: machine code (bytes), or the path of a file with it."""
    return load_library_data(cubin) if isinstance(cubin, bytes) else load_library_from_file(cubin)


def load_library_data(cubin_data: bytes) -> int:
    """The library whose machine code is ``cubin_data``. No context needs to be current."""
    library = c_void_p()
    nothing = (None, None, 0, None, None, 0)  # options of the JIT compiler and of the library
    _call("cuLibraryLoadData", byref(library), bytes(cubin_data), *nothing, what="loading a library")
    return library.value or 0


def load_library_from_file(cubin_file: Cubin) -> int:
    """The library in the file ``cubin_file``."""
    return load_library_data(_read(cubin_file, "load_library_from_file"))


def unload_library(library: int) -> None:
    """Give the library back; its kernels must have ended."""
    _call("cuLibraryUnload", int(library), what="unloading a library")


def get_library_kernel(library: int, kernel_name: str) -> int:
    """The kernel ``kernel_name`` of a library, for all contexts."""
    kernel = c_void_p()
    what = f"finding the kernel {kernel_name} in a library"
    _call("cuLibraryGetKernel", byref(kernel), int(library), kernel_name.encode(), what=what)
    return kernel.value or 0


def get_function_from_kernel(kernel: int) -> int:
    """The function that is launched in the current context for a kernel of a library."""
    function = c_void_p()
    _call("cuKernelGetFunction", byref(function), int(kernel), what="finding a kernel's function")
    return function.value or 0


def set_kernel_attribute(kernel: int, attribute: int, value: int, device_id: int = 0) -> None:
    """Set a ``CUfunction_attribute`` of a library's kernel on one device: 8 is the most dynamic shared memory."""
    arguments = (int(attribute), int(value), int(kernel), libcuda.handle(device_id))
    _call("cuKernelSetAttribute", *arguments, what=f"setting attribute {int(attribute)} of a kernel to {value}")


def launch_kernel(
    kernel: int,
    grid_dims: Sequence[int],
    block_dims: Sequence[int],
    stream: Any = 0,
    smem_size: int = 0,
    kernel_args: Sequence[Any] = (),
) -> None:
    """Launch a function on ``stream``. ``kernel_args``: numbers with a type (``Int32(3)``, ctypes, NumPy scalars), in
    the order of the kernel's parameters; device addresses are ``Int64`` or ``ctypes.c_void_p``.

    More than 48 KiB of ``smem_size`` (bytes of dynamic shared memory) need the kernel's attribute 8 first.
    Raises ArgumentError for an argument whose bytes are not known, and for extents that are not three positive ints.
    """
    grid, block = _extents(grid_dims, "grid_dims"), _extents(block_dims, "block_dims")
    fields = [_parameter(value, i) for i, value in enumerate(kernel_args)]
    packed = _pack(fields)
    # The block and its size are passed by address: both have to live until the launch has returned.
    size = c_size_t(len(packed))
    buffer = ctypes.create_string_buffer(packed, max(len(packed), 1))
    extra = (c_void_p * 5)(
        _PARAMETERS_BUFFER, ctypes.addressof(buffer), _PARAMETERS_SIZE, ctypes.addressof(size), None
    )  # ended by CU_LAUNCH_PARAM_END
    handle = int(getattr(stream, "cuda_stream", stream))
    configuration = libcuda.LaunchConfiguration(grid, block, int(smem_size), handle)
    code = libcuda.library().cuLaunchKernelEx(byref(configuration), int(kernel), None, extra if packed else None)
    libcuda.check(code, "launching a kernel")


def _extents(dims: Sequence[int], what: str) -> tuple[int, int, int]:
    extents = tuple(int(n) for n in dims)
    if len(extents) != 3 or min(extents) < 1:
        raise ArgumentError(f"launch_kernel: {what}={tuple(dims)!r}; it is three ints of at least 1")
    return extents


def _parameter(value: Any, place: int) -> bytes:
    import numpy as np

    kind = getattr(type(value), "ir_type", None)  # a number of the language
    if isinstance(kind, ScalarType) and value.is_static:
        return np.asarray(value.value).astype(kind.dtype).tobytes()
    if isinstance(value, (ctypes._SimpleCData, ctypes.Structure, ctypes.Array, ctypes.Union)):
        return bytes(memoryview(value).cast("B"))
    if isinstance(value, np.generic):
        return value.tobytes()
    raise ArgumentError(
        f"launch_kernel: argument {place} is {value!r} ({type(value).__name__}), whose bytes are not known; give a "
        "number with a type: Int32(3), ctypes.c_void_p(address), numpy.float32(1)"
    )


def _pack(fields: Sequence[bytes]) -> bytes:
    """The parameters in one block, each at a multiple of its alignment (8 at most; that of structures is taken from
    their size)."""
    packed = b""
    for field in fields:
        align = next(n for n in (8, 4, 2, 1) if len(field) % n == 0)
        packed += bytes(-len(packed) % align) + field
    return packed


def _read(path: Cubin, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ArgumentError(f"{what}: {error}") from None


def _call(function: str, *arguments: Any, what: str) -> None:
    try:
        driver_function = getattr(libcuda.library(), function)
    except AttributeError:
        raise MachineError(f"the NVIDIA driver is too old: it lacks {function} (CUDA 12 or later is needed)") from None
    # Functions of CUDA 12, which older drivers lack: they are looked up when they are called.
    driver_function.argtypes, driver_function.restype = _PROTOTYPES[function], c_int
    libcuda.check(driver_function(*arguments), what)
