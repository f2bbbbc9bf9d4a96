"""Large arrays: shadow memory of the pages that are touched, and what happens where even those are too many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tests.check.blocks
import tests.check.global_memory  # noqa: F401 - registers pairs
import tilewright as cutlass
from tests.check.pairs import PAIRS, Pair, launch
from tilewright import cute, sim
from tilewright.errors import SimulationError
from tilewright.sim.checks import shadow_pages
from tilewright.sim.checks.collect import collecting
from tilewright.sim.checks.shadow_pages import PAGE, PagedShadow

GLOBAL = [
    p
    for p in PAIRS
    if p.rule == "data-race" and p.run.__module__ in ("tests.check.blocks", "tests.check.global_memory")
]
FAR = 5 << 30


@cute.kernel
def neighbours(x: cute.Tensor, apart: cutlass.Constexpr):
    """Each block stores its number far from the start: all to the same bytes, or to bytes of their own."""
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    far = cute.make_tensor(x.iterator + cutlass.Int64(FAR), cute.make_layout(256))
    far[t + 64 * b if apart else t] = cute.Int8(b + 1)


@pytest.mark.parametrize("apart", [False, True])
def test_an_array_of_six_gigabytes(apart: bool) -> None:
    x = np.zeros((6, 1 << 30), np.int8)  # pages that are never touched cost nothing

    @cute.jit
    def host(x: cute.Tensor):
        neighbours(x, apart).launch(grid=(2, 1, 1), block=(64, 1, 1))

    with sim.options(check="races"), collecting() as report:
        host(x)
    assert report.rules == ([] if apart else ["data-race"])
    if not apart:
        (finding,) = report
        assert finding.count == 64
        assert finding.memory is not None
        assert finding.memory.element in [(5, 32 * warp) for warp in range(2)]


@pytest.mark.parametrize("pair", GLOBAL, ids=lambda pair: pair.name)
def test_pages_find_the_same(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow_pages, "LARGE", 0)
    with sim.options(check="all"), pytest.raises(SimulationError, match="data-race"):
        pair.run(True)
    with sim.options(check="all"):
        pair.run(False)


def test_paged_shadow_keeps_its_cells() -> None:
    shadow = PagedShadow(1 << 34, 4)
    far = np.array([7, 1 << 31, (1 << 31) + 1, 5 << PAGE, 7])
    first = shadow.local(far[:2])
    shadow.written[first] = [3, 4]
    for page in range(40):  # the arrays move as they grow
        shadow.local(np.array([page << PAGE]))
    found = shadow.local(far)
    assert shadow.written[found].tolist() == [3, 4, 0, 0, 3]
    assert [shadow.cell(int(k)) for k in found] == far.tolist()
    assert shadow.cells < 1 << 20


def test_too_many_cells_end_the_check_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow_pages, "LARGE", 0)
    monkeypatch.setattr(shadow_pages, "MOST", 2 << PAGE)

    @cute.kernel
    def kernel(x: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        b, _, _ = cute.arch.block_idx()
        x[b * 4096 + t] = cute.Float32(t)

    x: Any = np.zeros(8 * 4096, np.float32)
    with sim.options(check="all"), collecting() as report:
        launch(kernel, x, grid=8)
    assert (x.reshape(8, 4096)[:, :64] == np.arange(64)).all()
    notes = [finding for finding in report if finding.rule == "races-memory"]
    assert [finding.level for finding in notes] == ["note"]
    assert "smaller arrays" in str(notes[0])
