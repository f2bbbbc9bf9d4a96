"""Words of a race, by which threads make the two accesses and what else the kernel has: every combination."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.check.pairs import launch
from tests.hopper.warpgroup_programs import swizzled_layout
from tilewright import Float16, const_expr, cute, sim, utils
from tilewright.errors import SimulationError
from tilewright.ir.core import Location
from tilewright.ir.effects import Access, Ordering
from tilewright.ir.runtime import LaunchConfig
from tilewright.ir.types import MemSpace
from tilewright.sim.checks.clocks import ClockColumns
from tilewright.sim.checks.explain import READS_UNTIL, SHOWN, _of_a_copy_or_wgmma, explain
from tilewright.sim.checks.sites import Site
from tilewright.sim.checks.versions import KEPT, Flag, Version
from tilewright.sim.geometry import Geometry

BLOCKS = 4
LAYOUT = ClockColumns(Geometry(LaunchConfig((BLOCKS, 1, 1), (128, 1, 1))), {}, False)
PLACES = {
    "the same warp": (0, 5),
    "another warp": (0, 40),
    "another block": (0, 170),
    "its warp in another block": (0, 131),
}


def identity(thread: int) -> int:
    """Of a thread of the launch, by its number in all blocks."""
    block, within = divmod(thread, 128)
    return (block * LAYOUT.block + within // 32) * 32 + within % 32


def site(verb: str, scope: str, line: int) -> Site:
    order = "relaxed" if scope else "weak"
    access: Any = SimpleNamespace(order=order, scope=scope, agent="", proxy="generic")
    op: Any = SimpleNamespace(loc=Location("a.py", line))
    return Site(op, verb, access)


def kernel(*calls: Any, mbarriers: bool = False) -> Any:
    return SimpleNamespace(calls=list(calls), mbarriers=mbarriers)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("shared", [False, True])
def test_explanation_of_a_race_between_two_accesses(where: str, shared: bool) -> None:
    threads, other_block = [identity(thread) for thread in PLACES[where]], "another block" in where
    for now, then, same_line in itertools.product(["", "cta", "gpu"], ["", "cta", "gpu"], [False, True]):
        sites = site("load", now, 7), site("store", then, 7 if same_line else 9)
        why, fix = explain(LAYOUT, *sites, threads, shared, kernel(mbarriers=shared))
        if now and then:
            assert why == f"both are strong, but scope {min(now, then)} does not cover both threads"
        elif other_block and shared:
            assert "different blocks of the cluster" in why
        elif (now or then) and where != "the same warp":
            assert "one of the two is strong" in why
            assert ("of another block" in why) == (other_block)
        elif other_block:
            assert "blocks run in any order" in why
        elif same_line:
            assert "one thread reads by this line what another one writes by it" in why
            assert ("sync_warp" in fix, "sync_threads" in fix) == (where == "the same warp", where == "another warp")
        elif where == "the same warp":
            assert why.startswith("lanes of one warp run apart")
        else:
            assert "on every path" in why
            assert ("mbarrier or a pipeline" in fix) == shared


@pytest.mark.parametrize("where", ["the same warp", "another warp"])
def test_accesses_of_which_no_line_is_known_are_not_of_one_line(where: str) -> None:
    threads = [identity(thread) for thread in PLACES[where]]
    known = site("load", "", 7)
    without: Any = SimpleNamespace(loc=None)
    for now, then in itertools.permutations(
        [known, Site(None, "load"), Site(without, "load"), Site(without, "store")], 2
    ):
        why, _ = explain(LAYOUT, now, then, threads, False, kernel())
        assert "by this line" not in why


@pytest.mark.parametrize(
    ("earlier", "later", "words"),
    [
        ("", "", None),
        ("cp.async", "", "cp_async_wait_group(n)"),
        ("wgmma", "", "warpgroup.wait_group(n)"),
        ("tma", "", "mbarrier_wait(barrier, phase)"),
        ("cp.async.bulk", "", "cp_async_bulk_wait_group(0)"),
        ("cp.async.bulk.read", "", "cp_async_bulk_wait_group(0, read=True)"),
        ("", "tma", "TMA may act at any time"),
        ("", "wgmma", "wgmma may act at any time"),
    ],
)
def test_words_for_what_an_asynchronous_agent_does(earlier: str, later: str, words: str | None) -> None:
    found = _of_a_copy_or_wgmma(earlier, later, False)
    assert found is None if words is None else words in " ".join(found or ())
    if earlier.startswith("cp.async.bulk"):
        assert found is not None
        assert ("all bytes read" in found[0], "all bytes written" in found[0]) == (
            "read" in earlier,
            "read" not in earlier,
        )


@pytest.mark.parametrize(("wrote", "named"), [("tma", "a TMA copy"), ("st.async", "st.async")])
def test_words_for_bytes_that_count_at_an_mbarrier_name_what_wrote_them(wrote: str, named: str) -> None:
    found = _of_a_copy_or_wgmma("tma", "", True, wrote)
    assert found is not None and found[0].startswith(f"the bytes of {named} have arrived")


@pytest.mark.parametrize("later", [*READS_UNTIL])
def test_words_for_an_agent_that_reads_what_a_thread_writes_say_both_orders(later: str) -> None:
    """The write may come before the issue, or after it: where the read lands late, it is seen first in either case."""
    found = _of_a_copy_or_wgmma("", later, True)
    assert found is not None and "a barrier (sync_threads) between it and the issue" in found[1]
    assert f"where it comes later, {READS_UNTIL[later]} by the thread that issued it" in found[1]


def call(name: str, *accesses: Access, orders: tuple[Ordering, ...] = ()) -> Any:
    atom = SimpleNamespace(accesses=accesses, orders=orders, mnemonic=lambda: name)
    return SimpleNamespace(attrs={"atom": atom}, loc=Location("a.py", 3))


def flag(order: str, role: str = "flag", space: MemSpace = MemSpace.GMEM) -> Any:
    access = Access("update", role, (space,), order=order, scope="" if order == "weak" else "gpu")
    return call(f"atom.{order}", access)


def fence(scope: str, acquire: bool, release: bool, through: str = "") -> Any:
    return call("fence", orders=(Ordering(scope, acquire=acquire, release=release, through=through),))


CALLS = {
    "nothing": ([], False, False, False),
    "relaxed": ([flag("relaxed")], True, False, False),
    "acquire": ([flag("acquire")], True, False, True),
    "release": ([flag("release")], True, True, False),
    "acq_rel": ([flag("acq_rel")], True, True, True),
    "generic memory": ([flag("acq_rel", space=MemSpace.GENERIC)], True, True, True),
    "release and acquire": ([flag("release"), flag("acquire")], True, True, True),
    "weak": ([flag("weak")], False, False, False),
    "an mbarrier": ([flag("acq_rel", "mbarrier")], False, False, False),
    "in shared memory": ([flag("acq_rel", space=MemSpace.SMEM)], False, False, False),
    "a fence": ([fence("gpu", True, True)], True, True, True),
    "a fence of the system": ([fence("sys", True, True)], True, True, True),
    "a fence that acquires": ([fence("gpu", True, False)], True, False, True),
    "a fence that releases": ([fence("gpu", False, True)], True, True, False),
    "a fence of proxies": ([fence("gpu", False, False)], False, False, False),
    "a fence of a block": ([fence("cta", True, True)], False, False, False),
    "a barrier": ([fence("gpu", True, True, "barrier")], False, False, False),
}


@pytest.mark.parametrize("name", CALLS)
def test_explanation_names_meeting_places_of_blocks_and_missing_orders(name: str) -> None:
    calls, meet, releases, acquires = CALLS[name]
    threads = [identity(thread) for thread in PLACES["another block"]]
    why, _ = explain(LAYOUT, site("load", "", 7), site("store", "", 9), threads, False, kernel(*calls))
    lack = [word for word, there in (("release", releases), ("acquire", acquires)) if not there]
    assert ("could meet at" in why, "nothing in this kernel tells a block" in why) == (meet, not meet)
    assert why.endswith(f"; no {' or '.join(lack)} is among them") == bool(meet and lack)


@pytest.mark.parametrize("count", [1, SHOWN, SHOWN + 1, SHOWN + 3])
def test_explanation_names_some_of_many_meeting_places(count: int) -> None:
    calls = [call(f"atom{i}", *flag("acq_rel").attrs["atom"].accesses) for i in range(count)]
    threads = [identity(thread) for thread in PLACES["another block"]]
    why, _ = explain(LAYOUT, site("load", "", 7), site("store", "", 9), threads, False, kernel(*calls, *calls))
    assert [f"atom{i}" in why for i in range(count)] == [i < SHOWN for i in range(count)]
    assert (f"and {count - SHOWN} more" in why) == (count > SHOWN) == ("more" in why)


def test_a_flag_keeps_its_newest_values() -> None:
    kept = Flag()
    for i in range(KEPT + 3):
        kept.add(Version({}, i, i))
        kept.values.append(i)
        assert (kept.first, len(kept.versions)) == (max(0, i + 1 - KEPT), min(i + 1, KEPT))
        assert kept.versions[0].who == kept.first


@pytest.mark.parametrize("place", [(0, 0), (5, 17), (9, 8), (63, 31)])
@pytest.mark.parametrize("whose", ["layout", "pointer"])
def test_an_element_of_a_swizzled_tensor_has_the_name_that_the_program_writes(
    place: tuple[int, int], whose: str
) -> None:
    """The swizzle may be a part of the layout, or of the pointer."""
    swizzled = swizzled_layout("K", "SW64", 16, (64, 32), (0, 1))

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        smem.allocate_tensor(Float16, swizzled, 1024)
        if const_expr(whose == "layout"):
            sB = smem.allocate_tensor(Float16, swizzled, 1024)
        else:
            sB = smem.allocate_tensor(Float16, swizzled.outer, 1024, swizzle=swizzled.inner)
        if t == 0:
            sB[place] = x[t]
        if t == 63:
            y[t] = sB[place]

    with sim.options(check="races"), pytest.raises(SimulationError) as caught:
        launch(kernel, np.ones(64, np.float16), np.ones(64, np.float16))
    (finding,) = caught.value.findings
    assert str(finding.memory).startswith(f"sB[{place[0]}, {place[1]}] ")
