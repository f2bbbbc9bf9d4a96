"""Single conditions of the checkers, asked by themselves: who acts, what was known then, and where memory ends."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.check.pairs import launch
from tests.check.test_clocks import WARPS, clocks
from tests.cuda.build import Kernel, pointer
from tilewright import cute, sim
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.types import I32, U8, MemSpace
from tilewright.sim import checks
from tilewright.sim.agents import Effect
from tilewright.sim.checks import residency
from tilewright.sim.checks.caller_arrays import CallerArrays
from tilewright.sim.checks.dependents import Dependents
from tilewright.sim.checks.flags import Fenced, Flags
from tilewright.sim.checks.global_proxies import LANE, GlobalProxies, Write
from tilewright.sim.checks.mbarriers import Barrier, MbarrierRules
from tilewright.sim.checks.order import HappensBefore
from tilewright.sim.checks.sites import granule
from tilewright.sim.checks.sparse_clock import SparseClock
from tilewright.sim.checks.versions import Versions
from tilewright.sim.shared import RANK_SHIFT, SharedBuffer

WARP = 32


class Thing(SimpleNamespace):
    """Attributes; equal to itself alone."""

    __eq__, __hash__ = object.__eq__, object.__hash__


def without_init(kind: type, **given: Any) -> Any:
    """An object of which only these attributes are needed."""
    made = object.__new__(kind)
    vars(made).update(given)
    return made


# -- the caller's arrays -----------------------------------------------------------------------------------------------


def test_stretch_of_undefined_bytes_begins_after_the_array_before() -> None:
    """The first byte after an array is the next one's."""

    def undefined(size: int) -> Any:
        def at(places: Any) -> Any:
            assert (places >= 0).all() and (places < size).all()
            return np.ones(np.shape(places), bool)

        return Thing(at=at)

    first, second = (Thing(base=base, low=16, high=80) for base in (4096, 4160))  # bytes 4112 to 4176 to 4240
    arrays = without_init(CallerArrays, held={first: undefined(80), second: undefined(80)})
    found = [arrays.in_stretch(start, (2, 8), (16, 1)) for start in (4111, 4112, 4132, 4176, 4240)]
    assert found == [None, (first, 16), (first, 36), (second, 16), None]
    everything = Thing()
    arrays.space = Thing(any=everything)
    assert arrays.at(everything, [4108, 4172, 4236], 2, 4).tolist() == [[False, True], [True, True], [True, False]]
    assert not arrays.at(Thing(), [4112], 2, 4).any()


# -- copies of arrays that threads wrote -------------------------------------------------------------------------------


FENCES = {  # by whom and at which tick
    "": (0, -1),
    "block 0": (40, 5),
    "block 1": (100, 5),
    "block 1 later": (100, 7),
    "block 1 at once": (100, 6),
    "the writer": (7, 5),
    "the writer early": (7, 2),
}


@pytest.mark.parametrize("fenced", FENCES)
@pytest.mark.parametrize("who", ["lane", "mask", "all"])
def test_fence_between_a_write_and_an_async_copy(who: str, fenced: str) -> None:
    """Thread 7 of block 0 wrote at tick 3; a thread of block 1 (or of block 0, where all issue) copies at tick 6."""
    wave: Any = Thing(geometry=Thing(warps=2))
    fences = np.full(4 * WARP, -1)
    lane, tick = FENCES[fenced]
    fences[lane] = tick
    mask = np.arange(4 * WARP) == 101
    issued_by: Any = Thing(mask=mask if who == "mask" else None)
    effect = Effect(lambda: None, issued_by, None, lane=101 if who == "lane" else None)
    rules = without_init(
        GlobalProxies,
        landing=[effect],
        issued={id(effect): (effect, 6)},
        writes=[Write(None, wave, 3)],
        fenced={wave: fences},
        shift=2,
    )
    told: list[Any] = []
    rules._report = lambda *given: told.append(given)
    written = np.zeros(8, np.int64)
    written[5] = (1 << LANE) + 7
    group: Any = Thing(wave=wave, warps=np.arange(4))
    rules._check(group, "x", written, np.array([4, 5, 6]), False)
    issuer = {"block 0", "the writer"} if who == "all" else {"block 1", "block 1 at once", "the writer"}
    assert bool(told) == (fenced not in issuer)
    assert all((warp, writer, at) == (0 if who == "all" else 3, 7, 20) for _, _, warp, _, _, writer, _, at in told)
    assert len(told) <= 1
    rules.issued.clear()
    rules._check(group, "x", written, np.array([5]), False)
    assert len(told) <= 1, "of a copy whose issue is not known nothing is said"


# -- mbarriers ---------------------------------------------------------------------------------------------------------


def test_the_phase_of_the_clusters_barrier_that_first_covers_an_init() -> None:
    """Only the first arrival after the fence counts, and only of the warp that initialised."""
    op: Any = Thing()
    plain, fenced, other = (Barrier(op, warp, 3, 1) for warp in (1, 1, 2))
    fenced.fenced = other.fenced = True
    target = np.zeros(4 * WARP, int)
    wave: Any = Thing(clusters=Thing(target=target))
    rules = without_init(
        MbarrierRules, known={wave: dict(enumerate((plain, fenced, other)))}, passed={wave: np.zeros(4)}
    )
    for phase in (1, 2):
        target[:] = phase
        rules.cluster(Thing(wave=wave), np.arange(WARP, 2 * WARP), False)
        assert (plain.phase, fenced.phase, other.phase) == (-1, 1, -1)
    rules.cluster(Thing(wave=wave), np.arange(WARP), True)
    assert rules.passed[wave].tolist() == [2, 0, 0, 0] and (plain.phase, fenced.phase) == (-1, 1)


def test_copies_of_one_snapshot_keep_the_phases_of_their_own_time() -> None:
    table, passed = Thing(completed=np.array([0, 0])), np.array([0, 0])
    from tilewright.atoms.mbarrier_state import Mbarriers

    wave: Any = Thing(kept={Mbarriers: table})
    group: Any = Thing(wave=wave, warps=np.array([0, 1]))
    atom = Thing(accesses=[Thing(role="mbarrier")])

    class Notes:
        phases: Any = None

    notes = Notes()
    rules = without_init(MbarrierRules, passed={wave: passed}, counted={}, order=Thing(snapshots=set()))
    kept = []
    steps: list[Callable[[], Any]] = [lambda: None, lambda: None]
    steps += [lambda: passed.__setitem__(0, 2), lambda: table.completed.__setitem__(1, 4)]
    for change in steps:
        change()
        effect: Any = Thing(notes=notes, op=Op("call", [], [], {"atom": atom}, [], None))
        rules.issue(group, effect)
        kept.append((effect.notes, [part.tolist() for part in effect.notes.phases]))
    assert [phases for _, phases in kept] == [[[0, 0], [0, 0]]] * 2 + [[[0, 0], [2, 0]], [[0, 4], [2, 0]]]
    assert [made is notes for made, _ in kept] == [True, True, False, False]


@pytest.mark.parametrize("knows", ["", "itself", "row", "lanes", "phase", "no phases"])
def test_copy_issuer_must_know_of_the_mbarrier_init(knows: str) -> None:
    """Lane 5 of warp 1 has initialised at clock 4; a lane of the same warp or of another issues a copy."""
    made = clocks({}, cluster=1)
    order = Thing(waves={"wave": made}, layout=made.layout)
    rules = without_init(MbarrierRules, order=order)
    barrier = Barrier(Thing(), 1, 5, 4)
    barrier.phase = 2
    for warp in (1, 2):
        rows = np.zeros((1, made.clocks.shape[1]), int)
        rows[0, made.layout.columns(int(made.unit[1]) * WARP + 5)] = 4 if knows == "row" else 3
        known = Thing(knows=lambda *_: True) if knows == "lanes" else None
        phases = None if knows == "no phases" else (None, [2 if knows == "phase" else 1])
        notes = Thing(warps=[warp], rows=rows, lane_clocks={warp: known}, phases=phases)
        for lane in (5, 6):
            itself = warp == 1 and lane == 5
            assert rules._saw_at_issue("wave", Thing(notes=notes), barrier, lane) == (
                itself or knows not in ("", "itself")
            )


@pytest.mark.parametrize("left", [-4, 0, 4])
@pytest.mark.parametrize("before", [None, 1, 2])
@pytest.mark.parametrize("row", [-1, 0, 1])
def test_bytes_that_arrive_after_their_phase(left: int, before: int | None, row: int) -> None:
    told: list[Any] = []
    rules = without_init(MbarrierRules, _wrong_bytes=lambda *given: told.append(given))
    notes = Thing(phases=None if before is None else (np.array([before]), None))
    table: Any = Thing(bytes=np.array([left, left]), completed=np.array([2, 2]))
    rules._check_phase_is_open("wave", table, Thing(notes=notes), None, None, 0, row)
    assert bool(told) == (left < 0 and before == 1 and row == 0)


@pytest.mark.parametrize("at", [40, 56, 60, 63, 64, 70, 71, 72, 80])
@pytest.mark.parametrize("remote", [False, True])
def test_accesses_next_to_mbarriers_are_looked_at(at: int, remote: bool) -> None:
    """mbarriers are at bytes 64 to 72; an access of four bytes begins ``at``. Others' memory is always looked at."""
    looked: list[Any] = []
    group: Any = Thing(wave="wave", lanes_count=32)
    rules = without_init(MbarrierRules, span={"wave": (64, 72)}, access=lambda *given: looked.append(given))
    add = 8 + (1 << RANK_SHIFT if remote else 0)
    pointer = Thing(root=Thing(range=(at - 8, at - 8, 4)), add=add, off=np.array(at + add - 8))
    rules.pointed("load", without_init(SharedBuffer), group, pointer, Thing(nbytes=4), None, None)
    assert bool(looked) == (remote or 60 < at < 72)


# -- what happened before ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", [1, 2])
def test_happens_before_across_clusters_is_not_read_from_the_own_row(cluster: int) -> None:
    """The columns of a row are those of the warp's own cluster: another one's have the same numbers."""
    made = clocks({}, cluster)
    order = without_init(HappensBefore, waves={"wave": made}, layout=made.layout)
    made.clocks[0, :] = 9
    other = WARPS + 1  # of the second block
    assert order.knows("wave", 0, 1, 9) and not order.knows("wave", 0, 1, 10)
    assert order.knows("wave", 0, other, 9) == (cluster == 2)
    know = SparseClock()
    know.rows = {int(made.cluster[other]): np.full(made.layout.cluster, 11, np.int32)}
    made.learn(0, know, lane=5)
    assert order.knows("wave", 0, other, 11) and not order.knows("wave", 0, other, 12)


@pytest.mark.parametrize("fence", ["", "threads", "proxies", "maps"])
def test_a_fence_of_proxies_publishes_nothing(fence: str) -> None:
    """Only a fence of threads makes a relaxed store of a flag a release."""

    @cute.kernel
    def kernel(x: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        if t == 0:
            if b == 0:
                x[0] = cutlass.Int32(7)
                if cutlass.const_expr(fence == "threads"):
                    cute.arch.threadfence()
                if cutlass.const_expr(fence == "proxies"):
                    cute.arch.fence_proxy("async.global")
                if cutlass.const_expr(fence == "maps"):
                    cute.nvgpu.cpasync.fence_tma_desc_release()
                cute.arch.store(flag.iterator, cutlass.Int32(1), sem="relaxed", scope="gpu")
            else:
                while cute.arch.load(flag.iterator, sem="acquire", scope="gpu") == 0:
                    pass
                y[0] = x[0]

    with sim.options(check="races"), checks.collecting() as report:
        launch(kernel, *[np.zeros(1, np.int32) for _ in range(3)], grid=2, block=32)
    assert bool(report.rules) == (fence != "threads")


@pytest.mark.parametrize("fence", [False, True])
def test_a_barrier_publishes_nothing_to_those_who_are_not_at_it(fence: bool) -> None:
    """Warp 1 hears of warp 0's write at a barrier of these two, and stores a flag for warp 2."""

    @cute.kernel
    def kernel(x: cute.Tensor, flag: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if t == 0:
            x[0] = cutlass.Int32(7)
        if t < 64:
            cute.arch.barrier(barrier_id=1, number_of_threads=64)
        if t == 32:
            if cutlass.const_expr(fence):
                cute.arch.fence_acq_rel_cta()
            cute.arch.store(flag.iterator, cutlass.Int32(1), sem="relaxed", scope="cta")
        if t == 64:
            while cute.arch.load(flag.iterator, sem="acquire", scope="cta") == 0:
                pass
            y[0] = x[0]

    with sim.options(check="races"), checks.collecting() as report:
        launch(kernel, *[np.zeros(1, np.int32) for _ in range(3)], grid=1, block=96)
    assert bool(report.rules) == (not fence)


@pytest.mark.parametrize("lane", [None, 3, 4])
@pytest.mark.parametrize("scope", [1, 3])
def test_fences_that_cover_a_relaxed_write(lane: int | None, scope: int) -> None:
    """Those of the lane that writes (of all lanes, where the warp writes as a whole), of its warp, and of warps of its
    block that it knows to have fenced."""
    made = clocks({})
    flags = Flags(made.layout)

    def fenced(level: int, clock: int, *columns: int) -> Fenced:
        row = np.zeros(made.layout.cluster, np.int32)
        row[list(columns)] = clock
        return Fenced(level, clock, SparseClock({0: row}))

    nothing = flags.released_by_fence(made, 1, lane, scope)
    assert nothing == (None, 0)
    flags.fenced[made] = {1: {3: fenced(2, 5, 10)}, 2: {None: fenced(3, 6, 11)}, WARPS + 1: {None: fenced(0, 1, 12)}}
    know, level = flags.released_by_fence(made, 1, lane, scope)
    if lane == 4:
        assert (know, level) == (None, 0)
    else:
        assert know is not None and np.flatnonzero(know.rows[0]).tolist() == [10] and level == min(2, scope)
    for clock, covers in ((5, False), (6, True), (7, True)):  # of the fence of warp 2, as warp 1 knows it
        made.clocks[1, made.own[2]] = clock
        know, level = flags.released_by_fence(made, 1, lane, scope)
        found = [] if know is None else np.flatnonzero(know.rows[0]).tolist()
        assert found == [10] * (lane != 4) + [11] * covers
        assert level == (0 if not found else min(2 if lane != 4 else 3, scope))


def test_register_values_of_a_lane_and_of_a_warp() -> None:
    held, value, other = np.arange(3 * WARP), Value(I32), Value(I32)
    held[WARP : 2 * WARP] = 7
    versions = without_init(Versions, slots={value: 0})
    group: Any = Thing(slots=[held], warps=np.array([1, 4, 6]))

    def of(of_value: Any, warp: int, lane: int | None) -> Any:
        return versions._operand(of_value, group, warp, lane)

    assert of(Constant(I32, 5), 4, None) == 5 and of(other, 4, None) is None and of(other, 4, 3) is None
    assert [of(value, warp, None) for warp in (1, 4, 6)] == [None, 7, None]
    assert [of(value, warp, 3) for warp in (1, 4, 6)] == [3, 7, 2 * WARP + 3]
    group.slots = [np.int32(9)]
    assert of(value, 1, None) == of(value, 6, 5) == 9


# -- kernels that begin early ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lane", [None, 0, 37])
@pytest.mark.parametrize("into", ["global", "shared"])
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("early", [False, True])
def test_copies_of_what_the_kernel_before_may_still_use(lane: int | None, into: str, older: bool, early: bool) -> None:
    effect = Thing(lane=lane)
    first, second = (Thing(base=4096, low=0, high=64), Thing(base=4096, low=64, high=128))
    asked: list[Any] = []
    told: list[Any] = []

    def unsafe(buffer: Any, verb: str, waited: bool) -> str:
        asked.append((buffer, verb, waited))
        return "a kernel"

    rules = without_init(
        Dependents,
        landing=effect,
        older=older,
        effects={id(effect): effect} if early else {},
        _unsafe=unsafe,
        launch=Thing(space=Thing(exposed=lambda: [first, second])),
        _report=lambda *given: told.append(given),
    )
    group: Any = Thing()
    for memory, start in (("shared", 4160), ("global", 4095), ("global", 4224), ("global", 4160)):
        rules.stretch(group, memory, start, (1, 16), (16, 1), memory == into)
    if not (older or early):
        assert not asked and not told
        return
    assert asked == [(second, "store" if into == "global" else "load", not early)]
    assert [(who, at, size) for _, _, _, _, who, at, size in told] == [(lane or 0, 64, 16)]
    rules.landing = None
    rules.stretch(group, "global", 4160, (1, 16), (16, 1), into == "global")
    assert len(told) == 1


# -- cells -------------------------------------------------------------------------------------------------------------

NARROW = {
    "": (16, 16),
    "generic": (1, 1),
    "shared": (1, 16),
    "global": (16, 1),
    "shared and global": (1, 1),
}


@pytest.mark.parametrize("narrow", NARROW)
def test_cells_are_as_small_as_the_narrowest_access(narrow: str) -> None:
    """Of shared memory, and of the rest; through a generic pointer it may be either."""
    spaces = {"generic": MemSpace.GENERIC, "shared": MemSpace.SMEM, "global": MemSpace.GMEM}
    k = Kernel("k", **{f"p{i}": pointer(U8, 16, space) for i, space in enumerate(spaces.values())})
    for name, p in zip(spaces, k.args.values(), strict=True):
        k.load(p, 16)
        if name in narrow:
            k.load(k.at(p, 1))
    assert (granule(k.done(), True), granule(k.done(), False)) == NARROW[narrow]


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [15, 16, 17])
def test_arrays_up_to_a_size_are_looked_at_for_waits(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residency, "LARGEST", limit)
    rules = without_init(residency.Residency, all_resident=False, polling_reads=set(), places={}, first={})
    looked: list[Any] = []
    rules._wrote = lambda *given: looked.append(given)
    wave: Any = Thing(geometry=Thing(warps=1))
    rules.first[wave] = 0
    group: Any = Thing(lanes=Thing(op=None), wave=wave, warps=np.array([0]), registers={}, lanes_count=32)
    buffer: Any = Thing(bytes=np.zeros(16, np.uint8))
    for verb, sees in (("store", limit >= 16), ("load", False)):
        looked.clear()
        rules.access(verb, buffer, group, np.zeros(32, int), Thing(nbytes=4), None, None)
        assert bool(looked) == sees
    rules.all_resident = True
    rules.access("store", buffer, group, np.zeros(32, int), Thing(nbytes=4), None, None)
    assert not looked
