"""Random programs of cp.async give the same with the repetitions of a call at once and one by one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright import sim
from tilewright.atoms.cp_async import CpAsync, CpAsyncCommit, CpAsyncWait
from tilewright.errors import SimulationError
from tilewright.ir.types import F32, PtrType
from tilewright.sim import async_copies, lowering

WARPS, BLOCKS, REPEATS = 2, 3, 3
WORDS = 32 * WARPS * 4 * REPEATS  # of a block's shared memory, and of global memory


class RandomCopies(Kernel):
    """Calls of several copies, each thread its own words or one that others write, too, waited for now and then."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        super().__init__(gptr(F32, 16), gptr(F32, 16), smem_bytes=4 * WORDS)
        self.bits = self.draw.choice((32, 64, 128))
        thread = self.tid()
        self.smem = self.smem_alloc(0, 4 * WORDS, 128, F32)
        for k in range(4 * REPEATS):
            self.store(self.at(self.at(self.smem, thread), 32 * WARPS * k), c(float(k), F32))
        self.sync()
        first = self.mul(thread, self.bits // 32)
        self.source, self.target = self.moved(self.args[0], first), self.moved(self.smem, first)
        self.few = self.compare("lt", thread, c(self.draw.choice((40, 1000))))
        for _ in range(6):
            with self.if_(self.few) if self.draw.random() < 0.2 else self.inside(self.block):
                self.draw.choice((self.copies, self.copies, self.finish))()
        self.finish()
        self.sync()
        out = self.at(self.args[1], self.mul(self.global_id(), 4 * REPEATS))
        for k in range(4 * REPEATS):
            self.store(self.at(out, k), self.load(self.at(self.at(self.smem, thread), 32 * WARPS * k)))

    def moved(self, pointer: Any, index: Any) -> Any:
        kind = PtrType(F32, pointer.type.space, self.bits // 8)
        return self.emit("ptr.add", (pointer, c(index) if isinstance(index, int) else index), (kind,)).result

    def copies(self) -> None:
        far = 32 * WARPS * self.bits // 32
        reach = [k * far for k in range(WORDS // far)]
        outside = WORDS if self.draw.random() < 0.1 else 0
        sources = [self.moved(self.source, self.draw.choice(reach) + outside) for _ in range(REPEATS)]
        targets = [self.moved(self.target, self.draw.choice(reach)) for _ in range(REPEATS)]
        extra: dict[str, Any] = {}
        predicates = []
        if self.draw.random() < 0.5:
            predicates, extra = [self.few] * REPEATS, {"predicated": True}
        self.call(CpAsync(self.bits), [*sources, *targets, *predicates], count=REPEATS, **extra)

    def finish(self) -> None:
        self.call(CpAsyncCommit(), [])
        self.call(CpAsyncWait(self.draw.randrange(2)), [])


def outcome(seed: int, check: str) -> tuple[Any, ...]:
    source = np.random.default_rng(seed).integers(-99, 99, WORDS).astype(np.float32)
    out, found = np.zeros((BLOCKS * WARPS * 32, 4 * REPEATS), np.float32), ""
    with sim.options(check=check), sim.profile() as report:
        try:
            RandomCopies(seed).run(source, out, grid=BLOCKS, block=32 * WARPS)
        except SimulationError as error:
            found = str(error)
    counts = [(k.instructions, k.bytes, k.accesses, k.wavefronts) for k in report.kernels]
    return out, counts, found


@pytest.mark.parametrize("check", ["none", "default"])
def test_random_programs(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used = {"gathered": 0, "scattered": 0}

    def counted(name: str, function: Any) -> Any:
        def call(*args: Any) -> Any:
            found = function(*args)
            used[name] += found is not None and found is not False
            return found

        return call

    monkeypatch.setattr(async_copies, "gather_arranged", counted("gathered", async_copies.gather_arranged))
    monkeypatch.setattr(async_copies, "scatter_arranged", counted("scattered", async_copies.scatter_arranged))
    for seed in range(40 if check == "none" else 8):
        with monkeypatch.context() as patch:
            patch.setattr(lowering, "is_async_copy", lambda op: False)
            plain = outcome(seed, check)
        fast = outcome(seed, check)
        np.testing.assert_array_equal(fast[0], plain[0], err_msg=f"seed {seed}")
        assert fast[1:] == plain[1:], f"seed {seed}"
    assert check != "none" or min(used.values()) > 5, used
