"""The simulator's TMA unit: boxes move between global and shared memory later than they are issued.

A load lands when no warp can go on without it. A store reads shared memory and writes global memory as late as the
waits for its bulk group allow (:mod:`tilewright.atoms.bulk_groups`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.bulk_groups import BulkGroups
from tilewright.atoms.mbarrier_state import Touch
from tilewright.ir.instruction import Lanes
from tilewright.ir.joint import JointAction
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.tensormap import ATOM_32B, BYTES, GROUP, TensorMap, expands, row_bytes
from tilewright.ir.types import PtrType, Type

if TYPE_CHECKING:
    from tilewright.atoms.tma import TmaCopy

POISON = 0xCD
STORED_BITS = 128
"""What a store or a reduction writes at least, and a multiple of it."""
READS, WRITES = "cp.async.bulk.read", "cp.async.bulk"  # the two agents that a bulk group waits for


class Engine:
    """The copies that the warps of a group issue with one instruction: one thread of each warp issues it, or ``each``
    thread that is here."""

    def __init__(self, lanes: Lanes, copy: TmaCopy, tensor_map: Any, kind: Type) -> None:
        """``tensor_map`` is the operand, ``kind`` its type: a tensor map, or a pointer to one."""
        self.lanes, self.copy, self.name, self.each = lanes, copy, copy.mnemonic(), copy.each
        self.leaders = np.flatnonzero(lanes.active()) if self.each else self._elected()
        self.words = words_of(lanes, tensor_map, kind)

    def _elected(self) -> Array:
        """The first lane of each warp that is here, with all of its threads."""
        active = self.lanes.active().reshape(-1, WARP)
        count = active.sum(axis=1)
        torn = (count > 0) & (count < WARP)
        if torn.any():
            raise self.lanes.fault(
                f"{self.name} by {int(count[torn][0])} of the 32 threads of a warp: the warp elects the thread that "
                "issues, for which all 32 must be here",
                np.repeat(torn, WARP),
                "call cute.copy with a TMA atom from a whole warp (if warp_idx == 0:), not inside `with "
                "elect_one():` or "
                "`if tidx == 0:`",
            )
        return np.flatnonzero(count) * WARP

    def maps(self) -> Iterator[tuple[int, TensorMap]]:
        """The threads that issue, each with its tensor map."""
        seen: dict[bytes, TensorMap] = {}
        for leader in self.leaders:
            words = self.words[leader]
            key = words.tobytes()
            if key not in seen:
                tensor_map = TensorMap.of_image(words)
                if tensor_map is None:
                    raise self.lanes.fault(
                        f"{self.name}: the memory that it names does not hold a tensor map",
                        fix="copy one there first (copy_tensormap), and fence before it is used",
                    )
                problem, fix = self.copy.misfit(tensor_map)
                if problem:
                    raise self.lanes.fault(f"{self.name}: {problem}", fix=fix)
                seen[key] = tensor_map
            yield int(leader), seen[key]

    def boxes(self, values: list[Any], leader: int, tensor_map: TensorMap) -> list[tuple[int, ...]]:
        """The first elements, contiguous mode first, of the boxes of the copy that ``leader`` issues; of one that a
        warp elects a thread for they are the same in all lanes."""
        origin = self.coordinates(values, leader, tensor_map)
        return [(origin[0], row) for row in origin[1:]] if self.copy.rows else [origin]

    def read(self, tensor_map: TensorMap, coordinates: tuple[int, ...]) -> Array:
        """The bytes of a box."""
        return read_box(self.lanes, tensor_map, coordinates)

    def coordinates(self, values: list[Any], leader: int, tensor_map: TensorMap) -> tuple[int, ...]:
        """What the thread that issues has given."""
        for value in [] if self.each else values:
            if np.ndim(value) and (value[leader : leader + WARP] != value[leader]).any():
                raise self.lanes.fault(
                    f"{self.name}: the coordinates of the box differ among the threads of a warp, one of which issues",
                    fix="make them of numbers that are equal in the whole warp (make_warp_uniform)",
                )
        origin = tuple(int(v if np.ndim(v) == 0 else v[leader]) for v in values)
        if expands(tensor_map.element) and origin[0] % GROUP:
            raise self.lanes.fault(
                f"{self.name}: the box begins at element {origin[0]} of the contiguous mode, and numbers of "
                f"{tensor_map.element.width} bits are expanded in multiples of {GROUP}",
                fix=f"let boxes begin at multiples of {GROUP} elements along that mode",
            )
        bits = tensor_map.element.width
        if origin[0] * bits % 128:
            raise self.lanes.fault(
                f"{self.name}: the box begins at element {origin[0]} of the contiguous mode, {origin[0] * bits // 8} "
                "bytes on, no multiple of 16: the hardware stops with an illegal instruction",
                fix=f"let boxes begin at multiples of {max(1, 128 // bits)} elements along that mode",
            )
        return origin

    def aligned(self, places: Array, tensor_map: TensorMap) -> None:
        wrong = places & 127
        if wrong.any():
            offset = int(places[np.flatnonzero(wrong)[0]]) & 0xFFFFFFFF
            raise self.lanes.fault(
                f"{self.name}: the box in shared memory begins at byte {offset}, no multiple of 128",
                fix="allocate with byte_alignment=128 and keep the stages multiples of it",
            )


class LoadEngine(Engine):
    def load(self, copies: list[list[Any]], barrier: Any, mask: Any, pair: bool = False) -> None:
        """Queue each warp's boxes, which arrive later; ``mask`` names the blocks of the cluster that receive them;
        ``pair``: they count at the mbarrier of the first block of the receiver's pair."""
        masks = None if mask is None else self.lanes.spread(mask).astype(np.int64) & 0xFFFF
        receive = [receivers(self.lanes, address, barrier, masks, pair) for address, *_ in copies]
        loads = []
        for leader, tensor_map in self.maps():
            if masks is not None and not masks[leader]:
                raise self.lanes.fault(
                    f"{self.name}: the multicast mask is 0: no block receives the box",
                    fix="make it with create_tma_multicast_mask or make_layout_image_mask",
                )
            for (_, *coordinates), where in zip(copies, receive, strict=True):
                places = where(leader)
                self.aligned(np.array([place for place, _ in places]), tensor_map)
                load = _Load(self, leader, tensor_map, self.boxes(coordinates, leader, tensor_map), places)
                loads.append((load, leader, load.size))
        self.lanes.all_eventually(loads)


def receivers(
    lanes: Lanes, address: Any, barrier: Any, masks: Array | None, pair: bool = False
) -> Callable[[int], list[tuple[int, int]]]:
    """A function that gives, for a lane, the (place, mbarrier) of every block that receives what it loads: its own, or
    those of the cluster in its mask. ``pair``: the mbarrier of the block of even rank of the receiver's pair."""
    if masks is None:
        even = lanes.sreg("cluster_ctarank") & ~1 if pair else None
        places, barriers = lanes.places(address), lanes.places(barrier, even)
        return lambda lane: [(int(places[lane]), int(barriers[lane]))]
    active = lanes.active()
    ranks = {}
    for rank in range(16):
        chosen = masks >> rank & 1
        if (chosen.astype(bool) & active).any():
            there = np.where(chosen, rank, 0)
            ranks[rank] = lanes.places(address, there), lanes.places(barrier, there & ~1 if pair else there)
    return lambda lane: [
        (int(places[lane]), int(barriers[lane]))
        for rank, (places, barriers) in ranks.items()
        if masks[lane] >> rank & 1
    ]


class _Load(JointAction):
    """The moment at which boxes arrive and their bytes count at the mbarriers. Lane ``leader`` has issued it."""

    def __init__(
        self,
        engine: Engine,
        leader: int,
        tensor_map: TensorMap,
        boxes: list[tuple[int, ...]],
        where: list[tuple[int, int]],
    ) -> None:
        self.engine, self.leader, self.map, self.boxes, self.where = engine, leader, tensor_map, boxes, where
        self.blocks = frozenset(place >> 32 for places in where for place in places) if len(where) == 1 else frozenset()
        self.size = len(boxes) * tensor_map.box_bytes
        self.place_size = len(boxes) * tensor_map.place_bytes

    @classmethod
    def may(cls, loads: Sequence[_Load]) -> bool:
        return not cls._at_barriers(loads).fails(-cls._counts(loads))

    def alone(self) -> None:
        lanes, tensor_map = self.engine.lanes, self.map
        blocks = [self.engine.read(tensor_map, coordinates) for coordinates in self.boxes]
        block = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        if expands(tensor_map.element):
            block = expanded(block, tensor_map.element.width)
        for place, barrier in self.where:
            put(lanes.shared_bytes(place, whole_rows(self.place_size), True), block, place, tensor_map)
            if len(self.where) > 1:  # to several blocks
                Touch.at(lanes, np.array([barrier]), self.engine.name).exists().complete(self._counts([self]))

    @classmethod
    def after_all(cls, loads: Sequence[_Load]) -> None:
        if len(loads[0].where) == 1:
            cls._at_barriers(loads).exists().complete(cls._counts(loads))

    @staticmethod
    def _at_barriers(loads: Sequence[_Load]) -> Touch:
        engine = loads[0].engine
        touch = Touch.at(engine.lanes, np.array([load.where[0][1] for load in loads]), engine.name)
        if len(loads) > 1:
            touch.issuers = np.array([load.leader for load in loads])
        return touch

    @staticmethod
    def _counts(loads: Sequence[_Load]) -> Array:
        return np.array([load.size for load in loads])


class StoreEngine(Engine):
    def write(self, tensor_map: TensorMap, coordinates: tuple[int, ...], block: Array, reduction: str) -> None:
        """Write the bytes of a box, combined with the previous contents."""
        write_box(self.lanes, tensor_map, coordinates, block, reduction)

    def inside(self, boxes: list[tuple[int, ...]]) -> None:
        """A fault where a box begins before the tensor (PTX ISA, "Restriction on Tensor Copy instructions")."""
        for box in boxes:
            if min(box) < 0:
                raise self.lanes.fault(
                    f"{self.name}: the box begins at {box}, before the tensor: what is beyond its end is left out, but "
                    "at a negative coordinate the hardware stops with an illegal instruction",
                    fix="let boxes that are stored begin at coordinates from 0 on",
                )

    def store(self, copies: list[list[Any]], reduction: str) -> None:
        sources = [self.lanes.places(address) for address, *_ in copies]
        stores = []
        for leader, tensor_map in self.maps():
            for (_, *coordinates), places in zip(copies, sources, strict=True):
                self.aligned(places[[leader]], tensor_map)
                where = self.boxes(coordinates, leader, tensor_map)
                self.inside(where)
                store = _Store(self, tensor_map, where, int(places[leader]), reduction)
                stores.append((leader, store.read, store.write))
        self.lanes.beside(BulkGroups).add(self.lanes, stores)


class _Store:
    """The two moments of a store: shared memory is read, global memory is written."""

    def __init__(
        self, engine: StoreEngine, tensor_map: TensorMap, boxes: list[tuple[int, ...]], place: int, reduction: str
    ) -> None:
        self.engine, self.map, self.boxes = engine, tensor_map, boxes
        self.place, self.reduction = place, reduction
        self.block: Array | None = None

    def read(self) -> None:
        if self.block is None:
            count = len(self.boxes)
            source = self.engine.lanes.shared_bytes(self.place, whole_rows(count * self.map.place_bytes), False)
            self.block = get(source, count * self.map.box_bytes, self.place, self.map)

    def write(self) -> None:
        self.read()
        assert self.block is not None
        for coordinates, block in zip(self.boxes, np.split(self.block, len(self.boxes)), strict=True):
            self.engine.write(self.map, coordinates, block, self.reduction)
        self.block = np.zeros(0, np.uint8)  # it may be kept for long, its bytes need not


def words_of(lanes: Lanes, tensor_map: Any, kind: Type) -> Array:
    """``[L, 16]`` words of the tensor map of each lane."""
    if not isinstance(kind, PtrType):
        words: Array = tensor_map
        return words
    return np.ascontiguousarray(lanes.load(tensor_map, BYTES // kind.elem.bytes)).view(np.uint64)


# -- boxes in global memory --------------------------------------------------------------------------------------------


def _inside(tensor_map: TensorMap, coordinates: tuple[int, ...]) -> tuple[list[int], list[int]] | None:
    """For each mode where the box enters the tensor, and for how many elements; None if nowhere."""
    start = [max(0, -c) for c in coordinates]
    count = [min(b, n - c) - s for b, n, c, s in zip(tensor_map.box, tensor_map.dims, coordinates, start, strict=True)]
    return (start, count) if min(count) > 0 else None


def _view(
    lanes: Lanes, tensor_map: TensorMap, coordinates: tuple[int, ...], start: list[int], count: list[int], writes: bool
) -> Array:
    """The live bytes of the part of the box that is in the tensor, outermost mode first."""
    width, strides = tensor_map.element.width, tensor_map.strides
    at = [c + s for c, s in zip(coordinates, start, strict=True)]
    offset = at[0] * width // 8 + sum(i * d for i, d in zip(at[1:], strides, strict=True))
    address = (tensor_map.address + offset) % (1 << 64)  # maps of ragged tensors go around
    shape = [*reversed(count[1:]), count[0] * width // 8]
    return lanes.global_bytes(address, shape, [*reversed(strides), 1], writes)


def _part(tensor_map: TensorMap, block: Array, start: list[int], count: list[int]) -> Array:
    """The same part of ``block``, the bytes of a whole box."""
    width = tensor_map.element.width
    shaped = block.reshape(*reversed(tensor_map.box[1:]), tensor_map.box[0] * width // 8)
    rest = [slice(s, s + n) for s, n in zip(start[1:], count[1:], strict=True)]
    return shaped[(*reversed(rest), slice(start[0] * width // 8, (start[0] + count[0]) * width // 8))]


def read_box(lanes: Lanes, tensor_map: TensorMap, coordinates: tuple[int, ...]) -> Array:
    """The bytes of a box, zeros where it is outside the tensor."""
    inside = _inside(tensor_map, coordinates)
    block = np.zeros(tensor_map.box_bytes, np.uint8)
    if inside is not None:
        _part(tensor_map, block, *inside)[...] = _view(lanes, tensor_map, coordinates, *inside, writes=False)
    return block


def write_box(lanes: Lanes, tensor_map: TensorMap, coordinates: tuple[int, ...], block: Array, reduction: str) -> None:
    """Write the part of the box that is in the tensor, combined with the previous contents.

    Stores write whole chunks of 16 bytes, and reductions combine whole ones: where the contiguous extent ends within
    one, the rest of the chunk comes from the box, too, over whatever is behind the tensor's row (so does an H200).
    """
    inside = _inside(tensor_map, coordinates)
    if inside is None:
        return
    start, count = inside
    count[0] = min(in_chunks(tensor_map, count[0]), tensor_map.box[0] - start[0])
    target = _view(lanes, tensor_map, coordinates, start, count, writes=True)
    combine(tensor_map, target, _part(tensor_map, block, start, count), reduction)


def in_chunks(tensor_map: TensorMap, count: int) -> int:
    """The elements of the whole chunks that hold ``count``."""
    chunk = max(1, STORED_BITS // tensor_map.element.width)
    return -(-count // chunk) * chunk


def combine(tensor_map: TensorMap, target: Array, part: Array, reduction: str) -> None:
    """Write the bytes ``part`` to ``target``, combined with the previous contents as elements of the tensor map."""
    if reduction:
        dtype = tensor_map.element.dtype
        old, new = (np.ascontiguousarray(x).view(dtype) for x in (target, part))
        part = np.ascontiguousarray(reduced(reduction, old, new)).view(np.uint8)
    target[...] = part


def reduced(kind: str, old: Array, new: Array) -> Array:
    """``old`` combined with ``new`` element by element, in their own type."""
    one = old.dtype.type(1)
    if kind == "inc":
        return np.where(old >= new, old.dtype.type(0), old + one)
    if kind == "dec":
        return np.where((old == 0) | (old > new), new, old - one)
    actions: dict[str, Any] = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    result: Array = actions[kind](old, new).astype(old.dtype, copy=False)
    return result


# -- boxes in shared memory --------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _chunks(swizzle: int, row: int, pitch: int, first: int, count: int) -> Array:
    """Where the 16-byte chunks of a box go, less the chunk ``first`` at which it begins: rows of ``row`` chunks are
    ``pitch`` chunks apart, and bits 4-6 of the byte address are xored with bits 7-9, as many of them as the swizzle
    has; with chunks of 32 bytes bits 5-6 with bits 7-8."""
    chunk = np.arange(count)
    address = first + chunk // row * pitch + chunk % row
    if swizzle == ATOM_32B:
        return (address ^ (address >> 2 & 6)) - first
    mask = (1 << swizzle) - 1
    return (address ^ (address >> 3 & mask)) - first


def _chunk_order(place: int, size: int, tensor_map: TensorMap) -> Array:
    row, pitch = row_bytes(tensor_map.element, tensor_map.box[0], tensor_map.swizzle)
    return _chunks(tensor_map.swizzle, row // 16, pitch // 16, (place & 0xFFFFFFFF) % 1024 // 16, size // 16)


def expanded(block: Array, width: int) -> Array:
    """A box as it is in shared memory: 16 numbers fill the first bytes of 16; what the others hold is not said."""
    groups = block.reshape(-1, 2 * width)
    out = np.full((len(groups), 16), POISON, np.uint8)
    out[:, : 2 * width] = groups
    return out.reshape(-1)


def whole_rows(size: int) -> int:
    """The swizzles permute rows of 128 bytes."""
    return -(-size // 128) * 128


def put(target: Array, block: Array, place: int, tensor_map: TensorMap) -> None:
    """Write boxes to the live bytes of shared memory that begin at ``place``; what is behind a row that is shorter than
    the swizzle's span is left alone."""
    if not tensor_map.swizzle:
        target[: block.size] = block
    else:
        target.reshape(-1, 16)[_chunk_order(place, block.size, tensor_map)] = block.reshape(-1, 16)


def get(source: Array, size: int, place: int, tensor_map: TensorMap) -> Array:
    """A copy of the ``size`` bytes of boxes in the live bytes of shared memory that begin at ``place``."""
    if not tensor_map.swizzle:
        return source[:size].copy()
    items: Array = source.reshape(-1, 16)[_chunk_order(place, size, tensor_map)].reshape(-1)
    return items
