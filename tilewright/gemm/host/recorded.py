"""The launches that one call makes, in order, for a call that repeats it.

What is launched by compiled functions goes through :func:`launch`. While a thread records (:func:`recording`), the
run-time values of each are kept: what differs between a call and its repetition is addresses among them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

Bounds = tuple[int, int]


class RecordedLaunch(NamedTuple):
    """A compiled function with the flat values of all its arguments, and the memory that it finds by addresses among
    these."""

    executor: Any
    values: list[Any]
    exposed: tuple[Bounds, ...]


class RecordedProduct(NamedTuple):
    """A product that was prepared (``operators.prepared``), with the addresses that it was launched with."""

    prepared: Any
    addresses: tuple[int, ...]


class Decision(NamedTuple):
    """What was decided for an extent, and the function that decides it for others; it holds no arrays."""

    extent: int
    again: Callable[[int], Any]
    value: Any


@dataclass
class Record:
    """What a call has done so far."""

    launches: list[RecordedLaunch | RecordedProduct] = field(default_factory=list)
    checks: list[tuple[partial[None], Any]] = field(default_factory=list)
    """Checks of the elements of an array, which every call has to make."""
    alone: bool = False
    """Whether something was planned for the extents of this call alone, and not for the range that they are in."""
    decisions: list[Decision] = field(default_factory=list)
    """The choices by an extent. If there are any, what is launched depends on them and on extents alone."""


class Thread(threading.local):
    """What a thread records. The class has the default: ``getattr`` with one takes 0.4 us more of each call."""

    record: Record | None = None


_THREAD = Thread()


def current() -> Record | None:
    """The record of this thread's call; None where it is not recorded."""
    return _THREAD.record


@contextmanager
def recording() -> Iterator[Record]:
    """Record what this thread launches."""
    _THREAD.record = record = Record()
    try:
        yield record
    finally:
        _THREAD.record = None


def launch(executor: Any, args: Sequence[Any], exposed: Sequence[Bounds] = ()) -> None:
    """Call a compiled function on the current stream; ``exposed`` is the memory that it finds by addresses."""
    record = current()
    if record is None:
        executor(*args)
        return
    read = zip(executor.parameters, executor.arrange(tuple(args), {}), strict=True)
    values = [value for parameter, argument in read for value in parameter.argument.read(argument)]
    executor.run(values)
    record.launches.append(RecordedLaunch(executor, values, tuple(exposed)))


def prepared_launch(prepared: Any, addresses: tuple[int, ...]) -> None:
    """Launch a prepared product."""
    prepared.launch(addresses)
    record = current()
    if record is not None:
        record.launches.append(RecordedProduct(prepared, addresses))


def planned_alone() -> None:
    """Note that this call's launches may not be those of other extents of their range (``open_extents``)."""
    record = current()
    if record is not None:
        record.alone = True


def decided(extent: int, again: Callable[[int], Any]) -> None:
    """Note the choice ``again(extent)``. A call that notes any notes all choices that its launches depend on: where
    they are the same for another extent, launches for that are derived from these, whatever range it is in
    (``open_extents``)."""
    record = current()
    if record is not None:
        record.decisions.append(Decision(extent, again, again(extent)))


def check_elements(check: partial[None], array: Any) -> None:
    """``check(array)``, also in each repetition of the call."""
    check(array)
    record = current()
    if record is not None:
        record.checks.append((check, array))
