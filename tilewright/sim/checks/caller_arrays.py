"""Uninitialised parts of the caller's arrays that a kernel reads (:mod:`tilewright.sim.empty_arrays`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.measuring import is_measuring
from tilewright.sim.empty_arrays import LARGEST, UninitialisedBytes, any_marked, marked_array_at

if TYPE_CHECKING:
    from tilewright.sim.memory import AddressSpace

WHOLE = 8  # the granule of arrays of unknown origin
WORD = 4


class CallerArrays:
    """The arrays of a launch with elements that were never written when it begins. Empty (False) if all are
    written; that costs nothing where no array was ever marked."""

    def __init__(self, space: AddressSpace) -> None:
        self.space = space
        self.held: dict[Any, UninitialisedBytes] = {}
        for buffer in space.exposed() if any_marked() and not is_measuring() else ():
            record = marked_array_at(buffer.base + buffer.low)
            # The buffer of a bare address has no end.
            high = buffer.high if record is None else min(buffer.high, record.high - buffer.base)
            if 0 < high - buffer.low <= LARGEST:
                found = UninitialisedBytes(buffer.bytes[:high], WHOLE if record is None else record.granule)
                if found.any():
                    self.held[buffer] = found

    def __bool__(self) -> bool:
        return bool(self.held)

    def at(self, buffer: Any, off: Array, count: int, size: int) -> Array:
        """bool ``[k, count]``: of the elements of ``size`` bytes at each offset those that were never written.
        ``buffer`` may be all memory by absolute address."""
        places = np.asarray(off, np.int64).reshape(-1)[:, None] + np.arange(count) * size
        if buffer in self.held:
            return self.held[buffer].at(places)
        found = np.zeros(places.shape, bool)
        if buffer is self.space.any:
            for one, undefined in self.held.items():
                inside = (places >= one.base + one.low) & (places < one.base + one.high)
                found[inside] = undefined.at(places[inside] - one.base)
        return found

    def in_stretch(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[Any, int] | None:
        """(buffer, offset) of the first byte that was never written among those at an absolute address."""
        for buffer, undefined in self.held.items():
            if buffer.base + buffer.low <= start < buffer.base + buffer.high:
                places = np.array(start - buffer.base)
                for extent, stride in zip(shape[:-1], strides[:-1], strict=True):
                    places = places[..., None] + np.arange(extent) * stride
                places = places[..., None] + np.arange(0, shape[-1], WORD)
                found = undefined.at(places)
                return (buffer, int(places[found][0])) if found.any() else None
        return None

    def carried(self, data: Array) -> Array:
        """bool, one for each word of 4 of these bytes (aligned to 8): whether a copy has brought there what was never
        written."""
        granule = min((undefined.granule for undefined in self.held.values()), default=WHOLE)
        return UninitialisedBytes(data, granule).at(np.arange(0, data.size, WORD))
