"""Drawn schedules: what only another order shows is found, told by few switches with their lines, and found again."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from tests.explore import programs as p
from tests.mutate import programs as clean
from tilewright import sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, SimulationError
from tilewright.ir.core import Op
from tilewright.sim.exploration import FailingSchedule


def text_of(op: Op | None) -> str:
    assert op is not None and op.loc is not None
    return Path(op.loc.file).read_text().split("\n")[op.loc.line - 1].strip()


def locks(same: bool) -> None:
    p.run_two_locks(p.counters(), same)


def test_a_deadlock_that_needs_one_preemption() -> None:
    locks(False)  # silent under the simulator's own schedule
    found = sim.explore(lambda: locks(False), schedules=50)
    failure = found.failure
    assert not found and failure is not None and failure.kind == "hang"
    preemptions = [switch for switch in failure.switches if not switch.place.blocked]
    assert len(preemptions) == 1 and not failure.delays and failure.drawn >= len(failure.switches) <= 2
    assert "atomic_cas" in text_of(preemptions[0].before)
    report = str(found)
    assert f"it takes {len(failure.switches)} of its" in report
    assert " of block (0, 0, 0) stops before atom.acquire.cta.cas" in report
    assert f"--schedules 1 --seed {failure.seed}" in report


def test_a_seed_is_a_schedule() -> None:
    a = p.counters()
    failure = sim.explore(lambda: p.run_two_locks(a, False), schedules=50).failure
    assert failure is not None and failure.seed is not None
    a[:] = 0
    again = sim.explore(lambda: p.run_two_locks(a, False), schedules=1, seed=failure.seed)
    assert again.failure is not None and str(again.failure) == str(failure) and again.launches[0].schedules == 1


def test_the_repaired_twin_is_silent() -> None:
    found = sim.explore(lambda: locks(True), schedules=40)
    assert found and "no failing schedule among 40" in str(found)


def test_a_lost_update() -> None:
    found = sim.explore(lambda: p.run_lost_update(p.counters()), schedules=40, check="none").failure
    assert found is not None and found.kind == "other result" and "of the result differ" in found.text
    assert len(found.switches) == 1 and found.switches[0].before is not None
    assert found.switches[0].before.opcode == "store"


def test_a_race_is_found_without_any_other_schedule() -> None:
    found = sim.explore(lambda: p.run_lost_update(p.counters())).failure
    assert found is not None and found.kind == "data-race" and found.seed is None


def test_a_copy_that_arrives_early() -> None:
    x, y = np.arange(1, 33, dtype=np.float32), np.zeros(32, np.float32)
    found = sim.explore(lambda: p.run_copied_over(x, y), schedules=40, check="none").failure
    np.testing.assert_array_equal(y, x)  # as late as it can: the result that the launch ends with
    assert found is not None and found.kind == "other result" and not found.switches
    assert len(found.delays) == 1 and "arrives at once" in str(found)


def test_a_phase_that_is_over_before_the_wait_looks() -> None:
    p.run_lost_phase(np.zeros(96, np.int32))
    found = sim.explore(lambda: p.run_lost_phase(np.zeros(96, np.int32)), schedules=100).failure
    assert found is not None and found.kind in ("deadlock", "fault"), found


@pytest.mark.parametrize("program", ["run_reversing", "run_handed_over", "run_copied"])
def test_clean_kernels(program: str) -> None:
    y = np.zeros(clean.N if program != "run_handed_over" else 32, np.float32)
    assert sim.explore(lambda: getattr(clean, program)(clean.floats(), y), schedules=30, seed=7)


def test_sums_of_floats_by_atomics_are_compared_only_when_asked() -> None:
    def act() -> None:
        x, y = clean.floats(), np.zeros(96, np.float32)
        clean.run_ticketed(x, y, np.zeros(1, np.int32))

    assert sim.explore(act, schedules=20) and sim.explore(act, schedules=5, compare=False)


def test_exploration_reports_a_failure_without_reordering() -> None:
    found = sim.explore(lambda: clean.run_reversing(clean.floats()[:8], np.zeros(clean.N, np.float32)))
    assert found.failure is not None and found.failure.kind == "fault" and "out of bounds" in str(found)
    assert isinstance(found.failure.error, SimulationError)


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="schedules=0"):
        sim.explore(lambda: None, schedules=0)
    with pytest.raises(ArgumentError, match="without races"):
        sim.explore(lambda: None, systematic=True, check="none")
    assert str(sim.explore(lambda: None)) == "no kernel was launched on the simulator"
    assert str(FailingSchedule("fault", "text")) == "text"


def test_mmas_of_one_thread_stay_in_order() -> None:
    """Those that add to what an earlier one has written must not land before it, nor must the commit behind them."""
    program = runpy.run_path(str(Path(__file__).parents[2] / "examples/blackwell_gemm.py"))
    gemm = program["Gemm"]((128, 32, 64), (1, 1), 1)
    a, b, d = program["operands"](gemm)
    tensors = [from_dlpack(x, assumed_align=16) for x in (a, b, d)]
    assert sim.explore(lambda: gemm(*tensors), schedules=4).failure is None
    np.testing.assert_array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T)
