"""Stores of whole rows are kept warp by warp: random kernels that store rows, and reach them in other ways, too."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.pairs import launch
from tests.check.replay import without_places
from tests.check.short_cuts import SHORT_CUTS
from tilewright import cute, sim
from tilewright.errors import SimulationError
from tilewright.sim.checks.shadow import Shadow
from tilewright.sim.checks.whole_rows import WholeRows

THREADS, BLOCKS, SIZE = 64, 2, 1024
KINDS = ("row", "quads", "quads", "row", "reversed", "twice", "twice", "load", "load", "sync", "some", "strong")
(CUT,) = [cut for cut in SHORT_CUTS if cut.name == "stores of whole rows"]


def step(what: str, at: int, value: int, g: Any, y: Any, t: Any, b: Any) -> None:
    """One step: an access of all threads of a block to ``g`` from ``at`` on."""
    number = cute.Float32(t + value)
    if what == "row":
        g[at + t] = number
    elif what == "quads":  # a warp's row is of 512 bytes
        four = cute.make_tensor((g.iterator + (at // 4 * 4 + 4 * t)).align(16), cute.make_layout(4))
        held = cute.make_fragment_like(four)
        held.fill(number)
        cute.autovec_copy(held, four)
    elif what == "reversed":
        g[at + THREADS - 1 - t] = number
    elif what == "twice":  # both warps store one row
        g[at + t % 32] = number
    elif what == "strong":
        cute.arch.store(g.iterator + at + t, number, sem="relaxed", scope="gpu")
    elif what == "load":
        y[b, t] = g[at + t]
    elif what == "sync":
        cute.arch.sync_threads()


def kernel_of(seed: int) -> Any:
    draw = random.Random(seed)
    phase, apart = draw.choice((0, 0, 0, 4)), draw.choice((0, SIZE // BLOCKS, SIZE // BLOCKS))
    steps = [
        (draw.choice(KINDS), phase + 64 * draw.randrange(4) + draw.choice((0, 0, 0, 8, 20)), draw.choice((k, 0)))
        for k in range(draw.randint(2, 7))
    ]

    @cute.kernel
    def kernel(g: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        mine = cute.make_tensor(g.iterator + b * apart, g.layout)
        for what, at, value in steps:
            if cutlass.const_expr(what == "some"):
                if t < 40:
                    step("row", at, value, mine, y, t, b)
            else:
                step(what, at, value, mine, y, t, b)

    return kernel


def report_of(kernel: Any, seed: int) -> str:
    g = cute.runtime.from_dlpack(np.zeros(SIZE, np.float32), assumed_align=4)
    with sim.options(check="races", seed=seed, schedule=("seeded", "lockstep")[seed % 2]):
        try:
            launch(kernel, g, np.zeros((BLOCKS, THREADS), np.float32), grid=BLOCKS, block=THREADS)
        except SimulationError as error:
            return without_places(str(error))
    return ""


def test_the_findings_are_those_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    moved, kept, reports = [], [], []
    add, move = WholeRows.add, WholeRows.move_to_cells
    monkeypatch.setattr(WholeRows, "add", lambda rows, *what: kept.append(add(rows, *what)) or kept[-1])
    monkeypatch.setattr(WholeRows, "move_to_cells", lambda rows, shadow: moved.append(1) or move(rows, shadow))
    for seed in range(60):
        kernel = kernel_of(seed)
        with CUT.off():
            plain = report_of(kernel, seed)
        assert report_of(kernel, seed) == plain, f"seed {seed}"
        reports.append(plain)
    assert kept.count(True) > 40 and kept.count(False) > 10 and len(moved) > 20
    assert 15 < sum(map(bool, reports)) < 50


def test_the_cells_of_rows_name_their_lanes() -> None:
    rows, shadow, entries = WholeRows(512, 16, 4096), Shadow(4096, 4), np.array([7, 9]) << 5
    assert rows.add(np.array([3, 1]), 512 + 16, entries)
    rows.move_to_cells(shadow)
    wanted = np.zeros_like(shadow.written)
    for row, entry in zip((4, 2), entries, strict=True):
        for lane in range(32):
            for byte in range(16):
                wanted[(row * 512 + 16 + lane * 16 + byte) // 4] = entry + lane
    np.testing.assert_array_equal(shadow.written, wanted)
    assert not rows.add(np.array([7]), 16, entries[:1]), "beyond the array"
