"""Launches of arrays that move: a parameter block in which only addresses are written anew.

Host code computes the arguments of a launch from the values of a call. Where launches differ in the addresses of their
arrays alone, their arguments differ in pointers, in addresses that are numbers, and in those of tensor maps. Which
arguments these are is seen by running the host code twice, the second time with every array moved by a distance of its
own
(:meth:`~tilewright.lang.launch.host.HostCode.moving`). An argument that changes in any other way has no such launch.
The plain way is :meth:`~tilewright.cuda.machine.Placed.launch` behind host code; tests compare both.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.cuda.capture import leave_to_overlap, may_overlap
from tilewright.cuda.libcuda import LaunchAttribute, LaunchConfiguration
from tilewright.cuda.profile import ACTIVE
from tilewright.cuda.tensormaps import encode
from tilewright.ir.runtime import LaunchConfig
from tilewright.ir.tensormap import BYTES, TensorMap
from tilewright.ir.types import I64, U64, PtrType

if TYPE_CHECKING:
    from tilewright.cuda.machine import Placed

REMEMBERED = 256
"""Addresses of a tensor map whose descriptors are kept; more than that are forgotten together."""
FIELDS = ("element", "dims", "strides", "box", "swizzle", "im2col")


class Follower(NamedTuple):
    """An argument that follows an array: its place among the arguments, the number of the array, and how many bytes
    after the array's address it points."""

    place: int
    array: int
    shift: int


class MovingLaunch:
    """One launch with all its arguments, for arrays at any addresses. Calls of several threads take turns: they share
    the parameter block, which holds the addresses of the call before."""

    def __init__(
        self,
        placed: Placed,
        config: LaunchConfig,
        values: Sequence[Any],
        pointers: Sequence[Follower],
        maps: Sequence[Follower],
    ) -> None:
        self.placed, self.config, self.values, self.pointers, self.maps = placed, config, values, pointers, maps
        self.parameters = placed.parameters.copy()
        self.parameters.pack(values)
        like = placed.configuration(config)
        attributes = (LaunchAttribute * like.count)(*like.attributes[: like.count])
        self.own = LaunchConfiguration(like.grid, like.block, like.smem, config.stream, attributes, like.count)
        self._go, self._leave = placed.driver_call(self.own, self.parameters), leave_to_overlap(self.own)
        buffer, offsets = self.parameters.buffer, self.parameters.offsets
        self._words = [(ctypes.c_uint64.from_buffer(buffer, offsets[p]), a, shift) for p, a, shift in pointers]
        block = ctypes.c_char * BYTES
        self._blocks: list[tuple[Any, int, int, TensorMap, dict[int, bytes]]] = [
            (block.from_buffer(buffer, offsets[p]), a, shift, values[p], {}) for p, a, shift in maps
        ]
        self._written: Sequence[int] | None = None
        self._stream: int | None = None
        self._lock = threading.Lock()

    def __call__(self, stream: int, addresses: Sequence[int]) -> None:
        if ACTIVE:
            return self._plain(stream, addresses)
        with self._lock:
            if addresses != self._written:
                self._write(addresses)
            if stream != self._stream or stream:  # the default stream, 0, is never captured
                self._choose(stream)
            if code := self._go():
                self.placed.retry_in_own_context(self._go, code, self.config)

    def _choose(self, stream: int) -> None:
        """Make ``stream`` the one that is launched on; with leave to overlap, unless a graph captures it."""
        self.own.stream = self._stream = stream
        if self._leave is not None:
            self._leave[0] = may_overlap(stream)

    def _write(self, addresses: Sequence[int]) -> None:
        self._written = None  # should the driver refuse a tensor map, a part of the block is that of other addresses
        for word, array, shift in self._words:
            word.value = addresses[array] + shift
        for descriptor, array, shift, like, encodings in self._blocks:
            at = addresses[array] + shift
            descriptor.raw = encodings.get(at) or _encoded(like, at, encodings)
        self._written = addresses

    def _plain(self, stream: int, addresses: Sequence[int]) -> None:
        values = list(self.values)
        for place, array, shift in self.pointers:
            values[place] = addresses[array] + shift
        for place, array, shift in self.maps:
            values[place] = values[place].at(addresses[array] + shift)
        self.placed.launch(self.config._replace(stream=stream), values)


def moving_launch(
    placed: Placed,
    config: LaunchConfig,
    values: Sequence[Any],
    moved: Sequence[Any],
    addresses: Sequence[int],
    distances: Mapping[int, int],
) -> MovingLaunch | None:
    """The launch with ``values``, the arguments where arrays are at ``addresses``, for other addresses; None where that
    is not possible. ``moved``: the arguments where each array is ``distances`` bytes further on, by distance the number
    of the array."""
    pointers: list[Follower] = []
    maps: list[Follower] = []
    for place, (param, before, after) in enumerate(zip(placed.parameters.params, values, moved, strict=True)):
        if isinstance(before, TensorMap):
            if any(getattr(before, name) != getattr(after, name) for name in FIELDS):
                return None
            followers, first, second = maps, before.address, after.address
        elif isinstance(param.type, PtrType) or param.type in (I64, U64):  # an address in a number, too
            followers, first, second = pointers, before, after
        elif before == after:
            continue
        else:
            return None
        if first != second:
            array = distances.get(second - first)
            if array is None:
                return None
            followers.append(Follower(place, array, first - addresses[array]))
    return MovingLaunch(placed, config, values, pointers, maps)


def _encoded(like: TensorMap, address: int, encodings: dict[int, bytes]) -> bytes:
    if len(encodings) >= REMEMBERED:
        encodings.clear()
    encoding = encodings[address] = encode(like.at(address))
    return encoding
