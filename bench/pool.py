"""Processes that prepare measurements side by side, and measure one at a time.

A job is prepared (kernels are staged and compiled) while other processes do the same, and measured under a lock: one
process has the GPU to itself meanwhile. A job that fails, breaks the GPU or hangs costs itself and no other, since its
process is ended and a new one takes its place.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

Work = Callable[[Any, Callable[[], Any]], Any]
"""``work(job, alone)``: prepares, then measures inside ``with alone():``, and returns what is to be kept."""


@dataclass(frozen=True)
class Failure:
    """Why a job has no result."""

    reason: str


class Member:
    """A process of the pool, and the job that it is at."""

    def __init__(self, number: int, work: Work, lock: Path) -> None:
        self.number, self.work, self.lock = number, work, lock
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (self.work, theirs, str(self.lock))
        self.process = context.Process(target=serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.job: Any = None
        self.measuring: float | None = None  # since when

    def give(self, job: Any) -> None:
        self.job, self.measuring = job, None
        self.connection.send(job)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


class Pool:
    """``processes`` processes that do ``work`` on jobs. A job may take ``limit`` seconds of measuring."""

    def __init__(self, processes: int, work: Work, limit: float = 60.0) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="tilewright-bench-")
        self.limit = limit
        self.members = [Member(i, work, Path(self.folder.name) / "gpu.lock") for i in range(processes)]
        self.shared: deque[Any] = deque()
        self.own: list[deque[Any]] = [deque() for _ in self.members]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: Any) -> None:
        for member in self.members:
            member.stop()
        self.folder.cleanup()

    def submit(self, job: Any, member: int | None = None, first: bool = False) -> None:
        """``member``: only this process may do it, which has some of what the job needs. ``first``: before others."""
        queue = self.shared if member is None else self.own[member % len(self.own)]
        (queue.appendleft if first else queue.append)(job)

    def results(self, end: float = float("inf")) -> Iterator[tuple[Any, Any]]:
        """(job, its result or its :class:`Failure`) as they come, until there are no jobs left, or until
        ``time.monotonic()`` is ``end``. Jobs may be submitted meanwhile."""
        while True:
            for member, own in zip(self.members, self.own, strict=True):
                queue = own or self.shared
                if member.job is None and queue:
                    member.give(queue.popleft())
            busy = {member.connection: member for member in self.members if member.job is not None}
            if not busy or time.monotonic() >= end:
                return
            for connection in wait(list(busy), timeout=min(1.0, max(0.0, end - time.monotonic()))):
                assert isinstance(connection, Connection)
                if (found := self.answer(busy[connection])) is not None:
                    yield found
            for member in busy.values():
                if member.job is not None and member.measuring and time.monotonic() - member.measuring > self.limit:
                    yield self.replaced(member, f"stopped after {self.limit:.0f} seconds of measuring")

    def answer(self, member: Member) -> tuple[Any, Any] | None:
        """What a process has sent; None where it only says that it measures now."""
        try:
            kind, value = member.connection.recv()
        except (EOFError, OSError):
            member.process.join()
            return self.replaced(member, f"its process has ended (exit code {member.process.exitcode})")
        if kind == "measuring":
            member.measuring = time.monotonic()
            return None
        if kind == "broken":
            return self.replaced(member, value)
        job, member.job = member.job, None
        return job, value

    def replaced(self, member: Member, reason: str) -> tuple[Any, Failure]:
        """The job of a process that can do no more, with the reason; another process takes its place."""
        job = member.job
        member.stop()
        member.start()
        return job, Failure(reason)


def serve(work: Work, connection: Connection, lock: str) -> None:
    """The loop of a process."""

    @contextmanager
    def alone() -> Iterator[None]:
        with open(lock, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # the system opens it again should this process end
            connection.send(("measuring", None))
            yield

    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        try:
            connection.send(("done", work(job, alone)))
        except Exception as error:
            if os.environ.get("TILEWRIGHT_BENCH_TRACEBACK"):
                traceback.print_exc()
            reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            # After an error of the GPU nothing more can run in this process.
            connection.send(("broken", reason) if "CUDA error" in str(error) else ("done", Failure(reason)))
