"""Profiles: instruction counts, bytes, bank conflicts against a count by hand; progress; host functions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.build import Kernel, c, gptr
from tilewright import sim
from tilewright.ir.types import F32, I32
from tilewright.sim.machine import machine
from tilewright.sim.profiling import wavefronts


def strided(stride: int, width: int = 1) -> sim.KernelProfile:
    k = Kernel(name="strided", smem_bytes=32 * 32 * 16)
    s = k.smem_alloc(0, 32 * 32 * 16, 16, F32)
    k.load(k.ptr_add(s, k.mul(k.tid(), stride), align=4 * width), width)
    with sim.profile() as report:
        k.run(grid=3)
    return report.kernels[0]


@pytest.mark.parametrize(("stride", "extra"), [(1, 0), (2, 1), (4, 3), (32, 31), (33, 0), (8, 7)])
def test_bank_conflicts_of_strides(stride: int, extra: int) -> None:
    kernel = strided(stride)
    assert kernel.bank_conflicts == 3 * extra
    assert kernel.blocks == 3 and kernel.bytes["shared load"] == 3 * 128


def test_wide_accesses_are_served_in_phases() -> None:
    assert strided(4, 4).bank_conflicts == 0  # 128 bytes a quarter-warp, each bank once
    assert strided(2, 2).bank_conflicts == 0
    assert strided(32, 4).bank_conflicts == 3 * 4 * 7  # rows of 128 bytes: eight lanes of a phase in the same banks
    assert strided(36, 4).bank_conflicts == 0  # padded by 16 bytes


@given(
    st.sampled_from([4, 8, 16]),
    st.lists(st.one_of(st.none(), st.integers(0, 60)), min_size=32, max_size=32),
)
def test_wavefronts_equal_a_count_by_sets(width: int, places: list[int | None]) -> None:
    offsets = np.array([-1 if p is None else p * width for p in places])
    together = {4: 32, 8: 16, 16: 8}[width]
    requests = total = 0
    for start in range(0, 32, together):
        banks: dict[int, set[int]] = {}
        for off in offsets[start : start + together].tolist():
            for word in range(off // 4, (off + width) // 4) if off >= 0 else ():
                banks.setdefault(word % 32, set()).add(word)
        requests += bool(banks)
        total += max(map(len, banks.values()), default=0)
    assert wavefronts(offsets, width) == (requests, total)


def test_counts_by_warps_and_where_conflicts_are() -> None:
    k = Kernel(gptr(F32), name="counted", smem_bytes=4096)
    s, t = k.smem_alloc(0, 4096, 16, F32), k.tid()

    def body(i):
        k.store(k.at(s, k.mul(t, 8)), c(1.0, F32))
        k.sync()

    k.loop(0, 5, body)
    line = next(op.loc for op in k.function.walk() if op.opcode == "store")
    with k.if_(k.compare("lt", t, c(32))):
        k.store(k.at(k.args[0], t), c(1.0, F32))
    heard: list[float] = []
    with sim.profile(heard.append) as report:
        k.run(np.zeros(32, np.float32), grid=2, block=128)
    assert report.instructions["bar.sync.all"] == 2 * 4 * 5
    assert report.instructions["store"] == 2 * 4 * 5 + 2
    assert report.kernels[0].bytes["global store"] == 2 * 32 * 4
    assert report.kernels[0].conflicts_by_line() == {("store", line): 2 * 4 * 5 * 7}
    assert report.bank_conflicts == 2 * 4 * 5 * 7
    assert report.seconds > 0 and heard[-1] == 1.0 and heard == sorted(heard)
    assert [name for name, _ in report.launches] == ["counted"]


def test_nested_profiles_both_see_a_launch() -> None:
    k = Kernel()
    with sim.profile() as outer:
        with sim.profile() as inner:
            k.run()
        k.run()
    assert (len(outer.kernels), len(inner.kernels)) == (2, 1)


def test_a_profile_changes_no_result() -> None:
    k = Kernel(gptr(I32))
    k.store(k.at(k.args[0], k.global_id()), k.global_id())
    x, y = np.zeros(64, np.int32), np.zeros(64, np.int32)
    k.run(x, grid=2)
    with machine().profile():
        k.run(y, grid=2)
    assert (x == y).all() and (x == np.arange(64)).all()


def test_printf_in_both_notations(capsys: pytest.CaptureFixture[str]) -> None:
    k = Kernel(F32)
    t = k.tid()
    with k.if_(k.compare("lt", t, c(2))):
        k.emit("printf", (t, k.args[0]), (), {"format": "%d: %5.2f 100%%\n"})
        k.emit("printf", (t, k.splat(k.args[0], 2)), (), {"format": "{} {}\n"})
    k.run(1.5)
    assert capsys.readouterr().out == "0:  1.50 100%\n1:  1.50 100%\n0 [1.5, 1.5]\n1 [1.5, 1.5]\n"
