"""Raw memory of programs that allocate by address: bytes of the host, kept until they are freed."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_blocks: dict[int, Any] = {}
_reached: dict[int, Any] = {}
ALIGNMENT = 256  # bytes: what the driver's allocations are aligned to


def allocate(size: int) -> int:
    """The address of ``size`` fresh bytes."""
    from tilewright.sim.empty_arrays import mark

    block = aligned_bytes(int(size), np.zeros)
    address = block.ctypes.data
    _blocks[address] = block
    reach(address, int(size))
    mark(address, int(size), "cuMemAlloc")
    return address


def aligned_bytes(size: int, make: Any = np.empty) -> Any:
    """``size`` fresh bytes at a multiple of 256, as an array of NumPy that keeps them. Pages of a large one are the
    system's until they are touched, with ``numpy.zeros`` too."""
    whole = make(size + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + size]


def free(address: int) -> bool:
    """Whether there was such an allocation."""
    forget(address)
    return address == 0 or _blocks.pop(address, None) is not None


def reach(address: int, size: int) -> None:
    """Register ``size`` bytes, so that kernels reach them through addresses that they find in memory."""
    from tilewright.sim.memory import expose

    if address not in _reached and size:
        there: Any = (ctypes.c_char * size).from_address(address)
        _reached[address] = expose(np.frombuffer(there, np.uint8))


def forget(address: int) -> None:
    """The memory at ``address`` is gone."""
    from tilewright.sim.memory import conceal

    if (view := _reached.pop(address, None)) is not None:
        conceal(view)


def address_of(place: Any) -> int:
    """The address of a pointer, an array or a buffer."""
    if isinstance(place, int) or hasattr(place, "__int__") and not hasattr(place, "__array_interface__"):
        return int(place)
    if hasattr(place, "__array_interface__"):
        return int(place.__array_interface__["data"][0])
    if isinstance(place, ctypes._SimpleCData):
        return int(place.value or 0)
    return int(np.frombuffer(memoryview(place), np.uint8).ctypes.data)


def move(target: int, source: int, size: int) -> None:
    ctypes.memmove(target, source, size)


def fill(target: int, kind: Any, value: int, count: int) -> None:
    whole = (kind * count).from_address(target)
    whole[:] = [value] * count
