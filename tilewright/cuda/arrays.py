"""Arrays in a GPU's memory, for host programs that have NumPy only."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from tilewright.cuda import libcuda

NON_BLOCKING = 1


class DeviceArray:
    """An array on a GPU that looks like NumPy's from outside: shape, strides in bytes, dtype, ``swapaxes``.

    It has ``__cuda_array_interface__``; its memory is freed with the last array that refers to it.
    """

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, owner: Any) -> None:
        self.address, self.shape, self.strides, self.dtype, self.owner = address, shape, strides, dtype, owner

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def device(self) -> str:
        return f"cuda:{self.owner.number}"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "version": 3,
            "stream": None,
            "data": (self.address, False),
        }

    def swapaxes(self, first: int, second: int) -> DeviceArray:
        """The same memory with two modes exchanged."""
        order = list(range(self.ndim))
        order[first], order[second] = order[second], order[first]
        shape, strides = (tuple(t[i] for i in order) for t in (self.shape, self.strides))
        return DeviceArray(self.address, shape, strides, self.dtype, self.owner)


class DeviceAllocation:
    """One allocation on device ``number``."""

    def __init__(self, number: int, size: int) -> None:
        self.number, self.size = number, size
        pointer = ctypes.c_void_p()
        with libcuda.current(number), libcuda.relaxed():
            code = libcuda.library().cuMemAlloc_v2(ctypes.byref(pointer), max(size, 1))
            libcuda.check(code, f"allocating {size} bytes on cuda:{number}")
        self.address = pointer.value or 0
        weakref.finalize(self, _free, number, self.address)


def _free(number: int, address: int) -> None:
    with libcuda.current(number), libcuda.relaxed():
        libcuda.library().cuMemFree_v2(address)


def upload(array: Any, number: int = 0) -> DeviceArray:
    """A copy of a NumPy array on device ``number``, its modes in the same order of contiguity."""
    import numpy as np

    compact = np.array(array, order="K", copy=True)
    memory = DeviceAllocation(number, compact.nbytes)
    if compact.nbytes:
        with libcuda.current(number):
            code = libcuda.library().cuMemcpyHtoD_v2(memory.address, compact.ctypes.data, compact.nbytes)
            libcuda.check(code, f"copying {compact.nbytes} bytes to cuda:{number}")
    return DeviceArray(memory.address, compact.shape, compact.strides, compact.dtype, memory)


def zeros(count: int, dtype: Any, number: int = 0) -> DeviceArray:
    """A vector of zeros on device ``number``, in memory of no framework: PyTorch's allocator may serve a
    CUDA graph while this is called. The zeros are there when it returns."""
    import numpy as np

    driver, stream = libcuda.library(), ctypes.c_void_p()
    dtype = np.dtype(dtype)
    memory = DeviceAllocation(number, count * dtype.itemsize)
    with libcuda.current(number), libcuda.relaxed():  # on a stream of its own: the default one may wait for others
        libcuda.check(driver.cuStreamCreate(ctypes.byref(stream), NON_BLOCKING), f"making a stream on cuda:{number}")
        try:
            code = driver.cuMemsetD8Async(memory.address, 0, memory.size, stream)
            libcuda.check(code or driver.cuStreamSynchronize(stream), f"setting {memory.size} bytes to zero")
        finally:
            driver.cuStreamDestroy_v2(stream)
    return DeviceArray(memory.address, (count,), (dtype.itemsize,), dtype, memory)


def download(source: DeviceArray, target: Any) -> None:
    """Copy an uploaded array back into a NumPy array of the same shape; waits for the kernels before."""
    import numpy as np

    memory = source.owner
    # The whole allocation comes back, to be viewed with the strides of the array: its modes may be in any order.
    raw = np.empty(memory.size, np.uint8)
    if memory.size:
        with libcuda.current(memory.number):
            libcuda.check(libcuda.library().cuCtxSynchronize(), f"waiting for cuda:{memory.number}")
            code = libcuda.library().cuMemcpyDtoH_v2(raw.ctypes.data, memory.address, memory.size)
            libcuda.check(code, f"copying {memory.size} bytes from cuda:{memory.number}")
    target[...] = np.ndarray(source.shape, source.dtype, raw, source.address - memory.address, source.strides)
