"""Small random kernels: stores and loads of a few tiles in shared memory by patterns of threads, under conditions, with
barriers of the block, of some warps, of lanes, in loops, and copies by cp.async.
"""

from __future__ import annotations

import random
from typing import Any

import tilewright as cutlass
from tilewright import cute

THREADS = 96
SEVERAL = ("stores", "copies", "load", "sync", "stores", "copies", "wait", "both")  # accesses of which ops make two
KINDS = ("store", "load", "sync", "warp", "named", "load", "store", "wide", "copy", "wait", "both")


def program(seed: int, kinds: tuple[str, ...] = KINDS) -> list[tuple[str, int, int, int]]:
    """(what, tile, pattern, who) of each step."""
    draw = random.Random(seed)
    return [(draw.choice(kinds), draw.randrange(2), draw.randrange(7), draw.randrange(4)) for _ in range(14)]


def place(pattern: int, t: Any) -> Any:
    every_other = [(u % 48) // 4 * 8 + u // 48 * 4 + u % 4 for u in (t, (t + 48) % THREADS)]  # line of 16 bytes
    return (t, THREADS - 1 - t, (t * 5) % THREADS, t // 32 * 32 + (t + 7) % 32, t // 2, *every_other)[pattern]


def step(what: str, tile: Any, source: Any, pattern: int, t: Any) -> Any:
    """One step; gives what was loaded."""
    at = place(pattern, t)
    if what == "store":
        tile[at] = cute.Float32(t + pattern)
    elif what == "wide":
        tile[at] = tile[at] + 1.0
    elif what == "load":
        return tile[at]
    elif what == "both":  # loads of one op, at one moment
        two = cute.make_tensor(tile.iterator + at, cute.make_layout((1, 2), stride=(1, 4)))
        found = cute.make_fragment_like(two)
        cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32), two, found)
        return found[0, 0] + found[0, 1]
    elif what == "sync":
        cute.arch.sync_threads()
    elif what == "warp":
        cute.arch.sync_warp()
    elif what == "named":
        cute.arch.barrier(barrier_id=1, number_of_threads=THREADS)
    elif what == "copy":
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
        one = cute.make_layout(1)
        cute.copy(atom, cute.make_tensor(source.iterator + t, one), cute.make_tensor(tile.iterator + at, one))
        cute.arch.cp_async_commit_group()
    elif what == "wait":
        cute.arch.cp_async_wait_group(0)
    elif what in ("stores", "copies"):  # to one tile and the other, or to places that lanes share
        apart = cute.make_layout((1, 2), stride=(1, THREADS if pattern < 5 else 4))
        two = cute.make_tensor(tile.iterator + at, apart)
        if what == "stores":
            values = cute.make_fragment_like(two)
            values.fill(t + pattern)
            cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32), values, two)
        else:
            atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
            cute.copy(atom, cute.make_tensor(source.iterator + t, cute.make_layout((1, 2), stride=(1, 0))), two)
            cute.arch.cp_async_commit_group()
    return cute.Float32(0)


def kernel_of(seed: int, kinds: tuple[str, ...] = KINDS) -> Any:
    """The kernel of these steps, done twice; it takes ``THREADS`` numbers, and gives as many for each of two blocks."""
    steps = program(seed, kinds)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        memory = cute.arch.alloc_smem(cute.Float32, (3 if kinds is SEVERAL else 2) * THREADS + 4)
        tiles = [cute.make_tensor(memory + k * THREADS, cute.make_layout(THREADS)) for k in range(2)]
        total = cute.Float32(0)
        for _turn in range(2):
            for what, tile, pattern, who in steps:
                if cutlass.const_expr(who < 2 and what in ("store", "load", "wide", "both")):
                    if (t < 40) == (who == 0):
                        step(what, tiles[tile], x, pattern, t)
                else:
                    total = total + step(what, tiles[tile], x, pattern, t)
        y[b * THREADS + t] = total

    return kernel
