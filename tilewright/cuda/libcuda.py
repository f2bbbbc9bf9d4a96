"""The few driver functions that loading and launching need, called through ctypes.

A launch by ctypes with everything prepared takes about a microsecond of Python; the same call through cuda-bindings
builds Python objects for the configuration every time. ``TILEWRIGHT_LIBCUDA`` names another library (tests use it).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_void_p
from typing import Any

from tilewright.errors import MachineError

# CUdevice_attribute
MAX_THREADS_PER_BLOCK = 1
MAX_BLOCK_DIM = (2, 3, 4)
MAX_GRID_DIM = (5, 6, 7)
MULTIPROCESSORS = 16
COMPUTE_MAJOR, COMPUTE_MINOR = 75, 76
MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
# CUfunction_attribute
FUNC_MAX_THREADS_PER_BLOCK = 0
FUNC_SHARED_SIZE_BYTES = 1
FUNC_NUM_REGS = 4
FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
# CUlaunchAttributeID
COOPERATIVE = 2
CLUSTER_DIMENSION = 4
PROGRAMMATIC_STREAM_SERIALIZATION = 6
PREFERRED_CLUSTER_DIMENSION = 11
CAPTURE_MODE_RELAXED = 2


class LaunchAttribute(Structure):
    """``CUlaunchAttribute``; the value is a union, of which only words are used here."""

    _fields_ = [("id", c_int), ("pad", c_int), ("value", c_uint * 16)]


class LaunchConfiguration(Structure):
    """``CUlaunchConfig``."""

    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("smem", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("count", c_uint),
    ]


PROTOTYPES: dict[str, list[Any]] = {
    "cuInit": [c_uint],
    "cuDriverGetVersion": [POINTER(c_int)],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetName": [c_char_p, c_int, c_int],
    "cuDeviceGetAttribute": [POINTER(c_int), c_int, c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxGetCurrent": [POINTER(c_void_p)],
    "cuCtxSetCurrent": [c_void_p],
    "cuCtxGetDevice": [POINTER(c_int)],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [POINTER(c_void_p)],
    "cuCtxSynchronize": [],
    "cuStreamCreate": [POINTER(c_void_p), c_uint],
    "cuStreamDestroy_v2": [c_void_p],
    "cuStreamSynchronize": [c_void_p],
    "cuThreadExchangeStreamCaptureMode": [POINTER(c_int)],
    "cuMemAlloc_v2": [POINTER(c_void_p), c_size_t],
    "cuMemFree_v2": [c_void_p],
    "cuMemsetD8Async": [c_void_p, c_ubyte, c_size_t, c_void_p],
    "cuMemcpyHtoD_v2": [c_void_p, c_void_p, c_size_t],
    "cuMemcpyDtoH_v2": [c_void_p, c_void_p, c_size_t],
    "cuEventCreate": [POINTER(c_void_p), c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuEventElapsedTime": [POINTER(c_float), c_void_p, c_void_p],
    "cuEventDestroy_v2": [c_void_p],
    "cuModuleLoadData": [POINTER(c_void_p), c_char_p],
    "cuModuleGetFunction": [POINTER(c_void_p), c_void_p, c_char_p],
    "cuFuncGetAttribute": [POINTER(c_int), c_int, c_void_p],
    "cuFuncSetAttribute": [c_void_p, c_int, c_int],
    "cuLaunchKernelEx": [POINTER(LaunchConfiguration), c_void_p, c_void_p, c_void_p],
    "cuTensorMapEncodeTiled": [
        c_void_p,
        c_int,
        c_uint,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_int,
        c_int,
        c_int,
        c_int,
    ],
    "cuTensorMapEncodeIm2col": [
        c_void_p,
        c_int,
        c_uint,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_uint,
        c_uint,
        c_void_p,
        c_int,
        c_int,
        c_int,
        c_int,
    ],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuGetErrorString": [c_int, POINTER(c_char_p)],
}

#: Errors after which the context, and so the process, can run nothing more.
STICKY = {
    700: "a kernel read or wrote an address that is not its own",
    714: "a kernel met a fault in hardware",
    715: "a kernel ran an illegal instruction",
    716: "a kernel used a misaligned address",
    717: "a kernel used an address that is not its own, in the window of another address space",
    718: "a kernel jumped out of its code",
    719: "a kernel failed (an assertion, a trap, or a fault)",
    710: "a device-side assertion failed",
    702: "a kernel ran longer than the display's time limit",
}


_TOO_NEW = "The code is for another GPU, or newer than the driver: update the driver, or compile by an older NVRTC"
HINTS = {
    200: _TOO_NEW,
    209: _TOO_NEW,
    218: _TOO_NEW,
    222: _TOO_NEW,
    701: "Registers times threads, or shared memory, exceed one multiprocessor: take smaller blocks or launch bounds",
    720: "Not all blocks of this cooperative launch fit on the device at once: launch fewer, or smaller ones",
    912: "No co-resident clusters of this shape fit on the device: take smaller clusters or less shared memory",
}


@functools.cache
def library() -> ctypes.CDLL:
    """The driver, initialised. Raises MachineError where there is no driver or no GPU."""
    driver = _loaded()
    for function, arguments in PROTOTYPES.items():
        try:
            prototype = getattr(driver, function)
        except AttributeError as error:
            raise MachineError(
                f"the NVIDIA driver is too old: it lacks {function} (CUDA 12 or later is needed)"
            ) from error
        prototype.argtypes, prototype.restype = arguments, c_int
    if code := driver.cuInit(0):
        raise MachineError(f"the NVIDIA driver has no usable GPU: {describe(driver, code)}")
    return driver


def _loaded() -> ctypes.CDLL:
    wrong: OSError | str = ""
    for name in _names():
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            wrong = wrong or error  # of the usual name: the other ones are for some systems
    wrong = wrong or f"NVIDIA has none for {sys.platform}"
    raise MachineError(
        f"no NVIDIA driver here ({wrong}). Arrays on the CPU run in the simulator; "
        'tilewright.cuda.compile(kernel, arch="sm_90a") compiles without a GPU'
    )


def _names() -> tuple[str, ...]:
    """The file name of the driver's library; under WSL it may be where the loader does not look."""
    if chosen := os.environ.get("TILEWRIGHT_LIBCUDA"):
        return (chosen,)
    usual = ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")
    return {"win32": ("nvcuda.dll",), "darwin": ()}.get(sys.platform, usual)


def describe(driver: ctypes.CDLL, code: int) -> str:
    """``CUDA_ERROR_...: what the driver says``."""
    name, text = c_char_p(), c_char_p()
    driver.cuGetErrorName(code, byref(name))
    driver.cuGetErrorString(code, byref(text))
    return f"{(name.value or b'error').decode()} ({code}): {(text.value or b'unknown to this driver').decode()}"


def check(code: int, what: str) -> None:
    """Raise MachineError unless ``code`` is success."""
    if code:
        hint = ""
        if code in STICKY:
            hint = (
                f".\n{STICKY[code]}, now or in an earlier launch; the driver lets this process run nothing "
                "more here. The same program on CPU arrays runs in the simulator, which names line, thread and address"
            )
        elif code in HINTS:
            hint = f".\n{HINTS[code]}"
        raise MachineError.of_driver(code, f"{what}: {describe(library(), code)}{hint}")


def device_attribute(device: int, attribute: int) -> int:
    value = c_int()
    check(
        library().cuDeviceGetAttribute(byref(value), attribute, device),
        f"asking device {device} for attribute {attribute}",
    )
    return value.value


def device_count() -> int:
    value = c_int()
    check(library().cuDeviceGetCount(byref(value)), "counting the GPUs")
    return value.value


def driver_version() -> int:
    """The newest CUDA that the driver knows: 12040 for 12.4."""
    value = c_int()
    check(library().cuDriverGetVersion(byref(value)), "asking for the driver's version")
    return value.value


def device_name(device: int) -> str:
    text = ctypes.create_string_buffer(128)
    check(library().cuDeviceGetName(text, 128, device), f"asking device {device} for its name")
    return text.value.decode()


def handle(device: int) -> int:
    """The driver's handle of device number ``device``."""
    value, count = c_int(), device_count()
    if not 0 <= device < count:
        raise MachineError(f"there is no device cuda:{device}; this machine has {count}")
    check(library().cuDeviceGet(byref(value), device), f"finding device {device}")
    return value.value


@functools.cache
def primary_context(device: int) -> int:
    """The context that PyTorch and the CUDA runtime use too; retained once and kept."""
    value = c_void_p()
    check(library().cuDevicePrimaryCtxRetain(byref(value), handle(device)), f"opening device {device}")
    return value.value or 0


def synchronize(device: int = 0) -> None:
    """Wait for the device; a kernel that failed raises MachineError here."""
    with current(device):
        check(library().cuCtxSynchronize(), f"waiting for cuda:{device}")


def has_context() -> bool:
    """Whether a context is current in this thread."""
    value = c_void_p()
    return library().cuCtxGetCurrent(byref(value)) == 0 and bool(value.value)


def enter(device: int) -> None:
    """Make the device's primary context current for good in a thread that has none, as the CUDA runtime does."""
    if not has_context():
        check(library().cuCtxSetCurrent(primary_context(device)), f"making cuda:{device} current")


class current:
    """``with current(device):`` makes the device's primary context current and restores the caller's."""

    def __init__(self, device: int) -> None:
        self.context = primary_context(device)

    def __enter__(self) -> None:
        check(library().cuCtxPushCurrent_v2(self.context), "making the device current")

    def __exit__(self, *_: object) -> None:
        check(library().cuCtxPopCurrent_v2(byref(c_void_p())), "restoring the caller's device")


@contextlib.contextmanager
def relaxed() -> Iterator[None]:
    """Calls inside are legal while a thread captures a graph; they are not a part of the graph."""
    driver, mode = library(), c_int(CAPTURE_MODE_RELAXED)
    check(driver.cuThreadExchangeStreamCaptureMode(byref(mode)), "relaxing the capture mode")
    try:
        yield
    finally:
        driver.cuThreadExchangeStreamCaptureMode(byref(mode))


def load_module(device: int, cubin: bytes, name: str) -> int:
    """The function handle of kernel ``name``. Legal while the caller captures a graph."""
    driver, module, function = library(), c_void_p(), c_void_p()
    with current(device), relaxed():
        check(driver.cuModuleLoadData(byref(module), cubin), f"loading {name} on cuda:{device}")
        check(driver.cuModuleGetFunction(byref(function), module, name.encode()), f"finding {name} in its module")
    return function.value or 0


def function_attribute(function: int, attribute: int) -> int:
    value = c_int()
    check(library().cuFuncGetAttribute(byref(value), attribute, function), "asking a kernel for an attribute")
    return value.value
