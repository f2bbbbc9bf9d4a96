"""Global memory: the caller's own arrays, seen through checked views.

Offsets are bytes from ``base``, the array's address rounded down to 128, so that an item view of any width up to 16
bytes is aligned; the readable bytes are ``[low, high)``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilewright.errors import byte_count
from tilewright.sim.access import ITEMS, VectorAccess
from tilewright.sim.faults import Fault
from tilewright.sim.offsets import Offsets
from tilewright.sim.values import Ptr

U64 = np.dtype(np.uint64)
MANY = 2048  # lanes of a group for which looking whether warps access whole rows pays
Mask = np.ndarray | None


class Buffer:
    """A stretch of memory with item views of every width; the base of global arrays and of the blocks' shared
    memory."""

    word = "global"
    read_only = False

    def __init__(self, data: np.ndarray, low: int, high: int, base: int, space: Any) -> None:
        self.bytes = data
        # One view for each width of access, so that a vector of 16 bytes is one item of one gather, not sixteen.
        self.views = [data[: data.size & -dtype.itemsize].view(dtype) for dtype in ITEMS]
        self.low = low
        self.high = high
        self.base = base
        self.space = space

    def free(self) -> None:
        """Release the bytes after the launch."""
        self.bytes = np.zeros(0, np.uint8)
        self.views = []

    # -- what the program does -----------------------------------------------------------------------------------------

    def fetch(self, group: Any, pointer: Ptr, access: VectorAccess, mask: Mask) -> Any:
        """The values that the active lanes load: ``[L]`` or ``[L, n]``, zeros for the others; one value where all load
        the same place."""
        place = self._quick(group, pointer, access, "load", mask, None)
        if place is None:
            return self.load(group, pointer.off, access, mask)
        items, index = place
        if mask is None:
            return access.decode(items.take(index))
        chosen = index[mask]
        if chosen.shape[0] == index.shape[0]:
            return access.decode(items.take(index))
        out = np.zeros(index.shape[0] if access.scalar else (index.shape[0], access.n), access.dtype)
        out[mask] = access.decode(items.take(chosen))
        return out

    def put(self, group: Any, pointer: Ptr, value: Any, access: VectorAccess, mask: Mask) -> None:
        """Store ``value`` (one, or one for each lane) for the active lanes."""
        per_lane = np.ndim(value) == (1 if access.scalar else 2)
        place = self._quick(group, pointer, access, "store", mask, value) if per_lane else None
        if place is None:
            self.store(group, pointer.off, value, access, mask)
            return
        items, index = place
        if mask is not None and not mask.all():
            index, value = index[mask], value[mask]
        items[index] = access.encode_as(items.dtype, value)

    def _quick(
        self, group: Any, pointer: Ptr, access: VectorAccess, verb: str, mask: Mask, value: Any
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The items and the index of each lane among them, if the range and alignment of the pointer's offsets prove
        that every access is inside and aligned, and no observer needs single offsets; else None, and each offset must
        be checked."""
        # The range of the root's offsets and the union of their bits are computed once, and serve all accesses through
        # pointers that differ from the root by a constant, which most of a kernel's do. Only other accesses check each
        # lane.
        root, add, events = pointer.root, pointer.add, group.events
        if root is None or (events is not None and events.quick is None) or (self.read_only and verb != "load"):
            return None
        low, high, bits = root.range
        if low + add < self.low or high + add > self.high - access.nbytes or (bits | add) & (access.width - 1):
            return None
        if events is not None:
            events.quick(verb, self, group, pointer, access, mask, value)
        return self.place(group, root, add, access, mask is None)

    def place(
        self, group: Any, root: Offsets, add: int, access: VectorAccess, whole: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The items and the index among them of an access by all lanes that is inside and aligned. ``whole``: items may
        be the rows of whole warps, and the index one number a warp."""
        base = self._base(group)
        if type(base) is not int:
            return self._from(access.shift, add >> access.shift, root.items(access, base), root.range[0])
        if whole and group.lanes_count >= MANY:
            rows = root.rows(access.nbytes)
            if rows is not None and add + base + rows.first >= 0:
                items = self.bytes[add + base + rows.first :]
                return items[: items.size // rows.size * rows.size].view(rows.dtype), rows.numbers
        return self._from(access.shift, (add + base) >> access.shift, root.items(access, base), root.range[0])

    def _from(self, shift: int, first: int, index: np.ndarray, low: int) -> tuple[np.ndarray, np.ndarray]:
        """A constant part of the index is free: it moves the beginning of the items. This needs non-negative indices,
        as NumPy counts negative ones from the end."""
        if first >= 0 and low >= 0:
            return self.views[shift][first:], index
        return self.views[shift], index + first

    def _base(self, group: Any) -> Any:
        """Where the offsets of the group's lanes begin: one int, or one for each lane."""
        return 0

    def load(self, group: Any, off: Any, access: VectorAccess, mask: Mask) -> Any:
        if type(off) is int:
            place = self._one(group, off, access, "load", mask)
            stored = self.bytes[place : place + access.nbytes]
            elements = stored != 0 if access.bool_ else stored.view(access.dtype)
            return elements[0] if access.scalar else elements.copy()
        if mask is None:
            return access.decode(self.views[access.shift][self._many(group, off, access, "load", None)])
        out = np.zeros(off.shape if access.scalar else (off.shape[0], access.n), access.dtype)
        index = self._many(group, off[mask], access, "load", mask)
        if index.size:
            out[mask] = access.decode(self.views[access.shift][index])
        return out

    def store(self, group: Any, off: Any, value: Any, access: VectorAccess, mask: Mask) -> None:
        per_lane = np.ndim(value) == (1 if access.scalar else 2)
        if type(off) is int:  # all lanes write to one place: the last one wins
            if per_lane and mask is not None:
                value = value[mask]
            place = self._one(group, off, access, "store", mask, value)
            if per_lane:
                value = value[-1]
            self.bytes[place : place + access.nbytes] = np.array(value, access.dtype).reshape(-1).view(np.uint8)
            return
        if per_lane and mask is not None:
            value = value[mask]
        index = self._many(group, off if mask is None else off[mask], access, "store", mask, value)
        if per_lane:
            self.views[access.shift][index] = access.encode(value)
        elif index.size:
            one = np.array(value, access.dtype).reshape(-1).view(access.item)
            self.views[access.shift][index] = one if access.parts > 1 else one[0]

    # -- where it does it ----------------------------------------------------------------------------------------------

    def _one(self, group: Any, off: int, access: VectorAccess, verb: str, mask: Mask, value: Any = None) -> int:
        if self.read_only and verb != "load":
            self.refuse_writing(verb)
        inside = self.low <= off <= self.high - access.nbytes and not off & (access.width - 1)
        if (group.checks and not inside) or group.events is not None:
            active = np.full(group.lanes_count if mask is None else int(np.count_nonzero(mask)), off)
            if group.checks and not inside:
                self.complain(active, access, verb, mask)
            group.events.access(verb, self, group, active, access, mask, value)
        return off

    def _many(
        self, group: Any, off: np.ndarray, access: VectorAccess, verb: str, mask: Mask, value: Any = None
    ) -> np.ndarray:
        """Item indices of the active lanes' offsets, checked."""
        if not off.size:
            return off
        if self.read_only and verb != "load":
            self.refuse_writing(verb)
        # As unsigned numbers, negative offsets are the largest, so one reduction checks both bounds. All offsets are
        # aligned if the union of their bits has no bit below the width.
        if group.checks and (
            int(np.maximum.reduce(off.view(U64))) > self.high - access.nbytes
            or (self.low and int(np.minimum.reduce(off)) < self.low)
            or (access.shift and int(np.bitwise_or.reduce(off)) & (access.width - 1))
        ):
            self.complain(off, access, verb, mask)
        if group.events is not None:
            group.events.access(verb, self, group, off, access, mask, value)
        return self._items(off, access)

    @staticmethod
    def _items(off: np.ndarray, access: VectorAccess) -> np.ndarray:
        index = off >> access.shift if access.shift else off
        return index if access.parts == 1 else index[:, None] + access.steps

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def complain(self, off: np.ndarray, access: VectorAccess, verb: str, mask: Mask) -> None:
        """Raise the Fault of an access out of bounds or misaligned; ``off`` holds the active lanes' offsets."""
        outside = (off < self.low) | (off > self.high - access.nbytes)
        bad = outside if outside.any() else (off & (access.width - 1)) != 0
        lanes = bad if mask is None else np.zeros(mask.shape, bool)
        if mask is not None:
            lanes[mask] = bad
        first = int(off[int(np.argmax(bad))]) - self.low
        if outside.any():
            raise Fault(
                f"{self.word} {verb} of {access.describe()} out of bounds: byte offset {first} {self.extent(access)}",
                lanes,
                f"{int(bad.sum())} of {off.size} active threads are outside",
                fix=self.bounds_fix,
            )
        raise Fault(
            f"misaligned {self.word} {verb} of {access.describe()}: byte offset {first} "
            f"(address {self.base + self.low + first:#x}) is not a multiple of {access.width}",
            lanes,
            f"{int(bad.sum())} of {off.size} active threads are misaligned",
            fix="the pointer's declared alignment (assumed_align, divisibility) promises more than its value keeps, "
            "or the vector is wider than the layout's alignment allows",
        )

    def refuse_writing(self, verb: str) -> None:
        raise Fault(
            f"{self.word} {verb} into an array that is read-only (its flags say writeable=False)",
            fix="pass a writable array, such as its copy()",
        )

    bounds_fix = (
        "predicate the access (cute.elem_less on an identity tensor) or check the layout against the array's shape"
    )

    def extent(self, access: VectorAccess) -> str:
        size = self.high - self.low
        return f"in an array of {byte_count(size)} ({size // access.elem.bytes} x {access.elem})"


def is_read_only(owner: Any) -> bool:
    """Whether the array (NumPy's, or one with such flags) forbids writing."""
    return not getattr(getattr(owner, "flags", None), "writeable", True)


class GlobalBuffer(Buffer):
    """One array of the caller. ``shapes``: the extents of the parameters that point to it, by their numbers."""

    def __init__(self, low: int, high: int, space: Any, owner: Any = None) -> None:
        base = low & -128
        size = max(high - base, 0)
        data = np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(base)), np.uint8)
        super().__init__(data, low - base, high - base, base, space)
        self.owner = owner
        self.read_only = is_read_only(owner)
        self.shapes: dict[int, tuple[int, ...]] = {}


class AddressSpace:
    """All memory that a launch can reach: gives absolute addresses a buffer."""

    WINDOW = 1 << 56  # where the absolute addresses of shared memory begin

    def __init__(self) -> None:
        self.buffers: list[GlobalBuffer] = []
        self.any = AbsoluteMemory(self)

    def buffer(self, low: int, high: int, owner: Any = None) -> GlobalBuffer:
        """The buffer of the bytes ``[low, high)``; the same one for the same bytes."""
        for buffer in self.buffers:
            same = buffer.base + buffer.low == low and buffer.base + buffer.high == high
            if same and buffer.read_only == is_read_only(owner):
                return buffer
        self.buffers.append(GlobalBuffer(low, high, self, owner))
        return self.buffers[-1]

    def anywhere(self, pointer: Ptr) -> Ptr:
        """``pointer`` as absolute address(es)."""
        return pointer if pointer.buf is self.any else Ptr(self.any, pointer.off + pointer.buf.base)

    def view(self, address: int, shape: Sequence[int], strides: Sequence[int], writes: bool) -> np.ndarray:
        """A live view of bytes from an absolute address on, which must be in one array."""
        reach = sum((n - 1) * d for n, d in zip(shape, strides, strict=True)) + 1
        for buffer in self.exposed():
            if buffer.base + buffer.low <= address and address + reach <= buffer.base + buffer.high:
                break
        else:
            # Bytes of another array are refused even where they are readable: on a GPU they would be in another
            # allocation.
            raise Fault(
                f"{'store' if writes else 'load'} of {byte_count(reach)} at address {address:#x}, which are in no "
                "array that this launch knows",
                fix="the tensor map describes more than its array has: check the tensor's layout; a store or a "
                "reduction by TMA writes whole chunks of 16 bytes, for which there must be room behind a row that ends "
                "within one; "
                "arrays that only device code names are made known with tilewright.sim.expose(array)",
            )
        if writes and buffer.read_only:
            buffer.refuse_writing("store")
        start = address - buffer.base
        view: np.ndarray = np.lib.stride_tricks.as_strided(buffer.bytes[start : start + reach], shape, strides)
        return view

    def exposed(self) -> list[GlobalBuffer]:
        """The launch's arrays and those that :func:`expose` made known."""
        # A copy: the collector of garbage may conceal arrays at any step of the loop.
        return self.buffers + [self.buffer(low, high) for low, high in list(_exposed.values())]


_exposed: dict[int, tuple[int, int]] = {}


def expose(array: np.ndarray) -> np.ndarray:
    """Register ``array``, so that kernels reach it through addresses that they find in memory (arrays of pointers).
    Keep it alive and call :func:`conceal` when done.

    Raises nothing: an address outside of all arrays that are known is an error of the launch that uses it.

    >>> data = np.arange(4.0)
    >>> expose(data) is data  # its address may now be in an array of pointers
    True
    >>> conceal(data)
    """
    start = array.__array_interface__["data"][0]
    moves = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    low, high = start + sum(m for m in moves if m < 0), start + sum(m for m in moves if m > 0) + array.itemsize
    if not array.size:
        low = high = start
    _exposed[id(array)] = (low, high)
    return array


def conceal(array: np.ndarray) -> None:
    """Kernels no longer reach ``array`` through addresses in memory. No error where it was not exposed.

    >>> conceal(expose(np.zeros(4)))
    """
    _exposed.pop(id(array), None)


@contextmanager
def exposed(low: int, high: int) -> Iterator[None]:
    """The same for the bytes ``[low, high)`` inside of the context."""
    key = object()
    _exposed[id(key)] = (low, high)
    try:
        yield
    finally:
        del _exposed[id(key)]


class AbsoluteMemory:
    """Memory by absolute address: pointers read from memory, made from integers, or chosen among several arrays."""

    base = 0

    def __init__(self, space: AddressSpace) -> None:
        self.space = space

    def fetch(self, group: Any, pointer: Ptr, access: VectorAccess, mask: Mask) -> Any:
        return self.load(group, pointer.off, access, mask)

    def put(self, group: Any, pointer: Ptr, value: Any, access: VectorAccess, mask: Mask) -> None:
        self.store(group, pointer.off, value, access, mask)

    def load(self, group: Any, off: Any, access: VectorAccess, mask: Mask) -> Any:
        parts = self.resolve(group, off, access, "load", mask)
        if len(parts) == 1:
            buffer, shift, _ = parts[0]
            return buffer.load(group, off - shift, access, mask)
        out = np.zeros(off.shape if access.scalar else (off.shape[0], access.n), access.dtype)
        for buffer, shift, lanes in parts:
            out[lanes] = buffer.load(group, off - shift, access, lanes)[lanes]
        return out

    def store(self, group: Any, off: Any, value: Any, access: VectorAccess, mask: Mask) -> None:
        parts = self.resolve(group, off, access, "store", mask)
        for buffer, shift, lanes in parts:
            buffer.store(group, off - shift, value, access, mask if len(parts) == 1 else lanes)

    def resolve(self, group: Any, off: Any, access: VectorAccess, verb: str, mask: Mask) -> list[tuple[Any, int, Any]]:
        """``(buffer, its base, lanes)`` for every buffer that an active lane's address is in."""
        if type(off) is int:
            return [self._find(group, off, access, verb, mask)]
        unresolved = np.ones(off.shape, bool) if mask is None else mask.copy()
        parts: list[tuple[Any, int, Any]] = []
        while unresolved.any():
            buffer, shift, _ = self._find(group, int(off[int(np.argmax(unresolved))]), access, verb, unresolved)
            inside = unresolved & (off >= shift + buffer.low) & (off < shift + buffer.high)
            parts.append((buffer, shift, inside))
            unresolved &= ~inside
        return parts or [(self.space.buffers[0], 0, unresolved)]

    def _find(self, group: Any, address: int, access: VectorAccess, verb: str, lanes: Any) -> tuple[Any, int, Any]:
        shared = group.wave.shared
        if address >= self.space.WINDOW:
            return shared, shared.base, lanes
        for buffer in self.space.exposed():
            if buffer.base + buffer.low <= address < buffer.base + buffer.high:
                return buffer, buffer.base, lanes
        raise Fault(
            f"{verb} of {access.describe()} at address {address:#x}, which is in no array that this launch knows",
            lanes,
            fix="pass the array to the kernel, or make it known with tilewright.sim.expose(array)",
        )
