"""Scripted debugging: a program runs in a thread of its own, and stops where it is told to."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.errors import ArgumentError, SimulationError
from tilewright.sim.debug.breakpoints import Breakpoint
from tilewright.sim.debug.frame import Frame


class _SessionEnded(BaseException):
    """Ends a launch whose session is over."""


class Session:
    """Runs ``act`` from one place to the next. Use it in a ``with`` block: at its end the program is abandoned where it
    is.

    >>> from tilewright import sim
    >>> @cute.kernel
    ... def double(x: cute.Tensor):
    ...     t, _, _ = cute.arch.thread_idx()
    ...     x[t] = x[t] + x[t]
    >>> @cute.jit
    ... def run(x: cute.Tensor):
    ...     double(x).launch(grid=(1, 1, 1), block=(64, 1, 1))
    >>> with sim.debug.Session(lambda: run(np.ones(64, np.float32))) as session:
    ...     frame = session.run_until("double", warp=1, lane=2)
    ...     frame.warp, frame.thread, float(frame.tensor("x").sum())
    (1, (34, 0, 0), 64.0)
    """

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act
        # From the program: a frame where it has stopped, its error, or None at its end; to it: whether to go on.
        self._reports: queue.Queue[Frame | BaseException | None] = queue.Queue()
        self._orders: queue.Queue[bool] = queue.Queue()
        self._point: Breakpoint | None = None
        self._thread: threading.Thread | None = None
        self.frame: Frame | None = None
        self.over = False

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        if self._thread is not None and not self.over:
            self._orders.put(False)
            self._thread.join()
        self._clear()
        self.over = True

    def run_until(
        self, where: str | int, *, block: Any = None, warp: int | None = None, lane: int | None = None, hit: int = 1
    ) -> Frame:
        """Run until the place is reached for the ``hit``-th time from here on, and return the frame there.

        ``where``, ``block``, ``warp``, ``lane`` are those of :func:`break_at`. A program that ends before is an error,
        with its own error where it has one.
        """
        if hit < 1:
            raise ArgumentError(f"hit={hit}; the first is 1")
        hits_left = [hit]

        def stop(frame: Frame) -> None:
            hits_left[0] -= 1
            if hits_left[0] == 0:
                self._pause(frame)

        return self._run(Breakpoint(where, block, warp, lane, stop, None), f"{where!r}")

    def step(self) -> Frame:
        """Run to the next line of this file that the same lane executes, and give what is seen there."""
        now = self.frame
        if now is None or self.over:
            raise ArgumentError("there is nothing to step from: run_until(...) comes first")
        file, line = now.location

        def stop(frame: Frame) -> None:
            if Path(frame.location.file) == Path(file) and frame.location.line != line and frame.kernel == now.kernel:
                self._pause(frame)

        return self._run(Breakpoint(None, now.block, now.warp, now.lane, stop, None), "another line")

    def finish(self) -> None:
        """Run the program to its end; its error is raised here."""
        self._clear()
        if self.over:
            return
        self._resume()
        report = self._reports.get()
        self.over = True
        if isinstance(report, BaseException):
            raise report

    # -- the two threads -----------------------------------------------------------------------------------------------

    def _run(self, point: Breakpoint, what: str) -> Frame:
        """Let the program go on until ``point`` stops it. ``what``: the place, for the error of a program that ends."""
        # The new breakpoint is set before the old one goes: without any, launches are not intercepted.
        old, self._point = self._point, point
        if old is not None:
            old.remove()
        if self.over:
            raise SimulationError("the program has ended")
        self._resume()
        report = self._reports.get()
        if isinstance(report, Frame):
            self.frame = report
            return report
        self.over = True
        self._clear()
        if report is not None:
            raise report
        raise SimulationError(f"the program has ended without reaching {what}")

    def _resume(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        else:
            self._orders.put(True)

    def _work(self) -> None:
        try:
            self._act()
        # Raised inside the launch by ``_pause``: the program itself sees it as it would see a KeyboardInterrupt.
        except _SessionEnded:
            return
        except BaseException as error:
            self._reports.put(error)
        else:
            self._reports.put(None)

    def _pause(self, frame: Frame) -> None:
        """Runs in the program's thread, inside its breakpoint: the launch stops until the session decides."""
        self._reports.put(frame)
        if not self._orders.get():
            raise _SessionEnded

    def _clear(self) -> None:
        if self._point is not None:
            self._point.remove()
            self._point = None
