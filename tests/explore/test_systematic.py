"""Systematic exploration: every order that can matter, and few others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.explore import programs as p
from tests.mutate import programs as clean
from tilewright import sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError
from tilewright.sim.exploration.footprint import ADD, PASSED, READ, UNPASSED, WRITE, Footprint, PhaseAccess, relation
from tilewright.sim.exploration.orders import Agent, OrderSearch, RedundantOrder
from tilewright.sim.exploration.shrink import shrink

Action = tuple[str, str]  # ("read" or "write", a variable)
Threads = list[list[Action]]


def run(threads: Threads, order: list[int]) -> tuple[object, ...]:
    """The values that reads give and the last writers, when the threads act in this order."""
    memory: dict[str, object] = {}
    at, seen = [0] * len(threads), []
    for thread in order:
        what, name = threads[thread][at[thread]]
        if what == "read":
            seen.append((thread, at[thread], memory.get(name)))
        else:
            memory[name] = (thread, at[thread])
        at[thread] += 1
    return tuple(sorted(seen, key=lambda s: s[:2])), tuple(sorted(memory.items()))


def every(threads: Threads) -> Iterator[list[int]]:
    names = [k for k, thread in enumerate(threads) for _ in thread]
    yield from (list(order) for order in set(itertools.permutations(names)))


def explored(threads: Threads) -> tuple[set[object], int]:
    """What the reduction's orders give, and how many there are."""
    orders, results, count = OrderSearch(), set(), 0
    while True:
        orders.start()
        at, order = [0] * len(threads), []
        current: Agent | None = None
        try:
            while enabled := [(k, -1) for k, thread in enumerate(threads) if at[k] < len(thread)]:
                current = orders.choose(enabled, current)
                what, name = threads[current[0]][at[current[0]]]
                footprint: Footprint = {("memory", name): [PhaseAccess(READ if what == "read" else WRITE)]}
                orders.stepped(footprint)
                order.append(current[0])
                at[current[0]] += 1
            results.add(run(threads, order))
            count += 1
        except RedundantOrder:
            pass
        if not orders.advance():
            return results, count


action = st.tuples(st.sampled_from(["read", "write"]), st.sampled_from("xy"))
programs = st.lists(st.lists(action, min_size=1, max_size=3), min_size=2, max_size=3)


@settings(max_examples=60, deadline=None)
@given(programs)
def test_all_results_of_all_orders(threads: Threads) -> None:
    wanted = {run(threads, order) for order in every(threads)}
    found, count = explored(threads)
    assert found == wanted
    assert count <= len(list(every(threads)))


def test_orders_that_do_not_matter_are_not_run() -> None:
    apart: Threads = [[("write", name)] * 3 for name in "abc"]
    assert explored(apart)[1] == 1
    readers: Threads = [[("read", "x")] * 2 for _ in range(4)]
    assert explored(readers)[1] == 1


def test_a_deadlock_is_found_and_its_twin_cleared() -> None:
    found = sim.explore(lambda: p.run_two_locks(p.counters(), False), systematic=True)
    failure = found.failure
    assert failure is not None and failure.kind == "hang" and failure.order is not None
    assert len(failure.switches) == 1 and "schedule number" in str(found) and "--seed" not in str(found)
    clear = sim.explore(lambda: p.run_two_locks(p.counters(), True), systematic=True)
    assert clear and clear.launches[0].complete and "no deadlock, no finding, the same result" in str(clear)
    assert clear.launches[0].schedules > 1


def test_barriers_and_mbarriers_leave_one_order() -> None:
    for act in (
        lambda: clean.run_reversing(clean.floats(), np.zeros(clean.N, np.float32)),
        lambda: clean.run_handed_over(clean.floats(), np.zeros(32, np.float32)),
        lambda: clean.run_copied(clean.floats(), np.zeros(clean.N, np.float32)),
    ):
        found = sim.explore(act, systematic=True)
        assert found and found.launches[0].complete and found.launches[0].schedules == 1, str(found)


def test_two_tickets_are_two_orders() -> None:
    found = sim.explore(
        lambda: clean.run_ticketed(clean.floats(), np.zeros(96, np.float32), np.zeros(1, np.int32)), systematic=True
    )
    assert found and found.launches[0].schedules == 2


def test_a_phase_that_is_over_before_the_wait_looks() -> None:
    found = sim.explore(lambda: p.run_lost_phase(np.zeros(96, np.int32)), systematic=True).failure
    assert found is not None and found.kind in ("deadlock", "fault"), found


def test_stages_that_a_warpgroup_passes_over() -> None:
    """One thread releases them for all four warps: without their barrier a warp may miss a phase."""
    x = from_dlpack(np.zeros(4, np.float32), assumed_align=16)
    with sim.options(arch="sm_90a"):
        found = sim.explore(lambda: p.run_stages_passed_over(x, p.WARPGROUP), systematic=True)
        assert found and found.launches[0].complete, str(found)
        lost = sim.explore(lambda: p.run_stages_passed_over(x, p.NoBarrier()), systematic=True).failure
    assert lost is not None and lost.kind == "deadlock" and "consumer_wait" in lost.text, lost


def test_a_launch_of_too_many_warps() -> None:
    with pytest.raises(ArgumentError, match="600 warps; a systematic exploration takes 256 at most"):
        sim.explore(lambda: p.run_many_blocks(p.counters()), systematic=True)


def test_exploration_reports_its_limit() -> None:
    found = sim.explore(lambda: p.run_two_locks(p.counters(), True), systematic=True, limit=2)
    assert found and not found.launches[0].complete and "the limit is 2" in str(found)


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        (PhaseAccess(ADD, 0), PhaseAccess(ADD, 0, True), 0),
        (PhaseAccess(ADD, 0, True), PhaseAccess(ADD, 1), 2),
        (PhaseAccess(ADD, 0, True), PhaseAccess(PASSED, 0), 1),
        (PhaseAccess(PASSED, 0), PhaseAccess(ADD, 1), 0),
        (PhaseAccess(PASSED, 0), PhaseAccess(ADD, 1, True), 2),
        (PhaseAccess(UNPASSED, 0), PhaseAccess(ADD, 0), 0),
        (PhaseAccess(UNPASSED, 0), PhaseAccess(ADD, 0, True), 2),
    ],
)
def test_phases_of_mbarriers(first: PhaseAccess, second: PhaseAccess, wanted: int) -> None:
    assert relation(first, second, "mbarrier") == wanted


@given(st.sets(st.integers(0, 60), max_size=3), st.integers(1, 60))
def test_shrinking_leaves_what_it_takes(needed: set[int], size: int) -> None:
    needed = {n for n in needed if n < size}
    assert set(shrink(range(size), lambda kept: needed <= set(kept), tries=2000)) == needed
