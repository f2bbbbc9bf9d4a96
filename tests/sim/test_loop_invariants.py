"""Random programs give the same whether loops keep arithmetic on values from outside of them, or do it again."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright import sim
from tilewright.ir.core import Value
from tilewright.ir.types import I32
from tilewright.sim import lowering
from tilewright.sim.loop_invariants import invariant_ops

WARPS, BLOCKS, SEEN = 4, 2, 400
OPS = ("add", "mul", "xor", "and", "or", "min", "max", "sub", "shl")


class RandomLoops(Kernel):
    """Nested loops that compute with values from outside, with carried ones and with the index, in branches that lanes
    and warps take; each block of them adds what it has computed to an element of its lane's row."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        super().__init__(gptr(I32))
        self.tid_ = self.tid()
        self.row = self.at(self.args[0], self.mul(self.global_id(), SEEN))
        self.seen = 0
        self.body([self.tid_, self.sreg("laneid"), c(self.draw.randint(-9, 9))], 0)

    def note(self, value: Value) -> None:
        place = self.at(self.row, self.seen)
        self.store(place, self.add(self.load(place), self.binary("and", value, c(0xFFFF))))
        self.seen += 1

    def turn(self, index: Value, carried: Value, values: list[Value], depth: int, warps: str) -> list[Value]:
        found = self.body([*values, index, carried], depth, warps)
        return [self.binary("xor", carried, found)]

    def body(self, values: list[Value], depth: int, warps: str = "all") -> Value:
        """Gives a value computed here. ``warps``: which come here as a whole: all, the odd ones, or none for sure."""
        known = list(values)
        for _ in range(5):
            drawn = self.draw.random() if depth < 3 else 1.0
            if drawn < 0.3:
                ends = {"all": 3, "none": self.add(self.binary("and", self.tid_, c(1)), 2)}
                kind = self.draw.choice(("all", "none"))
                inner, inside = [*known], warps if kind == "all" else "none"
                start = self.add(self.draw.choice(known), 0)
                known += self.loop(
                    0, ends[kind], lambda i, v, x=inner, w=inside: self.turn(i, v, x, depth + 1, w), [start]
                )
            elif drawn < 0.45:
                by = self.draw.choice(("laneid", "warpid"))
                with self.if_(self.compare("eq", self.binary("and", self.sreg(by), c(1)), c(1))):
                    odd = by == "warpid" and warps != "none"
                    self.body([*known], depth + 1, "odd" if odd else "none")
                    if odd:
                        self.bar_sync(1, 32 * WARPS // 2)  # these warps go on as a group of their own
            else:
                a, b = self.draw.choice(known), self.draw.choice(known)
                op = self.draw.choice(OPS)
                known.append(self.binary(op, a, self.binary("and", b, c(7)) if op == "shl" else b))
        self.note(known[-1])
        return known[-1]


def outcome(seed: int) -> tuple[Any, Any]:
    out = np.zeros((BLOCKS * WARPS * 32, SEEN), np.int32)
    with sim.options(check="none", schedule="seeded" if seed % 2 else "lockstep"), sim.profile() as report:
        RandomLoops(seed).run(out, grid=BLOCKS, block=32 * WARPS)
    return out, report.kernels[0].instructions


def test_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = 0
    for seed in range(12):
        kept += len(invariant_ops(RandomLoops(seed).function))
        with monkeypatch.context() as patch:
            patch.setattr(lowering, "invariant_ops", lambda function: set())
            plain = outcome(seed)
        fast = outcome(seed)
        np.testing.assert_array_equal(fast[0], plain[0], err_msg=f"seed {seed}")
        assert fast[1] == plain[1], f"seed {seed}"
        assert plain[0].any()
    assert kept > 100, kept
