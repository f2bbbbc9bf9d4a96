"""The CUDA runtime's names in ``cuda.bindings.runtime``, served by the CPU like the driver's."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from tilewright.compat import driver
from tilewright.compat.device import device

__all__ = ["cudaError_t", "cudaEvent_t", "cudaStream_t"]


class cudaError_t(IntEnum):
    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInvalidDevice = 101
    cudaErrorInvalidResourceHandle = 400
    cudaErrorNotSupported = 801


_OK = cudaError_t.cudaSuccess
cudaMemcpyKind = IntEnum(
    "cudaMemcpyKind",
    {
        "cudaMemcpyHostToHost": 0,
        "cudaMemcpyHostToDevice": 1,
        "cudaMemcpyDeviceToHost": 2,
        "cudaMemcpyDeviceToDevice": 3,
        "cudaMemcpyDefault": 4,
    },
)
cudaStream_t, cudaEvent_t = driver.CUstream, driver.CUevent


class cudaDeviceProp:
    """The device's properties by the runtime's names, and by PyTorch's."""

    def __init__(self) -> None:
        gpu = device()
        self.__dict__.update(vars(gpu))
        self.multiProcessorCount = gpu.multi_processor_count
        self.totalGlobalMem = gpu.total_memory
        self.warpSize = gpu.warp_size
        self.sharedMemPerBlockOptin = gpu.shared_memory_per_block_optin
        self.l2CacheSize = gpu.L2_cache_size


def _as_runtime(name: str) -> Any:
    """The driver's function under the runtime's name; its results carry the runtime's error codes."""
    act = getattr(driver, name)

    def call(*args: Any) -> tuple[Any, ...]:
        error, *rest = act(*args)
        return (cudaError_t(int(error)), *rest)

    return call


for _name in (
    "StreamCreate",
    "StreamDestroy",
    "StreamSynchronize",
    "StreamQuery",
    "StreamWaitEvent",
    "EventCreate",
    "EventDestroy",
    "EventRecord",
    "EventSynchronize",
    "EventQuery",
    "EventElapsedTime",
    "MemcpyAsync",
    "StreamBeginCapture",
    "StreamEndCapture",
    "GraphInstantiate",
    "GraphLaunch",
    "GraphDestroy",
    "GraphExecDestroy",
    "MemGetInfo",
    "DriverGetVersion",
    "GetErrorName",
    "GetErrorString",
):
    globals()[f"cuda{_name}"] = _as_runtime(f"cu{_name}")
cudaDeviceSynchronize = _as_runtime("cuCtxSynchronize")
cudaMalloc, cudaFree, cudaRuntimeGetVersion = map(_as_runtime, ("cuMemAlloc", "cuMemFree", "cuDriverGetVersion"))
cudaGetDeviceCount = _as_runtime("cuDeviceGetCount")


def cudaGetDevice() -> tuple[cudaError_t, int]:
    return _OK, 0


def cudaSetDevice(ordinal: int) -> tuple[cudaError_t]:
    return (_OK if int(ordinal) == 0 else cudaError_t.cudaErrorInvalidDevice,)


def cudaGetDeviceProperties(ordinal: int) -> tuple[cudaError_t, cudaDeviceProp]:
    return _OK, cudaDeviceProp()


def cudaGetLastError() -> tuple[cudaError_t]:
    return (_OK,)


def cudaMemcpy(target: Any, source: Any, size: int, kind: Any = 4) -> tuple[cudaError_t]:
    driver.cuMemcpy(target, source, size)
    return (_OK,)


def cudaMemset(target: Any, value: int, size: int) -> tuple[cudaError_t]:
    driver.cuMemsetD8(target, value, size)
    return (_OK,)
