"""Scripted debugging: a launch runs to a line and is looked at there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.debug import programs as p
from tilewright import sim
from tilewright.errors import ArgumentError, SimulationError
from tilewright.sim.debug import BarrierState, Session, breakpoints


def test_numbers_and_tensors_of_one_lane() -> None:
    with Session(p.act) as session:
        frame = session.run_until(p.where("barrier"), block=1, warp=1, lane=3)
        assert (frame.block, frame.warp, frame.lane, frame.thread) == ((1, 0, 0), 1, 3, (35, 0, 0))
        assert frame.location.line == p.line("barrier") and frame.source.startswith("cute.arch.sync_threads()")
        assert (frame.value("t"), frame.value("twice"), frame["b"]) == (35, 70, 1)
        assert frame.value("t", all_lanes=True).tolist() == list(range(32, 64))
        assert frame.value("b", all_lanes=True).tolist() == [1] * 32
        np.testing.assert_array_equal(frame.tensor("x"), p.inputs())
        np.testing.assert_array_equal(frame.tensor("s")[4:], p.inputs()[1].reshape(8, 8)[4:])
        assert {"t", "b", "twice", "s", "x", "y"} <= set(frame.names()) and "held" not in frame.names()
        assert frame.active == list(range(32)) and ((1, 0, 0), 1) in frame.warps


def test_registers_and_the_end() -> None:
    seen = []
    with Session(lambda: seen.append(p.act())) as session:
        frame = session.run_until(f"looked_at:{p.line('last')}", block=0, warp=0, lane=5)
        held = frame.tensor("held")
        assert held.shape == (2, 2)
        s = p.inputs()[0].reshape(8, 8)
        np.testing.assert_array_equal(held, np.array([[s[0, 1], s[2, 1]], [s[1, 1], s[3, 1]]]) + 10)
        session.finish()
    x, y = seen[0]
    assert y[0, 5] == x[0].reshape(8, 8)[5, 0] + held[1, 1]


def test_launches_after_a_session_run_at_full_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is inside a launch, which was handed to the session, when the session's last breakpoint goes."""
    with Session(p.act) as session:
        session.run_until(p.where("loop"), block=0, warp=1, lane=0)
        session.finish()
    monkeypatch.setattr(breakpoints, "program_by_lines", lambda program: pytest.fail("lowered line by line"))
    p.act()


def test_a_loop_stops_at_each_turn() -> None:
    with Session(p.act) as session:
        turns = [session.run_until(p.where("loop"), block=0, warp=1, lane=0).value("i") for _ in range(2)]
        turns.append(session.run_until(p.where("loop"), block=0, warp=1, lane=0, hit=2).value("i"))
        assert turns == [0, 1, 3]


def test_a_variable_that_loops_and_branches_change() -> None:
    with Session(lambda: p.run_changing(np.zeros(32, np.int32))) as session:
        seen = [session.run_until(p.where(line), lane=5).value("total") for line in 2 * ("carried", "changed")]
        assert seen == [0, 5, 5, 10]
        assert session.run_until(p.where("left"), lane=5).value("total") == 115
        frame = session.frame
        assert frame is not None and frame.value("total", all_lanes=True)[:6].tolist() == [0, 3, 6, 9, 112, 115]


def test_stepping() -> None:
    with Session(p.act) as session:
        first = session.run_until(p.where("store"), block=0, warp=1, lane=0)
        lines = [first.location.line, *(session.step().location.line for _ in range(3))]
    assert lines == [p.line("store"), p.line("arrive"), p.line("arrive") + 1, p.line("barrier")]


def test_barriers_and_the_wait_for_state() -> None:
    with Session(p.act) as session:
        frame = session.run_until(p.where("store"), block=0, warp=1, lane=0)
        before = {b.kind: b for b in frame.barriers()}
        assert before["mbarrier"].phase == 0 and before["mbarrier"].expected == 64
        frame = session.run_until(p.where("barrier"), block=0, warp=1, lane=0)
        after = {b.kind: b for b in frame.barriers()}
        assert after["mbarrier"] == BarrierState(
            "mbarrier", 256, 0 if after["mbarrier"].arrived else 1, after["mbarrier"].arrived, 64
        )
        assert after["barrier"].name == 0 and after["barrier"].phase == 1
        assert "block (0, 0, 0):" in frame.waits() and "warp 1 (threads 32-63)" in frame.waits()


def test_a_swizzled_tensor_is_seen_through_its_layout() -> None:
    x = np.arange(256, dtype=np.float16).reshape(8, 32)
    with Session(lambda: p.run_swizzled(x, np.zeros_like(x))) as session:
        frame = session.run_until(f"swizzled:{p.line('swizzled')}")
        np.testing.assert_array_equal(frame.tensor("s"), x)


def test_a_library_kernel() -> None:
    from tilewright.gemm import gemm

    a = np.ones((128, 64), np.float16)
    with Session(lambda: gemm(a, a.T, machine="cpu", kernel="tensorop_f16")) as session:
        frame = session.run_until("MultistageGemm_kernel")
        assert frame.location.file.endswith(".py") and frame.names()


def test_frames_expire_when_the_launch_continues() -> None:
    with Session(p.act) as session:
        frame = session.run_until(p.where("store"))
        session.run_until(p.where("barrier"))
        with pytest.raises(SimulationError, match="has gone on"):
            frame.value("t")
        with pytest.raises(SimulationError, match="has gone on"):
            frame.barriers()


def test_errors_say_what_to_do() -> None:
    with Session(p.act) as session:
        frame = session.run_until(p.where("store"), lane=0)
        for ask, text in (
            (lambda: frame.value("s"), "is a tensor"),
            (lambda: frame.tensor("t"), "is a number"),
            (lambda: frame.value("twise"), "did you mean 'twice'"),
        ):
            with pytest.raises(ArgumentError, match=text):
                ask()
        with pytest.raises(ArgumentError, match="hit=0"):
            session.run_until(5, hit=0)
        with pytest.raises(ArgumentError, match="lane=40"):
            session.run_until(5, lane=40)
        with pytest.raises(ArgumentError, match="is not a place"):
            session.run_until("programs:py:x")


def test_a_line_without_code() -> None:
    with Session(p.act) as session, pytest.raises(ArgumentError, match="does nothing at line 4 .* nearest lines"):
        session.run_until("programs.py:4")


def test_run_until_an_unreached_place_is_an_error() -> None:
    with Session(p.act) as session:
        with pytest.raises(SimulationError, match="ended without reaching"):
            session.run_until(p.where("wait"), warp=1)
        with pytest.raises(SimulationError, match="has ended"):
            session.run_until(p.where("wait"))


def test_an_error_of_the_program_is_raised_where_it_is_waited_for() -> None:
    def act() -> None:
        p.run(p.inputs()[:, :8], np.zeros((2, 64), np.float32))

    with Session(act) as session:
        session.run_until(p.where("store"))
        with pytest.raises(SimulationError, match="out of bounds"):
            session.finish()


def test_a_session_that_is_left_leaves_nothing_behind() -> None:
    with Session(p.act) as session:
        session.run_until(p.where("store"))
    x, y = p.act()
    assert y.any()
    assert sim.debug.break_at("looked_at").remove() is None
