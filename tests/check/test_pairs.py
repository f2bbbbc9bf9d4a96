"""Each bug is reported, with its rule and its lines; no twin is."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
from tests.check import replay
from tests.check.pairs import PAIRS, Pair, shared
from tests.check.replay import POLLS, kept, told, without_places
from tilewright import cute, sim
from tilewright.errors import SimulationError

HERE = Path(__file__).parent
for _, name, _ in pkgutil.iter_modules([str(HERE)]):  # every module here that is not a test has pairs
    if not name.startswith("test_"):
        importlib.import_module(f"tests.check.{name}")


# Rules of checkers that do not run by default, or do not report this by default.
ONLY_ALL = ("overflow", "shift", "conversion", "tcgen05-registers", "mbarrier-arrivals")


# By default registers are followed that no line above writes, or that are written under a condition and used without
# one, and what comes from shared memory; not the caller's arrays.
REGISTERS = (
    "accumulators_of_a_tile_that_is_not_multiplied",
    "a_shuffle_from_a_lane_that_takes_no_part",
)


def only_by_all(pair: Pair) -> bool:
    """Whether only ``check="all"`` finds the bug."""
    arrays = pair.rule == "uninitialised" and pair.run.__module__.endswith(".empty_arrays")
    return pair.rule in ONLY_ALL or arrays or pair.name in REGISTERS


KEPT = kept()
TAINTED = [p for p in PAIRS if p.rule == "uninitialised" and not only_by_all(p)]
EARLY = [p for p in PAIRS if p.run.__module__.endswith((".early_reads", ".early_copies"))]
BY_DEFAULT = {pair.name for pair in TAINTED + EARLY}
"""Pairs whose findings by the default checks have tests of their own."""
CHANGED = "if the change is meant, write it: python -m tests.check.replay"


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_the_bug_is_reported(pair: Pair) -> None:
    """By all checkers, word for word as it is kept; and by those that run by default, in another order of threads."""
    text, short_cuts = told(pair, True)
    names_the_bug(pair, text)
    if pair.name not in POLLS:
        assert text.splitlines() == KEPT[pair.name]["report"], f"another report: {CHANGED} {pair.name}"
        assert short_cuts == KEPT[pair.name]["short cuts"][0], f"other short cuts: {CHANGED} {pair.name}"
    if pair.name in BY_DEFAULT:
        return
    with sim.options(check="all" if only_by_all(pair) else "default", seed=1):
        with pytest.raises(SimulationError) as caught:
            pair.run(True)
    names_the_bug(pair, str(caught.value))


@pytest.mark.parametrize("folder", ("/home/me", "/home/my own files"))
@pytest.mark.parametrize("address", ("0x1f8e3c0", "0x7ff479e2d010"))
def test_kept_reports_do_not_depend_on_the_machine(folder: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "ROOT", Path(folder))
    report = f"write by lane 0, at {folder}/tests/check/lanes.py:7:  s[0] = 1\nof y[4]: 16 bytes at address {address}"
    assert without_places(report) == "write by lane 0, at lanes.py:  s[0] = 1\nof y[4]: 16 bytes at address 0x.."


def names_the_bug(pair: Pair, text: str) -> None:
    assert any(f"{rule}: " in text or text.startswith(rule) for rule in pair.rule.split(" | ")), text
    for line in pair.lines:
        assert f":  {line}" in text, text


@pytest.mark.parametrize("pair", TAINTED, ids=lambda p: p.name)
def test_taint_from_the_first_read_gives_the_findings_of_full_taint(pair: Pair) -> None:
    """By default registers are looked at from the first read of unwritten shared memory on: with the same findings."""

    def findings(check: str) -> list[str]:
        with sim.options(check=check, seed=3), pytest.raises(SimulationError) as caught:
            pair.run(True)
        names_the_bug(pair, str(caught.value))
        return [str(finding) for finding in caught.value.findings if finding.rule == "uninitialised"]

    assert findings("default") == findings("uninitialised") != []


UNORDERED = (
    "a_tma_store_before_the_barrier",
    "a_bulk_wait_by_another_warp",
    "a_bulk_copy_read_without_a_wait",
    "wgmma_before_the_other_warps_have_written",
    "a_tile_overwritten_while_wgmma_reads_it",
)


@pytest.mark.parametrize("name", UNORDERED)
def test_proxies_report_a_write_that_nothing_orders_as_a_data_race(name: str) -> None:
    """The check for data races, whose budget may be used up, finds the same; a fence between proxies would not help."""
    pair = next(pair for pair in PAIRS if pair.name == name)

    def lines(check: str) -> list[set[str]]:
        with sim.options(check=check, seed=2), pytest.raises(SimulationError) as caught:
            pair.run(True)
        return [{str(party.location) for party in finding.parties} for finding in caught.value.findings]

    with sim.options(check="proxies", seed=2), pytest.raises(SimulationError, match="data-race: ") as caught:
        pair.run(True)
    assert {finding.rule for finding in caught.value.findings} == {"data-race"}
    assert all(found in lines("races") for found in lines("proxies"))


WAITS = ("mbarrier_wait(full", "consumer_wait", "mbarrier_wait(empty")


@pytest.mark.parametrize("pair", EARLY, ids=lambda p: p.name)
def test_a_read_before_the_bytes_of_its_copy_names_the_missing_wait(pair: Pair) -> None:
    """The reader comes first, then the thread that issued the copy; what follows of it is not reported beside it."""
    with sim.options(check="default", seed=0), pytest.raises(SimulationError) as caught:
        pair.run(True)
    names_the_bug(pair, str(caught.value))
    report = caught.value.findings
    assert [finding.rule for finding in report if finding.level == "error"] == ["data-race"]
    (finding,) = report.errors
    announced = "not_announced" not in pair.name
    asked = "are read before a wait for the copy" if announced else "come after the phase that should wait for them"
    assert f"bytes of a copy {asked}" in str(finding)
    read, copy = finding.parties
    agent = "cp.async" if "cp_async" in pair.name else "TMA"
    assert (read.does, copy.who.agent) == ("read", agent) and copy.who.lane == 0
    assert copy.who.warp == (4 if "a_product" in pair.name else 0)
    assert re.search(r"mbarrier full(\[\d\])?|of full(\[\d\])?;", finding.why), finding.why
    assert ("mbarrier_wait(full" if announced else "arrive_and_expect_tx(full") in finding.fix
    if "parity" in pair.name or "state_of_a_producer" in pair.name:
        assert "wrong parity: the wait at " in finding.why and any(wait in finding.why for wait in WAITS)
    assert str(caught.value).startswith("checks of kernel")


@pytest.mark.parametrize("pair", [p for p in PAIRS if p.rule == "mbarrier-memory"], ids=lambda pair: pair.name)
def test_data_in_mbarriers_are_found_where_no_other_checker_looks(pair: Pair) -> None:
    """Alone, the checker hears of pointers in place of offsets."""
    with sim.options(check="mbarriers"):
        pair.run(False)
        with pytest.raises(SimulationError) as caught:
            pair.run(True)
    names_the_bug(pair, str(caught.value))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_the_twin_is_not(pair: Pair) -> None:
    """Each in an order of threads of its own."""
    text, short_cuts = told(pair, False)
    assert not text
    if pair.name not in POLLS:
        assert short_cuts == KEPT[pair.name]["short cuts"][1], f"other short cuts: {CHANGED} {pair.name}"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a_block_that_ends_while_its_neighbour_reads", "nothing keeps that block from ending first"),
        ("a_neighbours_memory_before_the_neighbour_has_begun", "nothing shows that the block has begun"),
    ],
)
def test_findings_name_whose_memory_it_is_and_the_thread_of_the_other_block(name: str, words: str) -> None:
    (pair,) = (pair for pair in PAIRS if pair.name == name)
    with sim.options(check="all", seed=0), pytest.raises(SimulationError) as caught:
        pair.run(True)
    text = str(caught.value)
    found = re.search(rf"memory of block \((.), 0, 0\) .*{words}\n +access by block \((.), 0, 0\)", text)
    assert found and {*found.groups()} == {"0", "1"}, text


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("a_histogram_without_atomics", "to add to elements that threads share: cute.arch.atomic_add"),
        ("a_warps_tree_reduction_without_sync_warp", "hand elements from thread to thread: cute.arch.sync_warp() in"),
        ("lanes_that_collide_in_one_statement", "let one thread write it (if tidx == 0), or each its own element"),
        ("a_shuffle_from_a_lane_that_takes_no_part", "a lane outside of the shuffle's mask gives no value"),
        ("lane_0_broadcasts_without_sync_warp", "cute.arch.sync_warp() between the two"),
    ],
)
def test_the_advice_can_be_followed(name: str, advice: str) -> None:
    """Where both accesses are one line, nothing can stand between the two."""
    (pair,) = [pair for pair in PAIRS if pair.name == name]
    with sim.options(check="all"), pytest.raises(SimulationError) as caught:
        pair.run(True)
    assert advice in str(caught.value)


@cute.kernel
def shifted_in_turns(x: cute.Tensor, y: cute.Tensor, by: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    s = shared(64)
    for k in cutlass.range(8):
        s[t] = x[t] + k
        y[t] = s[(t + k * by) % 64]
        cute.arch.sync_threads()


@pytest.mark.parametrize(
    ("by", "barrier", "other"), [(1, "sync_threads", "sync_warp"), (8, "sync_threads", "sync_warp")]
)
def test_the_pair_that_is_farthest_apart_chooses_the_advice(by: int, barrier: str, other: str) -> None:
    """Most pairs are within a warp, and they are seen first: a barrier of the warp would leave the others."""

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        shifted_in_turns(x, y, by).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with sim.options(check="all"), pytest.raises(SimulationError) as caught:
        host(np.zeros(64, np.float32), np.zeros(64, np.float32))
    (finding,) = caught.value.findings.errors
    assert f"cute.arch.{barrier}()" in finding.fix and other not in finding.fix
    first, second = finding.parties
    assert first.who.warp != second.who.warp and finding.count > 64
