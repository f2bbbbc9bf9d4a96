"""BLAS's threads while launches run on a busy machine: one, and afterwards as many as before."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.sim.build import Kernel, c, gptr
from tilewright.errors import SimulationError
from tilewright.ir.types import F32
from tilewright.sim import blas_threads
from tilewright.sim.blas_threads import Blas, blas, one_thread_if_busy

BEFORE = 6


class Library:
    """A BLAS that only counts."""

    def __init__(self) -> None:
        self.threads, self.calls = BEFORE, 0

    def set(self, threads: int) -> None:
        self.threads, self.calls = threads, self.calls + 1


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    monkeypatch.setattr(blas_threads, "blas", lambda: Blas(lambda: found.threads, found.set))
    monkeypatch.setattr(blas_threads, "is_busy", lambda: True)
    return found


def stores(size: int) -> Any:
    """Run a launch of 64 threads that store to an array of ``size`` elements."""
    k = Kernel(gptr(F32))
    k.store(k.at(k.args[0], k.tid()), c(1.0, F32))
    y = np.zeros(size, np.float32)
    k.run(y, block=64)
    return y


def test_launches_in_launches_and_in_threads_count_as_one(library: Library) -> None:
    entered, left = threading.Barrier(2), threading.Event()

    def beside() -> None:
        with one_thread_if_busy():
            entered.wait(10)
            left.wait(10)

    thread = threading.Thread(target=beside)
    with one_thread_if_busy():
        thread.start()
        entered.wait(10)
        with one_thread_if_busy():
            assert library.threads == 1
        assert library.threads == 1
    assert library.threads == 1  # the other thread's launch goes on
    left.set()
    thread.join(10)
    assert (library.threads, library.calls) == (BEFORE, 2)


def test_a_launch_that_fails_restores_the_number(library: Library) -> None:
    with pytest.raises(SimulationError, match="out of bounds"):
        stores(63)
    assert (library.threads, library.calls) == (BEFORE, 2)


def test_a_number_that_the_program_sets_meanwhile_stays(library: Library) -> None:
    with one_thread_if_busy():
        library.set(3)
    assert library.threads == 3


def test_where_cores_are_free_nothing_changes(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_threads, "is_busy", lambda: False)
    assert stores(64).all()
    assert library.calls == 0


@pytest.mark.parametrize(("load", "busy"), [(1.1, False), (2.0, True)])
def test_busy_is_as_many_processes_as_cores(load: float, busy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_threads.os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(blas_threads.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert blas_threads.is_busy() == busy


@pytest.mark.skipif(blas() is None, reason="NumPy's BLAS is another library than OpenBLAS")
def test_numpys_own_library_is_found_and_obeys(monkeypatch: pytest.MonkeyPatch) -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    monkeypatch.setattr(blas_threads, "is_busy", lambda: True)
    with threadpoolctl.threadpool_limits(2, user_api="blas"), one_thread_if_busy():
        pools = [pool for pool in threadpoolctl.threadpool_info() if "numpy" in pool["filepath"]]
        assert [pool["num_threads"] for pool in pools] == [1]
