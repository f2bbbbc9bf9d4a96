"""TMA copies of drawn tensors, tiles, shared-memory layouts and swizzles, with what NumPy says of them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.machines import on_gpu
from tilewright import utils
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import LayoutError, TilewrightError
from tilewright.layout import (
    Layout,
    ScaledBasis,
    Swizzle,
    coalesce,
    flatten_to_tuple,
    make_composed_layout,
    make_identity_layout,
    size,
    zipped_divide,
)

KINDS = {"u8": np.uint8, "f16": np.float16, "f32": np.float32, "i32": np.int32, "f64": np.float64}
INTERNAL = (cutlass.Uint8, cutlass.Float16, cutlass.Float32, cutlass.Int32, cutlass.Float64, cutlass.Int64)
OUTSIDE, LARGEST = -(1 << 40), 20_000
REDUCED: dict[str, dict[str, Any]] = {
    "f16": {"ADD": np.add, "MIN": np.minimum, "MAX": np.maximum},
    "f32": {"ADD": np.add},
    "i32": {"ADD": np.add, "MIN": np.minimum, "MAX": np.maximum, "AND": np.bitwise_and, "XOR": np.bitwise_xor},
}
"""By the type of the elements: what TMA combines them by, and the same in NumPy."""


class NotCompared(Exception):
    """The case says nothing: what the copy gives has no meaning that NumPy could have."""


class DrawnCopy:
    """One TMA load or store, drawn from ``seed``.

    ``shape``, ``stride``, ``tiler`` and ``smem`` describe the copy; ``known`` says which leaves of shape and stride
    are known while staging, the others are passed to the launch. With ``ways`` also: loads for two blocks at once, or
    from an ``origin`` elsewhere, also before the tensor; reductions; rows a swizzle's span apart in shared memory.
    """

    def __init__(self, seed: int, ways: bool = False) -> None:
        self.seed = seed
        r = self.random = random.Random(seed)
        self.kind = r.choice(list(KINDS))
        self.bytes = np.dtype(KINDS[self.kind]).itemsize
        self.vector = 16 // self.bytes
        self.load = r.random() < 0.6
        self.internal = r.choice(INTERNAL) if r.random() < 0.1 else None
        self.draw_tile()
        self.draw_tensor()
        self.nest()
        share = r.choice([0, 0, 0.4, 0.4, 1, 2])  # of run-time leaves; 2: all strides but 1

        def known(x: int) -> bool:
            return x == 1 if share == 2 else r.random() >= share

        self.known = tuple([tree(known, t) for t in (self.shape, self.stride)])
        self.blocks, self.reduction, self.origin, self.apart = 1, "", tree(lambda _: 0, self.shape), False
        if ways:
            self.draw_way(random.Random(f"way {seed}"))
        self.draw_smem()

    def draw_way(self, r: random.Random) -> None:
        if self.load:
            self.blocks = r.choice([1, 2])
        elif self.kind in REDUCED and r.random() < 0.6:
            self.reduction, self.internal = r.choice(list(REDUCED[self.kind])), None
        if r.random() < 0.5:
            self.origin = tree_of_pairs(lambda n, d: self.draw_begin(r, n, d), self.shape, self.stride)
        self.apart = r.random() < 0.3

    def draw_begin(self, r: random.Random, extent: int, stride: int) -> int:
        """Where tiles begin along a mode: along the contiguous one at multiples of 16 bytes, stores not before it."""
        unit = self.vector if stride == 1 else 1
        steps = [k * unit for k in ((-3, -2, -1, 1, 2) if self.load else (1, 2))]
        return r.choice([0, 0, *[x for x in steps if abs(x) < extent]])

    def draw_tile(self) -> None:
        r = self.random
        self.rank = r.choice([1, 2, 2, 2, 2, 3, 3, 4, 5, 6])
        self.major = r.randrange(self.rank)
        tile = [r.choice([1, 2, 3, 4, 8]) for _ in range(self.rank)]
        tile[self.major] = self.vector * r.choice([1, 2, 3, 4, 8]) if r.random() < 0.9 else r.choice([1, 3, 5])
        while np.prod(tile) > 4096:
            tile[r.choice([k for k in range(self.rank) if k != self.major])] = 1
        self.tile = tuple(tile)
        self.order = [self.major, *r.sample([k for k in range(self.rank) if k != self.major], self.rank - 1)]
        if r.random() < 0.1:
            r.shuffle(self.order)

    def draw_tensor(self) -> None:
        """Whole and ragged tiles; rows padded to 16 bytes, or not, or further apart; now and then any strides."""
        r = self.random
        shape, stride, step = [], [0] * self.rank, 1
        for n in self.tile:
            extent = n * r.choice([1, 1, 2, 2, 3] if self.rank < 4 else [1, 1, 2])
            shape.append(max(1, extent + r.choice([-1, 1, -n // 2, self.vector])) if r.random() < 0.3 else extent)
        for k in self.order:
            stride[k] = step
            step *= shape[k]
            if r.random() < 0.95:
                step = -(-step // self.vector) * self.vector
            step = step + r.choice([0] * 9 + [1, self.vector, step])
        if r.random() < 0.06:
            stride[r.randrange(self.rank)] *= r.choice([2, -1, 0])
        if r.random() < 0.03:
            stride[r.randrange(self.rank)] = r.choice([1, self.vector])
        self.shape, self.stride = tuple(shape), tuple(stride)
        self.tiler: tuple[Any, ...] = self.tile

    def nest(self) -> None:
        """Split a mode of the tensor, group two, or tile by layouts with steps, by fewer modes, or by whole modes."""
        r = self.random
        k = r.randrange(self.rank)
        parts = [f for f in range(2, self.shape[k]) if self.shape[k] % f == 0]
        if parts and r.random() < 0.25:
            f = r.choice(parts)
            steps = [self.stride[k], self.stride[k] * f + r.choice([0, 0, self.vector, 1])]
            r.shuffle(steps)
            self.shape = (*self.shape[:k], (f, self.shape[k] // f), *self.shape[k + 1 :])
            self.stride = (*self.stride[:k], tuple(steps), *self.stride[k + 1 :])
        if self.rank > 1 and r.random() < 0.1:
            self.shape, self.stride = ((t[:2], *t[2:]) for t in (self.shape, self.stride))
            self.tiler = (self.tile[:2] if r.random() < 0.5 else self.tile[0] * self.tile[1], *self.tile[2:])
        elif r.random() < 0.08:
            self.tiler = tuple([Layout(n, r.choice([1, 2, 3])) if i == k else n for i, n in enumerate(self.tile)])
        elif r.random() < 0.05:
            self.tiler = self.tile[:-1] or self.tile

    def draw_smem(self) -> None:
        """Mostly in the tensor's order, with gaps, swizzles and rows as long as the swizzle's span."""
        r = self.random
        order = self.order if r.random() < 0.8 else r.sample(self.order, self.rank)
        shape: list[Any] = list(self.tile)
        stride: list[Any] = [0] * self.rank
        bits, step = r.randrange(4), 1
        row = (16 << bits) // self.bytes
        rows = self.tile[order[0]] // row if r.random() < 0.3 and self.tile[order[0]] % row == 0 else 1
        for i, k in enumerate(order):
            stride[k] = step
            step *= row if i == 0 and rows > 1 else self.tile[k]
            step += r.choice([0] * 30 + [1, self.vector])
            step = max(step, row) if self.apart else step
        if rows > 1:
            shape[order[0]], stride[order[0]] = (row, rows), (1, step)
        elif r.random() < 0.05:
            stride = [d * r.choice([1, 1, 2, 0]) for d in stride]
        layout = Layout(tuple(shape), tuple(stride))
        self.smem: Any = coalesce(layout) if r.random() < 0.1 else layout
        self.in_bytes = False
        if r.random() < 0.5:
            base = 4 if r.random() < 0.95 else r.choice([4 - (self.bytes.bit_length() - 1), 3, 2])
            shift = 3 if r.random() < 0.95 else 4
            self.smem = make_composed_layout(Swizzle(bits, base, shift), 0, self.smem)
            self.in_bytes = base == 4 and self.bytes > 1

    def offsets(self) -> Any:
        """[tile, element] -> offset in the tensor, or OUTSIDE; NotCompared where these are too many."""
        tiles = zipped_divide(make_identity_layout(self.shape), self.tiler)
        if size(tiles) > LARGEST:
            raise NotCompared
        ends, strides = flatten_to_tuple(self.shape), flatten_to_tuple(self.stride)

        def offset(i: int, t: int) -> int:
            at = coordinates(tiles((i, t)), self.shape)
            at = tuple([c + begin for c, begin in zip(at, flatten_to_tuple(self.origin), strict=True)])
            inside = all(0 <= c < n for c, n in zip(at, ends, strict=True))
            return sum(c * d for c, d in zip(at, strides, strict=True)) if inside else OUTSIDE

        count, elements = size(tiles.shape[1]), size(tiles.shape[0])
        return np.array([[offset(i, t) for i in range(elements)] for t in range(count)])

    def run(self, device: str = "cpu") -> str:
        """``exact``, ``wrong`` and where, ``skipped``, or the error that refuses the copy; ``device`` may be "cuda"."""
        try:
            offsets = self.offsets()
        except LayoutError as error:
            return f"refused: {error}"
        except NotCompared:
            return "skipped"
        inside = offsets > OUTSIDE
        touched = offsets[inside]
        overlap = np.unique(touched).size < touched.size  # of such a store any order is right
        if touched.size == 0 or (not self.load and overlap):
            return "skipped"
        self.begin = 512 + max(0, -int(touched.min())) // 256 * 256 + 256
        offsets = offsets + self.begin
        rng = np.random.default_rng(self.seed)
        kind = KINDS[self.kind]
        memory = aligned(int(offsets[inside].max()) + 512, kind)
        memory[:] = rng.integers(1, 100, memory.size)
        tiles = rng.integers(1, 100, offsets.shape).astype(kind)
        want_memory, want_tiles = memory.copy(), tiles.copy()
        if self.load:
            want_tiles[:] = np.where(inside, memory[np.where(inside, offsets, 0)], 0)
            tiles, want_tiles = (np.repeat(x, self.blocks, 0) for x in (tiles, want_tiles))
        elif self.reduction:
            combined = REDUCED[self.kind][self.reduction](memory[offsets[inside]], tiles[inside])
            want_memory[offsets[inside]] = combined
        else:
            want_memory[offsets[inside]] = tiles[inside]
        leaves = [(x, k) for t, k in zip((self.shape, self.stride), self.known, strict=True) for x, k in pairs(t, k)]
        numbers = [cutlass.Int32(x) for x, known in leaves if not known]
        self.count, self.elements = offsets.shape
        there = [memory, tiles] if device == "cpu" else [on_gpu(memory), on_gpu(tiles)]
        try:
            CopyTiles(self)(from_dlpack(there[0], assumed_align=16), numbers, from_dlpack(there[1], assumed_align=16))
        except TilewrightError as error:
            return f"refused: {type(error).__name__}: {error}"
        except NotCompared:
            return "skipped"
        if device != "cpu":
            memory[:], tiles[:] = (x.cpu().numpy() for x in there)
        if not self.load:  # what is behind the end of a row in its last 16 bytes may be written, too
            chunks = np.arange(memory.size) // self.vector
            behind = np.isin(chunks, chunks[offsets[inside]])
            behind[offsets[inside]] = False
            memory[behind] = want_memory[behind]
        for name, found, want in (
            ("memory", memory, want_memory),
            ("tiles", tiles.reshape(-1), want_tiles.reshape(-1)),
        ):
            if (places := np.flatnonzero(found != want)).size:
                first = ", ".join(f"[{i}] {found[i]} for {want[i]}" for i in places[:4])
                begins = f", the tensor begins at {self.begin}" if name == "memory" else ""
                return f"wrong: {places.size} elements of {name}{begins}: {first}"
        return "exact"

    def __str__(self) -> str:
        way = f"load for {self.blocks}" if self.load else self.reduction or "store"
        return (
            f"{self.seed}: {way} {self.kind} {self.shape}:{self.stride} from {self.origin} on, known {self.known}, "
            f"tiles {self.tiler}, shared memory {self.smem}, internal type {self.internal}"
        )


class CopyTiles:
    """Each block copies one tile by TMA, and by its threads to or from a row of ``rows``."""

    def __init__(self, case: DrawnCopy) -> None:
        self.case = case

    @cute.jit
    def __call__(self, memory: cute.Tensor, numbers: list, rows: cute.Tensor):
        case, rest = self.case, iter(numbers)
        shape, stride = (given(t, known, rest) for t, known in zip((case.shape, case.stride), case.known, strict=True))
        tensor = cute.make_tensor(memory.iterator + case.begin, cute.make_layout(shape, stride=stride))
        op, n = operation(case), case.blocks
        made = cpasync.make_tiled_tma_atom(
            op, tensor, case.smem, case.tiler, num_multicast=n, internal_type=case.internal
        )
        check_origin(case.origin, made[1].layout.stride, case.tile)
        self.kernel(*made, rows).launch(grid=(n * case.count, 1, 1), block=(32, 1, 1), cluster=(n, 1, 1))

    @cute.kernel
    def kernel(self, atom: cute.CopyAtom, tensor: cute.Tensor, rows: cute.Tensor):
        case = self.case
        lane, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        if cutlass.const_expr(case.in_bytes):
            tile = smem.allocate_tensor(rows.element_type, case.smem.outer, 1024, swizzle=case.smem.inner)
        else:
            tile = smem.allocate_tensor(rows.element_type, case.smem, 1024)
        if lane == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if cutlass.const_expr(case.blocks > 1):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        if cutlass.const_expr(any(flatten_to_tuple(case.origin))):
            tensor = cute.domain_offset(case.origin, tensor)
        tiles = cute.zipped_divide(tensor, case.tiler)
        grouped = cute.group_modes(tile, 0, cute.rank(tile))
        rank, n = block % case.blocks, cute.make_layout(case.blocks)
        shared, parts = cpasync.tma_partition(atom, rank, n, grouped, tiles)
        if cutlass.const_expr(case.load):
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, case.elements * case.bytes)
            part = parts[None, block // case.blocks]
            if cutlass.const_expr(case.blocks > 1):
                cute.copy(atom, part, shared, tma_bar_ptr=full, mcast_mask=cutlass.Int16((1 << case.blocks) - 1))
            else:
                cute.copy(atom, part, shared, tma_bar_ptr=full)
            cute.arch.mbarrier_wait(full, 0)
            for i in cutlass.range(lane, cute.size(tile), 32):
                rows[block, i] = tile[i]
            if cutlass.const_expr(case.blocks > 1):
                cute.arch.cluster_arrive()
                cute.arch.cluster_wait()
        else:
            for i in cutlass.range(lane, cute.size(tile), 32):
                tile[i] = rows[block, i]
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.sync_warp()
            cute.copy(atom, shared, parts[None, block])
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)


def operation(case: DrawnCopy) -> Any:
    if case.reduction:
        return cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp[case.reduction])
    if case.blocks > 1:
        return cpasync.CopyBulkTensorTileG2SMulticastOp()
    return cpasync.CopyBulkTensorTileG2SOp() if case.load else cpasync.CopyBulkTensorTileS2GOp()


def check_origin(origin: Any, strides: Any, tile: tuple[int, ...]) -> None:
    """NotCompared for an origin along modes that share a TMA mode, or have none: what is past the end of one is an
    element of the other there, as without TMA. A mode of extent 1 has no coordinate, and boxes past its end
    may share the TMA mode of another one."""
    steps = flatten_to_tuple(strides)
    overhung = any(n > 1 and not isinstance(step, ScaledBasis) for n, step in zip(tile, steps, strict=False))
    if any(flatten_to_tuple(origin)) and (overhung or len(steps) > len(tile)):
        raise NotCompared
    modes = Counter(step.mode for step in steps if isinstance(step, ScaledBasis))
    for begin, step in zip(flatten_to_tuple(origin), steps, strict=True):
        if begin and not (isinstance(step, ScaledBasis) and step.value == 1 and modes[step.mode] == 1):
            raise NotCompared


def given(t: Any, known: Any, numbers: Any) -> Any:
    """The tree with run-time numbers in the places of the leaves that are not known."""
    if isinstance(t, tuple):
        return tuple([given(x, k, numbers) for x, k in zip(t, known, strict=True)])
    return t if known else next(numbers)


def tree(function: Any, t: Any) -> Any:
    return tuple([tree(function, x) for x in t]) if isinstance(t, tuple) else function(t)


def tree_of_pairs(function: Any, t: Any, other: Any) -> Any:
    if not isinstance(t, tuple):
        return function(t, other)
    return tuple([tree_of_pairs(function, x, y) for x, y in zip(t, other, strict=True)])


def pairs(t: Any, other: Any) -> Any:
    return zip(flatten_to_tuple(t), flatten_to_tuple(other), strict=True)


def coordinates(c: Any, shape: Any) -> tuple[int, ...]:
    """A coordinate for each leaf of ``shape``; those that a layout leaves out at the end are 0."""
    if not isinstance(shape, tuple):
        return flatten_to_tuple(c)
    given = c if isinstance(c, tuple) else (c,)
    whole = (*given, *[0] * (len(shape) - len(given)))
    return tuple([y for x, n in zip(whole, shape, strict=True) for y in coordinates(x, n)])


def aligned(n: int, kind: Any) -> Any:
    """An array of ``n`` elements at a multiple of 256 bytes."""
    raw = np.zeros(n * np.dtype(kind).itemsize + 256, np.uint8)
    begin = -raw.ctypes.data % 256
    return raw[begin : begin + n * np.dtype(kind).itemsize].view(kind)
