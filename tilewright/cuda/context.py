"""``cutlass.cuda``: contexts, devices, streams and raw device memory for host programs, through the driver.

None of these is for the inside of a ``@cute.jit`` or ``@cute.kernel`` function. Functions that ask for something only a
GPU has raise MachineError without a GPU; :func:`initialize_cuda_context` does nothing then, so that a program
that begins with it runs in the simulator.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_void_p
from typing import Any, NamedTuple

from tilewright.cuda import libcuda
from tilewright.errors import ArgumentError, MachineError


class DeviceInfo(NamedTuple):
    """A device: its number, name, compute capability, multiprocessors and shared memory of a block in bytes."""

    device: int
    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    shared_memory_per_block: int


def initialize_cuda_context(device_id: int = 0, flags: int = 0) -> int | None:
    """Make the primary context of device ``device_id`` current for this thread; gives its handle.

    None on a machine without a GPU, where arrays are on the CPU and kernels run in the simulator. ``flags`` are those
    of ``cuCtxCreate``; the primary context belongs to all libraries of the process and takes only 0.
    """
    if flags:
        raise ArgumentError(f"initialize_cuda_context: flags={flags}; the primary context takes no flags")
    try:
        libcuda.library()
    except MachineError:
        return None
    context = libcuda.primary_context(device_id)
    libcuda.check(libcuda.library().cuCtxSetCurrent(context), f"making cuda:{device_id} current")
    return context


def context_destroy(context: int | None = None) -> None:
    """Take the context from this thread. The primary context itself stays: other libraries may hold it."""
    if context is not None or _has_gpu():
        libcuda.check(libcuda.library().cuCtxSetCurrent(None), "taking the context from this thread")


def get_current_device() -> int:
    """The number of the device whose context is current; 0 without a current context."""
    value = c_int()
    return 0 if libcuda.library().cuCtxGetDevice(byref(value)) else value.value


def get_device(device_id: int = 0) -> int:
    """The driver's handle of device number ``device_id``."""
    return libcuda.handle(device_id)


def get_device_attribute(attribute: int, device_id: int = 0) -> int:
    """The value of a ``CUdevice_attribute``, given by its number (an enumeration of cuda-bindings is one)."""
    return libcuda.device_attribute(libcuda.handle(device_id), int(attribute))


def get_compute_capability_major_minor(device_id: int = 0) -> tuple[int, int]:
    """(major, minor) of the device."""
    major, minor = (get_device_attribute(a, device_id) for a in (libcuda.COMPUTE_MAJOR, libcuda.COMPUTE_MINOR))
    return major, minor


def get_device_info(device_id: int = 0) -> DeviceInfo:
    """The properties of the device."""
    return DeviceInfo(
        device_id,
        libcuda.device_name(libcuda.handle(device_id)),
        get_compute_capability_major_minor(device_id),
        get_device_attribute(libcuda.MULTIPROCESSORS, device_id),
        get_device_attribute(libcuda.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device_id),
    )


def get_driver_version() -> int:
    """The CUDA version that the driver knows: 12040 for 12.4."""
    return libcuda.driver_version()


# -- streams -------------------------------------------------------------------------------------------------------


def stream_create(device_id: int = 0) -> int:
    """A new stream's handle; streams are given to jit functions as they are."""
    stream = c_void_p()
    with libcuda.current(device_id):
        libcuda.check(libcuda.library().cuStreamCreate(byref(stream), 0), "making a stream")
    return stream.value or 0


def stream_sync(stream: Any = None) -> None:
    """Wait until everything in the stream has run."""
    if _has_gpu():  # the simulator has run everything when a launch returns
        with libcuda.current(get_current_device()):
            libcuda.check(libcuda.library().cuStreamSynchronize(int(stream or 0)), "waiting for a stream")


def stream_destroy(stream: Any) -> None:
    """Give the stream back, once what is in it has run."""
    libcuda.check(libcuda.library().cuStreamDestroy_v2(int(stream)), "destroying a stream")


# -- memory --------------------------------------------------------------------------------------------------------


def allocate(size_in_bytes: int, device_id: int = 0) -> int:
    """The address of fresh device memory; give it to ``cute.make_ptr`` or ``deallocate``."""
    address = c_void_p()
    with libcuda.current(device_id):
        code = libcuda.library().cuMemAlloc_v2(byref(address), size_in_bytes)
        libcuda.check(code, f"allocating {size_in_bytes} bytes on cuda:{device_id}")
    return address.value or 0


def deallocate(address: int) -> None:
    """Give device memory back."""
    libcuda.check(libcuda.library().cuMemFree_v2(int(address)), "freeing device memory")


def memcpy_h2d(host: Any, device: int, size_in_bytes: int | None = None) -> None:
    """Copy from the host to the device: from an array (a writable buffer) or an address, to an address."""
    address, size = _host(host, size_in_bytes)
    libcuda.check(libcuda.library().cuMemcpyHtoD_v2(int(device), address, size), "copying to the device")


def memcpy_d2h(device: int, host: Any, size_in_bytes: int | None = None) -> None:
    """Copy from the device to the host: from an address, to an array (a writable buffer) or an address."""
    address, size = _host(host, size_in_bytes)
    libcuda.check(libcuda.library().cuMemcpyDtoH_v2(address, int(device), size), "copying from the device")


def _host(host: Any, size: int | None) -> tuple[int, int]:
    if isinstance(host, int):
        if size is None:
            raise ArgumentError("a copy from or to an address needs size_in_bytes")
        return host, size
    view = memoryview(host)
    if not view.contiguous:
        raise ArgumentError("a copy needs a contiguous array")
    if size is not None and size > view.nbytes:
        raise ArgumentError(f"size_in_bytes={size}, but the array has {view.nbytes} bytes")
    return ctypes.addressof(ctypes.c_char.from_buffer(view.cast("B"))), view.nbytes if size is None else size


def _has_gpu() -> bool:
    try:
        libcuda.library()
    except MachineError:
        return False
    return True
