"""What the checks say of each pair, word for word, and how often each of their functions is called: in ``tests/data``.

``python -m tests.check.replay`` writes the file anew, of the pairs named, or of all; the diff shows what has changed. A
short cut that is taken less often costs time, one that is taken more often may miss a race: neither shows in a verdict,
and both change how often the functions behind it are called, or what they give.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import re
import sys
import zlib
from collections.abc import Iterator
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from tests.check.pairs import PAIRS, Pair
from tilewright import sim
from tilewright.errors import SimulationError
from tilewright.sim import checks

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests/data/checks.json"
UNWATCHED = {
    *("sites", "kinds", "initialised", "guarded_waits", "registry", "run"),  # look at programs, some of them once
    *("performance", "findings", "actors"),  # a report tells what they found; sectors depend on addresses
    *("residency", "caller_arrays", "from_arrays", "checker"),  # depend on the machine, and on arrays of other tests
}
"""Modules of ``sim/checks`` whose calls are not counted."""
UNSTEADY = {"_windows", "begin", "_may_read_unwritten"}
"""Functions that depend on addresses or on arrays of other tests."""


def watchable() -> list[tuple[Any, str, FunctionType]]:
    """The functions and methods of the checks: where each is found, by which name, and what it is."""
    modules = [
        importlib.import_module(f"{checks.__name__}.{info.name}") for info in pkgutil.iter_modules(checks.__path__)
    ]
    watched = {m.__name__ for m in modules if m.__name__.rpartition(".")[2] not in UNWATCHED}
    places = [
        *modules,
        *(x for m in modules for x in vars(m).values() if isinstance(x, type) and x.__module__ == m.__name__),
    ]
    return [(place, name, found) for place in places for name, found in vars(place).items()
            if isinstance(found, FunctionType) and found.__module__ in watched and name not in UNSTEADY]  # fmt: skip


POLLS = {
    "a_grid_barrier_of_more_blocks_than_fit", "blocks_that_wait_for_the_next_one",
    "values_of_a_stack_that_are_not_published",
}  # fmt: skip
"""How often these ask, and for which block, depends on the machine or differs between runs: they are not kept."""


def amount(found: Any) -> int:
    """How much a function gives: yes or no, or of how many."""
    if isinstance(found, np.ndarray):  # numbers may be places in memory, which differ
        return found.size + (int(np.count_nonzero(found)) if found.dtype == bool else 0)
    if isinstance(found, (list, tuple, set, dict)):
        return len(found)
    return int(found) if isinstance(found, (bool, np.bool_)) else int(found is not None)


@contextlib.contextmanager
def counted() -> Iterator[dict[FunctionType, list[int]]]:
    """How often each function of the checks is called, and how much it gives in all."""
    counts: dict[FunctionType, list[int]] = {}

    def watched(function: FunctionType) -> Any:
        count = counts[function] = [0, 0]

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            found = function(*args, **options)
            count[0] += 1
            count[1] += amount(found)
            return found

        return call

    made: dict[FunctionType, Any] = {}
    found = watchable()
    for place, name, function in found:
        if function not in made:
            made[function] = watched(function)
        setattr(place, name, made[function])
    try:
        yield counts
    finally:
        for place, name, function in found:
            setattr(place, name, function)


def seed_of(pair: Pair, bug: bool) -> int:
    """Twins run in many orders of threads."""
    return 0 if bug else zlib.crc32(pair.name.encode()) % 1000


def without_places(report: str) -> str:
    """A report without folders, lines of files, and addresses, which differ between machines. Folders may have spaces
    in their names, and Pythons that are not position-independent keep their heap below 4 GiB."""
    report = re.sub(r"\S*/(\w+\.py):\d+", r"\1", report.replace(f"{ROOT}{os.sep}", ""))
    return re.sub(r"address 0x[0-9a-f]+", "address 0x..", report)


def told(pair: Pair, bug: bool) -> tuple[str, str]:
    """(the report, without places in files and memory; a number for each short cut's calls and what they gave)."""
    report = ""
    with sim.options(check="all", seed=seed_of(pair, bug)), counted() as counts:
        try:
            pair.run(bug)
        except SimulationError as error:
            report = str(error)
    numbers = sorted(count for count in counts.values() if count[0])  # without names: those may change
    return without_places(report), f"{zlib.crc32(str(numbers).encode()):08x}"


def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def main() -> None:
    for _, name, _ in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not name.startswith("test_"):
            importlib.import_module(f"tests.check.{name}")
    made = kept() if sys.argv[1:] else {}
    for pair in PAIRS:
        if pair.name not in POLLS and (pair.name in sys.argv[1:] or not sys.argv[1:]):
            (report, bug), (_, twin) = told(pair, True), told(pair, False)
            made[pair.name] = {"report": report.splitlines(), "short cuts": [bug, twin]}
    FILE.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
