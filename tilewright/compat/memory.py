"""Raw memory of programs that allocate by address: bytes of the host, kept until they are freed."""

from __future__ import annotations

import ctypes
from typing import Any

_blocks: dict[int, Any] = {}
_ALIGN = 256  # what the driver's allocations are aligned to


def allocate(size: int) -> int:
    """The address of ``size`` fresh bytes."""
    memory = (ctypes.c_char * (int(size) + _ALIGN))()
    address = -(-ctypes.addressof(memory) // _ALIGN) * _ALIGN
    _blocks[address] = memory
    return address


def free(address: int) -> bool:
    """Whether there was such an allocation."""
    return address == 0 or _blocks.pop(address, None) is not None


def address_of(place: Any) -> int:
    """The address of a pointer, an array or a buffer."""
    if isinstance(place, int) or hasattr(place, "__int__") and not hasattr(place, "__array_interface__"):
        return int(place)
    if hasattr(place, "__array_interface__"):
        return int(place.__array_interface__["data"][0])
    if isinstance(place, ctypes._SimpleCData):
        return int(place.value or 0)
    view = memoryview(place)
    import numpy as np

    return int(np.frombuffer(view, np.uint8).ctypes.data)


def move(target: int, source: int, size: int) -> None:
    ctypes.memmove(target, source, size)


def fill(target: int, kind: Any, value: int, count: int) -> None:
    whole = (kind * count).from_address(target)
    whole[:] = [value] * count
