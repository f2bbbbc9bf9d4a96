"""Python's collector of cycles, while many objects are made that stay."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Collector:
    """How many threads want Python's collector of cycles to wait, and whether it ran before."""

    lock = threading.Lock()
    waits = 0
    ran = False


@contextmanager
def without_collector() -> Iterator[None]:
    """Python's collector of cycles waits. A program is some 20,000 objects that stay; while they are made, full
    collections would look at all that the process has, a model and its framework: 19 ms a program that is read in 2.5,
    and 0.1 s of the first few that are staged."""
    with Collector.lock:
        Collector.waits += 1
        if Collector.waits == 1:
            Collector.ran = gc.isenabled()
            gc.disable()
    try:
        yield
    finally:
        with Collector.lock:
            Collector.waits -= 1
            if Collector.waits == 0 and Collector.ran:
                gc.enable()


def put_aside() -> None:
    """Count everything that there is among what is old, without a look at it: the next young collection would take 7 ms
    for a program that was read, all of which stays. Objects that a user has frozen stay so."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()
