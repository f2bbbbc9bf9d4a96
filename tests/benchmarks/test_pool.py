"""The pool of bench/: jobs that fail, end their process or hang cost themselves only, and one measures at a time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.work import work


@pytest.fixture
def pool_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    import pool

    return pool


def test_every_job_has_an_answer(pool_class: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    jobs: list[Any] = [("fine", 1), ("fail", 2), ("die", 3), ("hang", 4), ("break", 5), ("fine", 6)]
    jobs += [("mark", str(log))] * 6
    with pool_class.Pool(2, work, limit=0.5) as pool:
        for job in jobs:
            pool.submit(job)
        found = list(pool.results())
    assert sorted(map(repr, (job for job, _ in found))) == sorted(map(repr, jobs))
    answers = {job[0]: answer for job, answer in found if job[0] != "fine"}
    assert [answer for job, answer in found if job[0] == "fine"] == [1, 6]
    reasons = {kind: answers[kind].reason for kind in ("fail", "die", "hang", "break")}
    assert reasons["fail"] == "ValueError: 2 is no good" and "exit code 3" in reasons["die"]
    assert "stopped after" in reasons["hang"] and "CUDA error" in reasons["break"]
    assert log.read_text().split() == ["begin", "end"] * 6


def test_jobs_for_one_process_and_jobs_that_come_later(pool_class: Any) -> None:
    with pool_class.Pool(2, work) as pool:
        for _ in range(3):
            pool.submit(("who", 0), member=1)
        pool.submit(("fine", 1))
        found, more = [], True
        for job, answer in pool.results():
            found.append((job, answer))
            if job[0] == "fine" and more:
                pool.submit(("fine", 2), first=True)
                more = False
    assert len({answer for job, answer in found if job[0] == "who"}) == 1
    assert [answer for job, answer in found if job[0] == "fine"] == [1, 2]


def test_a_run_ends_in_time(pool_class: Any) -> None:
    with pool_class.Pool(1, work) as pool:
        for job in (("fine", 1), ("hang", 0), ("fine", 2)):
            pool.submit(job)
        first = next(pool.results())
        assert first == (("fine", 1), 1)
        assert list(pool.results(time.monotonic() + 0.5)) == []
