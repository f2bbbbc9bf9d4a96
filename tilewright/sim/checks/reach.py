"""Which bytes of a wave's shared memory an access reaches: from where to where in which blocks, and the cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.lanes import Array
from tilewright.ir.types import I8
from tilewright.sim.access import WIDEST, access_of
from tilewright.sim.checks.places import flat_offsets
from tilewright.sim.shared import RANK_SHIFT, PieceReads, SharedBuffer

if TYPE_CHECKING:
    from tilewright.sim.checks.accessors import Accessors
    from tilewright.sim.group import Group
    from tilewright.sim.offsets import Offsets

LINE = access_of(I8, 16, 16, False)  # a line of 16 bytes


class Ranges(NamedTuple):
    """For each warp that acts: the bytes that it may reach, from ``low`` to ``high`` in the memory of a ``block``."""

    acting: Accessors
    low: Array
    high: Array
    block: Array

    def join(self, other: Ranges) -> Ranges:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Ranges(self.acting, low, high, self.block)


class Reach:
    """``low`` to ``high``: bytes from the start of each block that has its bit in ``blocks`` (-1: of any, through
    addresses in other blocks of the cluster). ``bytes``: how many of them are certainly reached; ``dense``: whether all
    are."""

    __slots__ = ("low", "high", "blocks", "dense", "bytes", "_ranges", "_lines")

    def __init__(self, low: int, high: int, blocks: int, dense: bool = False) -> None:
        self.low, self.high, self.blocks, self.dense = low, high, blocks, dense
        self.bytes = high - low if dense else 0
        self._ranges: Ranges | None = None
        self._lines: Any = None

    def distinct(self) -> bool:
        """Whether it is plain that no byte is reached twice."""
        return False

    def cells(self, shift: int) -> Array:
        """``[n]`` the numbers of the cells of ``1 << shift`` bytes in the wave's shared memory, lane by lane."""
        raise NotImplementedError

    def count(self, shift: int) -> int:
        """How many those are."""
        return int(self.cells(shift).size)

    @property
    def whole_lines(self) -> bool:
        """Whether it reaches lines of 16 bytes as wholes only."""
        return self.low % 16 == self.high % 16 == 0

    def lines(self) -> Any:
        """The lines of 16 bytes, some possibly without need: their numbers, or a slice."""
        if self._lines is None:
            self._lines = self._find_lines()
        return self._lines

    def _find_lines(self) -> Any:
        return self.cells(4)

    def numbers(self, lines: Array) -> Array:
        """What ``lines``, an array of all lines of the wave's shared memory, has for its own, and possibly for some
        others."""
        where = self.lines()
        return lines[where] if isinstance(where, slice) else lines.take(where)

    def forget(self) -> None:
        """Drop what can be computed again."""
        self._lines = None

    def ranges(self, acting: Accessors) -> Ranges:
        """The range that each warp that acts may reach, in whole lines of 16 bytes; found once."""
        if self._ranges is None:
            self._ranges = self._find_ranges(acting)
        return self._ranges

    def _find_ranges(self, acting: Accessors) -> Ranges:
        warps = acting.group.warps[acting.rows_and_clusters[0]]
        low, high = np.full(warps.size, self.low & -16), np.full(warps.size, self.high + 15 & -16)
        return Ranges(acting, low, high, self._block(acting, warps))

    def _block(self, acting: Accessors, warps: Array) -> Array:
        """The block whose memory each of the warps reaches."""
        return np.asarray(warps // acting.layout.warps)


class Threads(Reach):
    """``nbytes`` at an offset for each lane of a group: those of a pointer, or (where ``off`` is given) these of its
    active lanes. ``aligned``: to as many bytes, or to 16."""

    __slots__ = ("group", "pointer", "off", "nbytes", "mask", "aligned", "_flat")

    def __init__(
        self,
        group: Group,
        pointer: Any,
        nbytes: int,
        mask: Array | None,
        off: Array | None = None,
        aligned: bool = False,
    ) -> None:
        self.group, self.pointer, self.off, self.nbytes, self.mask = group, pointer, off, nbytes, mask
        self.aligned = aligned
        self._flat: Array | None = None
        if off is None and pointer.root is not None:
            (low, high, _), add = pointer.root.range, pointer.add
            super().__init__(low + add, high + add + nbytes, blocks_of(group))
            self.bytes = nbytes * (group.lanes_count if mask is None else int(np.count_nonzero(mask)))
        else:
            at = pointer.off if off is None else off
            super().__init__(int(np.min(at)), int(np.max(at)) + nbytes, blocks_of(group))
        if self.high >> RANK_SHIFT:  # into other blocks of the cluster
            self.low, self.high, self.blocks = 0, 1 << 62, -1

    @property
    def whole_lines(self) -> bool:
        return self.aligned and self.nbytes >= 16

    def distinct(self) -> bool:
        if self.off is not None and self.off.size == 1:
            return True
        root = self.pointer.root if self.off is None and self.blocks > 0 else None
        # The least distance between the lanes of a pointer is found once for all pointers with this root.
        if root is not None and root.gap(self.group) >= self.nbytes:
            return True
        if self.mask is None or self.blocks < 0:
            return False
        there = np.sort(self.flat())
        return bool((there[1:] - there[:-1] >= self.nbytes).all())

    def _find_ranges(self, acting: Accessors) -> Ranges:
        if self.off is not None or self.pointer.root is None or acting.listed:
            return super()._find_ranges(acting)
        # Rounded out to lines of 16 bytes: the caller compares lines.
        (low, high), add = self.pointer.root.by_warp, self.pointer.add
        first, last = low + add & -16, high + (add + self.nbytes + 15) & -16
        return Ranges(acting, first, last, self._block(acting, self.group.warps))

    def offsets(self) -> Array:
        """The offsets of the active lanes, as an access names them."""
        if self.off is not None:
            return self.off
        off = np.asarray(self.pointer.off, np.int64)
        if off.ndim == 0:  # `broadcast_to` takes longer than all the rest
            off = np.broadcast_to(off, (self.group.lanes_count,))
        found: Array = off if self.mask is None else off[self.mask]
        return found

    def flat(self) -> Array:
        if self._flat is None:
            shared: SharedBuffer = self.group.wave.shared
            self._flat = flat_offsets(shared, self.group, self.offsets(), self.mask)
        return self._flat

    def forget(self) -> None:
        super().forget()
        self._flat = None

    def cells(self, shift: int) -> Array:
        return run_of(self.flat() >> shift, self.nbytes >> shift)

    def _find_lines(self) -> Array:
        # Bytes that are not aligned may begin and end inside of a line.
        count = max(1, self.nbytes >> 4) if self.aligned else (self.nbytes >> 4) + 2
        root = self.pointer.root if self.off is None and self.blocks > 0 else None
        if root is None or (root.range[2] | self.pointer.add) & 15:
            return run_of(self.flat() >> 4, count)
        base = self.group.smem_base
        found = root.items(LINE, base) + (self.pointer.add + (base if type(base) is int else 0) >> 4)
        return run_of(found if self.mask is None else found[self.mask], count)


class Several(Reach):
    """Accesses by all lanes of a group through each of several pointers, in the memory of each lane's block; each lane
    makes them one after another. They are of ``access``, and aligned to its width."""

    __slots__ = ("group", "pointers", "access", "_starts", "_known")

    def __init__(self, group: Group, pointers: Sequence[Any], access: Any) -> None:
        self.group, self.pointers, self.access = group, pointers, access
        super().__init__(*span_of(pointers, access.nbytes), blocks_of(group))
        self.bytes = access.nbytes * len(pointers) * group.lanes_count
        self._starts: Array | None = None
        self._known = self._known_of_root()

    def _known_of_root(self) -> dict[str, Any]:
        """What is found out once for all accesses that differ from these by whole lines of 16 bytes, such as those to
        another stage of a ring: whether they are distinct, and their lines as if the first pointer were at 0."""
        root, first = self.root, self.pointers[0].add
        if root is None or first % 16:
            return {}
        key = tuple([p.add - first for p in self.pointers]), self.access
        found: dict[str, Any] = root.reached.setdefault(key, {})
        return found

    @property
    def whole_lines(self) -> bool:
        return self.access.width % 16 == 0

    @property
    def root(self) -> Offsets | None:
        """The offsets from which all of the pointers differ by constants; None where there are several."""
        first: Offsets = self.pointers[0].root
        return first if all(p.root is first for p in self.pointers) else None

    def starts(self) -> Array:
        """``[lanes, pointers]``: the first byte of each access in the wave's shared memory."""
        if self._starts is None:
            root, base = self.root, np.asarray(self.group.smem_base)
            adds = np.array([p.add for p in self.pointers])
            offsets = np.stack([p.root.array for p in self.pointers], 1) if root is None else root.array[:, None]
            self._starts = offsets + adds + base[..., None]
        return self._starts

    def distinct(self) -> bool:
        if "distinct" not in self._known:
            self._known["distinct"] = self._are_distinct()
        found: bool = self._known["distinct"]
        return found

    def _are_distinct(self) -> bool:
        root, nbytes = self.root, self.access.nbytes
        if root is not None and root.gap(self.group) >= nbytes:
            (low, high, _), adds = root.range, sorted(p.add for p in self.pointers)
            if all(after - before >= high - low + nbytes for before, after in zip(adds, adds[1:], strict=False)):
                return True  # each constant moves the accesses beyond those of the one before
        shift = self.access.width.bit_length() - 1
        cells, reached = self.cells(shift), np.zeros(self.group.wave.shared.bytes.size >> shift, bool)
        reached[cells] = True
        return int(np.count_nonzero(reached)) == cells.size

    def _find_ranges(self, acting: Accessors) -> Ranges:
        ranges = [(p.root.by_warp, p.add) for p in self.pointers]
        low = np.minimum.reduce([first + add for (first, _), add in ranges])
        high = np.maximum.reduce([last + add for (_, last), add in ranges])
        block = self._block(acting, self.group.warps)
        return Ranges(acting, low & -16, (high + self.access.nbytes + 15) & -16, block)

    def forget(self) -> None:
        super().forget()
        self._starts = None

    def cells(self, shift: int) -> Array:
        return run_of((self.starts() >> shift).reshape(-1), self.access.nbytes >> shift)

    def _find_lines(self) -> Array:
        if self.root is None or self.pointers[0].add % 16:
            return self._lines_reached()
        first = self.pointers[0].add >> 4
        if "lines" not in self._known:
            self._known["lines"] = self._lines_reached() - first
        found: Array = self._known["lines"] + first
        return found

    def _lines_reached(self) -> Array:
        nbytes = self.access.nbytes
        # What is not aligned to its size may begin and end inside of a line.
        count = max(1, nbytes >> 4) if self.access.width in (WIDEST, nbytes) else (nbytes >> 4) + 2
        return run_of((self.starts() >> 4).reshape(-1), count)


class Box(Reach):
    """``size`` bytes of one block, ``start`` bytes from the wave's first."""

    __slots__ = ("start", "size")

    def __init__(self, start: int, size: int, stride: int) -> None:
        self.start, self.size = start, size
        block, low = divmod(start, stride)
        super().__init__(low, low + size, 1 << block, dense=True)

    @property
    def starts(self) -> Array:
        return np.array([self.start])

    def _block(self, acting: Accessors, warps: Array) -> Array:
        return np.full(warps.size, self.blocks.bit_length() - 1)

    def distinct(self) -> bool:
        return True

    def cells(self, shift: int) -> Array:
        return np.arange(self.start >> shift, (self.start + self.size) >> shift)

    def _find_lines(self) -> slice:
        return slice(self.start >> 4, self.start + self.size + 15 >> 4)

    def count(self, shift: int) -> int:
        return ((self.start + self.size) >> shift) - (self.start >> shift)


class Boxes(Reach):
    """``size`` bytes at one place in the memory of each of several blocks, at ``starts`` from the wave's first byte, in
    the order of those who act."""

    __slots__ = ("starts", "size")

    def __init__(self, boxes: Sequence[Any]) -> None:
        first = boxes[0]
        self.starts, self.size = np.array([box.start for box in boxes]), first.size
        blocks = 0
        for box in boxes:
            blocks |= box.blocks
        super().__init__(first.low, first.high, blocks, dense=True)
        self.bytes = self.size * len(boxes)

    @staticmethod
    def alike(boxes: Sequence[Reach]) -> bool:
        """Whether these are boxes at one place of different blocks."""
        first, blocks = boxes[0], 0
        for box in boxes:
            if type(box) is not Box or (box.low, box.high) != (first.low, first.high) or box.blocks & blocks:
                return False
            blocks |= box.blocks
        return True

    def distinct(self) -> bool:
        return True

    def cells(self, shift: int) -> Array:
        return run_of(self.starts >> shift, self.size >> shift)

    def count(self, shift: int) -> int:
        return (self.size >> shift) * self.starts.size

    def _find_lines(self) -> Array:
        return run_of(self.starts >> 4, (self.high + 15 >> 4) - (self.low >> 4))


class Pieces(Reach):
    """Pieces of 16 bytes, in the blocks of those who read them."""

    __slots__ = ("reads",)

    def __init__(self, reads: PieceReads) -> None:
        self.reads = reads
        blocks = 0
        for number in reads.blocks.tolist():
            blocks |= 1 << number
        super().__init__(*reads.span, blocks)

    def cells(self, shift: int) -> Array:
        return run_of((self.reads.start >> shift).reshape(-1), 16 >> shift)

    def numbers(self, lines: Array) -> Array:
        """Of a tile that fills its bytes, as a rectangle with a row for each block. Invariant: all pieces are in it;
        lines between them make accesses apart less often, never more often."""
        if self.reads.offsets.size * 16 < (self.high - self.low) * self.blocks.bit_count():
            return super().numbers(lines)
        first, stop = (self.blocks & -self.blocks).bit_length() - 1, self.blocks.bit_length()
        per = self.reads.stride >> 4
        blocks = lines[first * per : stop * per].reshape(-1, per)
        return blocks[:, self.low >> 4 : self.high >> 4]


def arrived(landed: Sequence[tuple[Reach, int]], count: int, joint: bool) -> Iterator[tuple[Reach, int, Array]]:
    """Each of what has landed, with the number of its site and the indices of those of the ``count`` mbarriers at which
    it counts: all, or one each of what landed together (``joint``). Boxes at one place of several blocks are one
    access. Invariant: it is apart from others only if each of its boxes is."""
    every = np.arange(count)
    if not joint or len(landed) != count:
        yield from ((reach, number, every) for reach, number in landed)
        return
    boxes = [reach for reach, _ in landed]
    if len({number for _, number in landed}) == 1 and Boxes.alike(boxes):
        yield Boxes(boxes), landed[0][1], every
        return
    yield from ((reach, number, every[k : k + 1]) for k, (reach, number) in enumerate(landed))


def span_of(pointers: Sequence[Any], nbytes: int) -> tuple[int, int]:
    """From where to where accesses through these pointers, of which each has a root, reach in shared memory."""
    ranges = [(p.root.range, p.add) for p in pointers]
    return min(r[0] + add for r, add in ranges), max(r[1] + add for r, add in ranges) + nbytes


def span_at(pointer: Any, distances: Sequence[int], nbytes: int) -> tuple[int, int]:
    """From where to where accesses at these distances from one pointer reach in shared memory."""
    (low, high, _), add = pointer.root.range, pointer.add
    return low + add + min(distances), high + add + max(distances) + nbytes


def run_of(first: Array, count: int) -> Array:
    """``count`` numbers from each of ``first`` on, one after another."""
    return first if count == 1 else (first[:, None] + np.arange(count)).reshape(-1)


def blocks_of(group: Group) -> int:
    """The blocks of a group's warps, by their numbers in the wave, as bits."""
    found: int | None = group.registers.get("check.blocks")
    if found is None:
        there = np.zeros(len(group.wave.coords), bool)
        there[group.warps // group.wave.geometry.warps] = True
        found = int.from_bytes(np.packbits(there, bitorder="little").tobytes(), "little")
        group.registers["check.blocks"] = found
    return found
