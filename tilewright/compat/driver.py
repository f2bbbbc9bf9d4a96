"""The CUDA driver's names in ``cuda.bindings.driver``, served by the CPU: one device, whose memory is the host's and
whose streams have ended their work whenever they are asked."""

from __future__ import annotations

import ctypes
import time
from enum import IntEnum
from typing import Any

from tilewright.compat import device as gpu
from tilewright.compat import recording
from tilewright.compat.device import ATTRIBUTES, NAME
from tilewright.compat.memory import address_of, allocate, fill, free, move

__all__ = ["CUdevice_attribute", "CUdeviceptr", "CUevent", "CUresult", "CUstream"]


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_DEVICE = 101
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_NOT_SUPPORTED = 801


_OK = CUresult.CUDA_SUCCESS
_INVALID = CUresult.CUDA_ERROR_INVALID_VALUE


class _Handle:
    """A handle of the driver's as an object that is a number."""

    def __init__(self, init_value: Any = 0, void_ptr: Any = 0) -> None:
        self.value = int(init_value)

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def getPtr(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (int, _Handle)) and int(other) == self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.value:#x}>"


class CUstream(_Handle):
    """A stream: what is launched on it has run when the launch returns."""


class CUevent(_Handle):
    """An event: the moment when it was recorded."""


class CUcontext(_Handle):
    """The one context."""


class CUdevice(_Handle):
    """The one device, 0."""


class CUdeviceptr(_Handle):
    """An address, in the memory of the host."""


class CUgraph(_Handle):
    """A captured graph."""


class CUgraphExec(_Handle):
    """A graph ready to be launched."""


_numbers = {f"CU_DEVICE_ATTRIBUTE_{name}": i for i, name in enumerate(ATTRIBUTES, 1)}
CUdevice_attribute = IntEnum("CUdevice_attribute", _numbers)  # type: ignore[misc]  # made of a table
CUstream_flags = IntEnum("CUstream_flags", {"CU_STREAM_DEFAULT": 0, "CU_STREAM_NON_BLOCKING": 1})
CUevent_flags = IntEnum(
    "CUevent_flags", {"CU_EVENT_DEFAULT": 0, "CU_EVENT_BLOCKING_SYNC": 1, "CU_EVENT_DISABLE_TIMING": 2}
)
CUstreamCaptureMode = IntEnum(
    "CUstreamCaptureMode",
    {"CU_STREAM_CAPTURE_MODE_GLOBAL": 0, "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL": 1, "CU_STREAM_CAPTURE_MODE_RELAXED": 2},
)
CUpointer_attribute = IntEnum("CUpointer_attribute", {"CU_POINTER_ATTRIBUTE_MEMORY_TYPE": 2})
CUmemorytype = IntEnum("CUmemorytype", {"CU_MEMORYTYPE_HOST": 1, "CU_MEMORYTYPE_DEVICE": 2})

_events: dict[int, float] = {}
_graphs: dict[int, recording.Graph] = {}
_next = iter(range(0x1000, 1 << 62, 0x10))


def __getattr__(name: str) -> Any:
    choices = ", ".join(sorted(n for n in globals() if n.lower().startswith("cu")))
    raise AttributeError(f"{name} is not served on the CPU: there are {choices}")


# -- the device -------------------------------------------------------------------------------------------------------


def cuInit(flags: int) -> tuple[CUresult]:
    return (_OK,)


def cuDriverGetVersion() -> tuple[CUresult, int]:
    return _OK, 13000


def cuDeviceGetCount() -> tuple[CUresult, int]:
    return _OK, 1


def cuDeviceGet(ordinal: int) -> tuple[CUresult, CUdevice | None]:
    return (_OK, CUdevice(0)) if int(ordinal) == 0 else (CUresult.CUDA_ERROR_INVALID_DEVICE, None)


def cuDeviceGetName(length: int, device: Any) -> tuple[CUresult, bytes]:
    return _OK, NAME.encode()[: length - 1]


def cuDeviceGetAttribute(attribute: Any, device: Any) -> tuple[CUresult, int | None]:
    name = getattr(attribute, "name", "").removeprefix("CU_DEVICE_ATTRIBUTE_")
    value = gpu.attribute(name)
    return (_INVALID, None) if value is None else (_OK, value)


def cuDeviceTotalMem(device: Any) -> tuple[CUresult, int]:
    return _OK, gpu.device().total_memory


def cuMemGetInfo() -> tuple[CUresult, int, int]:
    return _OK, gpu.device().total_memory, gpu.device().total_memory


def cuGetErrorName(error: Any) -> tuple[CUresult, bytes]:
    return _OK, CUresult(int(error)).name.encode()


def cuGetErrorString(error: Any) -> tuple[CUresult, bytes]:
    return _OK, CUresult(int(error)).name.removeprefix("CUDA_").replace("_", " ").lower().encode()


def cuPointerGetAttribute(attribute: Any, pointer: Any) -> tuple[CUresult, int]:
    return _OK, CUmemorytype.CU_MEMORYTYPE_HOST


# -- contexts ---------------------------------------------------------------------------------------------------------


def cuCtxCreate(*_: Any) -> tuple[CUresult, CUcontext]:
    return _OK, CUcontext(1)


def cuDevicePrimaryCtxRetain(device: Any) -> tuple[CUresult, CUcontext]:
    return _OK, CUcontext(1)


def cuCtxGetCurrent() -> tuple[CUresult, CUcontext]:
    return _OK, CUcontext(1)


def cuCtxGetDevice() -> tuple[CUresult, CUdevice]:
    return _OK, CUdevice(0)


def _done(*_: Any) -> tuple[CUresult]:
    """A call without effect: everything has ended already."""
    return (_OK,)


cuCtxSetCurrent = cuCtxPushCurrent = cuCtxDestroy = cuCtxSynchronize = cuDevicePrimaryCtxRelease = _done
cuCtxPopCurrent = cuCtxGetCurrent

# -- streams and events -----------------------------------------------------------------------------------------------


def cuStreamCreate(flags: int = 0) -> tuple[CUresult, CUstream]:
    return _OK, CUstream(next(_next))


def cuStreamCreateWithPriority(flags: int, priority: int) -> tuple[CUresult, CUstream]:
    return cuStreamCreate(flags)


cuStreamDestroy = cuStreamSynchronize = cuStreamQuery = cuStreamWaitEvent = _done


def cuEventCreate(flags: int = 0) -> tuple[CUresult, CUevent]:
    return _OK, CUevent(next(_next))


def cuEventRecord(event: Any, stream: Any = 0) -> tuple[CUresult]:
    _events[int(event)] = time.perf_counter()
    return (_OK,)


def cuEventElapsedTime(start: Any, end: Any) -> tuple[CUresult, float | None]:
    if int(start) not in _events or int(end) not in _events:
        return CUresult.CUDA_ERROR_INVALID_HANDLE, None
    return _OK, (_events[int(end)] - _events[int(start)]) * 1e3


def cuEventDestroy(event: Any) -> tuple[CUresult]:
    _events.pop(int(event), None)
    return (_OK,)


cuEventSynchronize = cuEventQuery = _done

# -- graphs -----------------------------------------------------------------------------------------------------------


def cuStreamBeginCapture(stream: Any, mode: Any = 0) -> tuple[CUresult]:
    recording.begin_capture()
    return (_OK,)


def cuStreamEndCapture(stream: Any) -> tuple[CUresult, CUgraph]:
    graph = CUgraph(next(_next))
    _graphs[graph.value] = recording.end_capture()
    return _OK, graph


def cuGraphInstantiate(graph: Any, flags: int = 0) -> tuple[CUresult, CUgraphExec | None]:
    if int(graph) not in _graphs:
        return CUresult.CUDA_ERROR_INVALID_HANDLE, None
    return _OK, CUgraphExec(int(graph))


cuGraphInstantiateWithFlags = cuGraphInstantiate


def cuGraphLaunch(graph: Any, stream: Any = 0) -> tuple[CUresult]:
    if int(graph) not in _graphs:
        return (CUresult.CUDA_ERROR_INVALID_HANDLE,)
    _graphs[int(graph)].launch()
    return (_OK,)


cuGraphExecDestroy = cuGraphDestroy = cuGraphUpload = _done

# -- memory -----------------------------------------------------------------------------------------------------------


def cuMemAlloc(size: int) -> tuple[CUresult, CUdeviceptr | None]:
    return (_OK, CUdeviceptr(allocate(size))) if size > 0 else (_INVALID, None)


def cuMemAllocAsync(size: int, stream: Any = 0) -> tuple[CUresult, CUdeviceptr | None]:
    return cuMemAlloc(size)


def cuMemFree(pointer: Any) -> tuple[CUresult]:
    return (_OK,) if free(int(pointer)) else (_INVALID,)


def cuMemFreeAsync(pointer: Any, stream: Any = 0) -> tuple[CUresult]:
    return cuMemFree(pointer)


def cuMemcpy(target: Any, source: Any, size: int, stream: Any = 0) -> tuple[CUresult]:
    move(address_of(target), address_of(source), size)
    return (_OK,)


cuMemcpyHtoD = cuMemcpyDtoH = cuMemcpyDtoD = cuMemcpyHtoDAsync = cuMemcpyDtoHAsync = cuMemcpyDtoDAsync = cuMemcpy
cuMemcpyAsync = cuMemcpy


def cuMemsetD8(target: Any, value: int, count: int, stream: Any = 0) -> tuple[CUresult]:
    fill(address_of(target), ctypes.c_uint8, value, count)
    return (_OK,)


def cuMemsetD16(target: Any, value: int, count: int, stream: Any = 0) -> tuple[CUresult]:
    fill(address_of(target), ctypes.c_uint16, value, count)
    return (_OK,)


def cuMemsetD32(target: Any, value: int, count: int, stream: Any = 0) -> tuple[CUresult]:
    fill(address_of(target), ctypes.c_uint32, value, count)
    return (_OK,)


cuMemsetD8Async, cuMemsetD16Async, cuMemsetD32Async = cuMemsetD8, cuMemsetD16, cuMemsetD32
