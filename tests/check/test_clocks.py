"""Vector clocks by themselves: what a warp releases, alone, among others and lane by lane, and the groups of copies."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tilewright.ir.runtime import LaunchConfig
from tilewright.sim.checks.clocks import ROLES, ClockColumns, Clocks
from tilewright.sim.checks.order import HappensBefore
from tilewright.sim.checks.sparse_clock import LaneClocks, SparseClock
from tilewright.sim.geometry import Geometry

WARPS, BLOCKS = 4, 2


def clocks(agents: dict[str, bool], cluster: int = 1) -> Clocks:
    geometry = Geometry(LaunchConfig((BLOCKS, 1, 1), (32 * WARPS, 1, 1), (cluster, 1, 1)))
    return Clocks(ClockColumns(geometry, agents, True), 0, BLOCKS)


class Groups:
    """The groups of copies of each lane, kept plainly: those it has issued to, by number, and the last it has waited
    for."""

    def __init__(self) -> None:
        self.open = np.ones(BLOCKS * WARPS, int)
        self.issued: dict[tuple[int, int], set[int]] = {}
        self.waited: dict[tuple[int, int], int] = {}

    def over(self, warp: int, lane: int) -> int:
        return self.waited.get((warp, lane), 0)

    def known(self, warp: int) -> int:
        """The last group such that all lanes know what each lane has issued to it, and before, to have ended."""
        found = int(self.open[warp]) - 1
        for lane in range(32):
            unfinished = [g for g in self.issued.get((warp, lane), ()) if g > self.over(warp, lane)]
            if unfinished:
                found = min(found, self.over(warp, lane))
        return found


@pytest.mark.parametrize("seed", range(12))
def test_groups_of_copies_against_plain_ones(seed: int) -> None:
    """Lanes issue and wait apart; each warp commits as a whole."""
    draw = random.Random(seed)
    made, plain = clocks({"wgmma": True, "cp.async": False}), Groups()
    own = made.layout.agent_unit(made.own, np.arange(BLOCKS * WARPS), 1)
    for _ in range(40):
        warps = np.array(sorted(draw.sample(range(BLOCKS * WARPS), draw.randint(1, 3))))
        lanes = None if draw.random() < 0.4 else np.array([[draw.random() < 0.3 for _ in range(32)] for _ in warps])
        there = [(int(w), lane) for k, w in enumerate(warps) for lane in range(32) if lanes is None or lanes[k, lane]]
        what = draw.choice(["issue", "one", "commit", "wait", "wait"])
        if what == "issue":
            made.issue(warps, lanes, 1)
            for warp, lane in there:
                plain.issued.setdefault((warp, lane), set()).add(int(plain.open[warp]))
        elif what == "one":
            warp, lane = int(warps[0]), draw.randrange(32)
            made.issue_by_lanes(np.array([warp]), np.array([lane]), 1)
            plain.issued.setdefault((warp, lane), set()).add(int(plain.open[warp]))
        elif what == "commit":
            made.commit(warps, None, 1)
            plain.open[warps] += 1
        else:
            pending = draw.randrange(3)
            made.wait(warps, lanes, 1, pending)
            for warp, lane in there:
                plain.waited[warp, lane] = max(plain.over(warp, lane), int(plain.open[warp]) - 1 - pending)
        for warp in range(BLOCKS * WARPS):
            for lane in range(32):
                assert made.waited_by(warp, 1, lane) == plain.over(warp, lane)
            row = made.release(np.array([warp]))[0]
            assert row[own[warp]] == plain.known(warp)
            assert (made.known(warp).rows[int(made.cluster[warp])] == row).all()  # alone, and among others


def test_a_lane_that_does_not_commit_cannot_wait_for_its_copies() -> None:
    made, warps = clocks({"cp.async": False}), np.array([1])
    some = np.arange(32)[None] < 8
    made.issue(warps, some, 0)
    made.commit(warps, np.arange(32)[None] < 4, 0)  # lanes 4 to 7 keep theirs in an open group
    made.wait(warps, None, 0, 0)
    assert [made.waited_by(1, 0, lane) for lane in (0, 3, 4, 7, 8)] == [1, 1, 0, 0, 1]
    made.commit(warps, None, 0)
    made.wait(warps, None, 0, 0)
    assert [made.waited_by(1, 0, lane) for lane in (0, 3, 4, 7, 8)] == [2, 2, 2, 2, 2]


@pytest.mark.parametrize("cluster", [1, 2])
def test_clock_of_another_cluster_is_kept_outside_the_own_row(cluster: int) -> None:
    made = clocks({}, cluster)
    know = SparseClock()
    know.rows = {c: np.full(made.layout.cluster, 5 + c, np.int32) for c in range(BLOCKS // cluster)}
    made.learn(0, know)
    assert (made.clocks[0] == 5).all() and (made.clocks[1:] == 0).all()
    released = made.known(0)
    assert set(released.rows) == set(know.rows)
    assert all((released.rows[c][1:] == 5 + c).all() for c in know.rows)
    assert released.rows[0][0] == made.now[0]  # what it has done itself
    assert made.know_of_block(0, 0) and not made.know_of_block(1, 0)


def test_a_lane_that_learns_of_one_block_knows_nothing_of_the_others() -> None:
    """Of its cluster as of another: a row says for each block by itself what is known."""
    made = clocks({}, cluster=2)
    know = SparseClock()
    row = np.zeros(made.layout.cluster, np.int32)
    row[made.layout.block] = 3  # of the second block's first column
    know.rows = {0: row}
    made.learn(0, know, lane=5)
    assert made.know_of_block(0, 1) and not made.know_of_block(1, 1)
    assert not made.know_of_block(WARPS, 0), "a warp of the second block has learned nothing of the first"
    made.learn(WARPS, know, lane=5)
    assert not made.know_of_block(WARPS, 0), "what it has learned is of the second block alone"


def test_roles_of_warps_are_named_where_they_differ() -> None:
    made = clocks({})
    loads, multiplies = (1 << list(ROLES.values()).index(role) for role in ("loads", "multiplies"))
    assert [made.role(w) for w in range(4)] == [""] * 4
    made.does[:4] = loads
    assert [made.role(w) for w in range(4)] == [""] * 4
    made.does[1] = multiplies | loads
    made.does[2] = 0
    assert [made.role(w) for w in range(5)] == ["loads", "loads, multiplies", "", "loads", ""]


@pytest.mark.parametrize("first", [0, 3])
def test_units_are_described(first: int) -> None:
    layout: Any = clocks({"cp.async": False, "wgmma": True}).layout
    for block in range(BLOCKS):
        base = block * layout.block
        assert layout.describe(base + first) == (block, first, "")
        assert layout.describe(base + layout.agent_unit(first, first, 0)) == (block, first, "cp.async")
        assert layout.describe(base + layout.agent_unit(first, first, 1)) == (block, 0, "wgmma")  # the warpgroup's
        assert layout.describe(base + layout.first_mbarrier + first) == (block, first, "tma")


@pytest.mark.parametrize("seed", range(4))
def test_what_is_known_of_any_lane_against_lane_after_lane(seed: int) -> None:
    """``knows_of_warp`` asks for all lanes at once what ``knows`` asks for one."""
    draw = random.Random(seed)
    made, wave = clocks({"tcgen05": False}, cluster=BLOCKS), object()
    order: Any = HappensBefore()
    order.layout, order.waves = made.layout, {wave: made}
    answers = set()
    for _ in range(40):
        warp, other = draw.sample(range(BLOCKS * WARPS), 2)
        identity, lane = int(made.unit[other]) * 32, draw.randrange(32)
        elected = made.layout.elect(int(made.unit[other]), lane) and draw.random() < 0.5
        column = int(made.own[other]) + (made.layout.elected if elected else 0)
        row = np.zeros(made.layout.cluster, np.int32)
        row[column] = draw.randrange(9)
        know = [
            SparseClock({int(made.cluster[other]): row} if draw.random() < 0.4 else {}, {identity + lane: clock})
            for clock in (draw.randrange(9), draw.randrange(9))
        ]
        made.lane_clocks[warp] = learned = LaneClocks()
        learned.learn(know[0])
        learned.learn(know[1], draw.randrange(32))
        if draw.random() < 0.3:
            made.clocks[warp, column] = draw.randrange(9)
        clock = draw.randrange(1, 9)
        plain = any(order.knows(wave, warp, other, clock, lane) for lane in range(32))
        assert order.knows_of_warp(wave, warp, other, clock) == plain
        answers.add(plain)
    assert len(answers) == 2
