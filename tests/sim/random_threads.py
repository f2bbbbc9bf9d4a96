"""Random programs of threads that multiply what they have loaded from shared memory."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np

from tests.sim.build import Kernel, c, gptr
from tilewright.atoms.cp_async import CpAsync, CpAsyncCommit, CpAsyncWait
from tilewright.atoms.fma import UniversalFma
from tilewright.atoms.universal import UniversalCopy
from tilewright.ir.core import Value
from tilewright.ir.types import F32, MemSpace, PtrType
from tilewright.layout import Layout

WARPS, BLOCKS, K, M, N = 4, 3, 3, 4, 8
ROW = 32 * (M + N)  # of each k: what 32 rows of A have, then what 32 columns of B have
WORDS = K * ROW  # shared memory of a warp
GRIDS = [(4, 8), (8, 4), (1, 32), (32, 1), (2, 16), (4, 4), (32, 32)]  # the last two are not grids of 32 lanes


class RandomThreads(Kernel):
    """Each lane loads its row of A and its column of B from shared memory, k after k, and multiplies, in a drawn order,
    in branches and loops, with looks at the sums and stores to shared memory between."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        super().__init__(gptr(F32, 16), gptr(F32, 16), smem_bytes=4 * WARPS * WORDS)
        self.seen = 0
        self.lane, warp = self.sreg("laneid"), self.sreg("warpid")
        self.odd = self.compare("eq", self.binary("and", warp, c(1)), c(1))
        self.low = self.compare("lt", self.lane, c(16))
        self.smem = self.at(self.smem_alloc(0, 4 * WARPS * WORDS, 128, F32), self.mul(warp, WORDS))
        source = self.at(self.args[0], self.add(self.mul(warp, WORDS), self.lane))
        unwritten = self.draw.choice((-1, -1, -1, self.draw.randrange(0, WORDS, 32)))
        for at in range(0, WORDS, 32):  # shared memory of the warp, as it is in global memory, or not yet written
            if at == unwritten:
                continue
            self.store(self.at(self.at(self.smem, self.lane), at), self.load(self.at(source, at)))
        self.sync()
        rows, columns = self.draw.choice(GRIDS)
        row = self.binary("rem", self.lane, c(rows))
        column = self.binary("rem", self.binary("div", self.lane, c(min(rows, 32 // columns))), c(columns))
        self.each = self.draw.choice((1, 2, 4))
        self.a_row = self.aligned(self.smem, self.mul(row, M))
        self.b_row = self.aligned(self.smem, self.add(self.mul(column, N), 32 * M))
        self.a, self.b, self.d = (self.frag_alloc(F32, n) for n in (K * M, K * N, M * N))
        self.frag_store(self.d, self.splat(c(5.0, F32), M * N), range(M * N))
        self.out = self.at(self.args[1], self.mul(self.global_id(), M * N * 64))
        for k in range(K):
            self.loads(k)
        if self.draw.random() < 0.5:
            self.product(0)
        self.body(10)
        self.look()

    def aligned(self, pointer: Value, index: Any) -> Value:
        kind = PtrType(F32, MemSpace.SMEM, 4 * self.each)
        return self.emit("ptr.add", (pointer, c(index) if isinstance(index, int) else index), (kind,)).result

    def loads(self, k: int) -> None:
        for fragment, start, n in ((self.a, self.a_row, M), (self.b, self.b_row, N)):
            first = range(0, n, self.each)
            registers = tuple(tuple(range(k * n + i, k * n + i + self.each)) for i in first)
            pointers = [self.aligned(start, k * ROW + i) for i in first]
            self.call(UniversalCopy(32 * self.each), [fragment, *pointers], registers=registers, store=False)

    def product(self, k: int) -> None:
        d, a, b = Layout((1, M, N), (0, 1, M)), Layout((1, M, 1), (0, 1, 0)), Layout((1, N, 1), (0, 1, 0))
        layouts: dict[str, Any] = {
            "d_layout": d,
            "a_layout": a,
            "b_layout": b,
            "d_offset": 0,
            "a_offset": k * M,
            "b_offset": k * N,
        }
        self.call(UniversalFma(F32), [self.d, self.a, self.b], **layouts)

    def turn(self) -> None:
        """A k tile, as main loops have it."""
        for k in range(K):
            self.loads(k)
            if (drawn := self.draw.random()) < 0.4:
                (self.change if drawn < 0.2 else self.copy)()
            self.product(k)

    def change(self) -> None:
        place = self.at(self.at(self.smem, self.lane), 32 * self.draw.randrange(WORDS // 32))
        self.store(place, c(float(self.draw.randint(-3, 3)), F32))

    def copy(self) -> None:
        """By cp.async, from a row of the source to one of shared memory."""
        source, target = (32 * self.draw.randrange(WORDS // 32) for _ in range(2))
        place = self.at(self.at(self.smem, self.lane), target)
        self.call(CpAsync(32), [self.at(self.at(self.args[0], self.lane), source), place], count=1)
        self.call(CpAsyncCommit(), [])

    def look(self) -> None:
        self.store(self.at(self.out, M * N * self.seen), self.frag_load(self.d, range(M * N)))
        self.seen += 1

    def write(self) -> None:
        self.frag_store(self.d, self.splat(c(float(self.draw.randint(-3, 3)), F32), 2), (2, 3))

    def body(self, count: int, depth: int = 0) -> None:
        for _ in range(count):
            drawn = self.draw.random() if depth < 2 else 1.0
            if drawn < 0.12:
                with self.if_(self.odd):
                    self.body(3, depth + 1)
                    if self.draw.random() < 0.5:
                        self.bar_sync(1, 64)  # the two odd warps go on as a group of their own
            elif drawn < 0.16:
                with self.if_(self.low):
                    self.body(3, depth + 1)
            elif drawn < 0.3:
                self.loop(0, 2, lambda i: self.body(3, depth + 1))
            else:
                k = self.draw.randrange(K)
                alone: list[Any] = [partial(self.product, k), partial(self.loads, k)]
                wait = partial(self.call, CpAsyncWait(0), [])
                self.draw.choice([*[self.turn] * 3, *alone, self.look, self.change, self.write, wait])()


def empty_results() -> Any:
    """An array for what a program stores."""
    return np.zeros((BLOCKS * WARPS * 32, 64, M * N), np.float32)


def run_threads(seed: int, out: Any) -> None:
    """Run the program of a seed. All numbers are small integers."""
    source = np.random.default_rng(seed).integers(-4, 5, WARPS * WORDS).astype(np.float32)
    RandomThreads(seed).run(source, out, grid=BLOCKS, block=32 * WARPS)
