"""The kernels that may still run when the next one of their stream begins, see :mod:`.dependents`."""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.ir.core import Op


class RunningKernel(NamedTuple):
    """A kernel of a stream that let the next one begin early (``op``): its arrays (``owners``, kept alive so that their
    addresses stay theirs), the addresses of those that it writes, and of all. ``passed``: the name of a kernel after it
    that did not wait for it; empty where it is the last one."""

    kernel: str
    op: Op
    written: list[tuple[int, int]]
    touched: list[tuple[int, int]]
    owners: list[Any]
    passed: str = ""


MOST_KERNELS = 8  # of a stream that are remembered as running
# For each stream the kernels that may still run when the next one, launched with use_pdl, begins; the last one first.
running: dict[int | None, tuple[RunningKernel, ...]] = {}


def kernels_running() -> dict[int | None, tuple[RunningKernel, ...]]:
    """The kernels that may still run in each stream, to be given to :func:`set_running` before a launch is run
    again."""
    return dict(running)


def set_running(streams: dict[int | None, tuple[RunningKernel, ...]]) -> None:
    """Take the kernels of each stream as they were."""
    running.clear()
    running.update(streams)


def any_running() -> bool:
    return bool(running)
