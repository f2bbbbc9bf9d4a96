"""What the checks say of each pair, word for word, and how often they took their short cuts: kept in ``tests/data``.

``python -m tests.check.replay`` writes the file anew, of the pairs named, or of all; the diff shows what has changed. A
short cut that is taken less often costs time, one that is taken more often may miss a race: neither shows in a verdict.
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
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.check.pairs import PAIRS, Pair
from tilewright import sim
from tilewright.errors import SimulationError
from tilewright.sim.checks.accessors import Accessors
from tilewright.sim.checks.pending import PendingAccesses
from tilewright.sim.checks.proxies import Proxies
from tilewright.sim.checks.race_cells import CellCheck
from tilewright.sim.checks.reach import Reach
from tilewright.sim.checks.records import AccessRecord
from tilewright.sim.checks.shadow import Shadow

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests/data/checks.json"
SHORT_CUTS: dict[Any, tuple[str, ...]] = {
    PendingAccesses: (
        "add_similar_loads",
        "cannot_race",
        "_maybe_same_lines",
        "_last_writers",
        "_after_by_warp",
        "_append",
        "_drop_overwritten",
        "_collapse",
        "move_to_cells",
    ),
    AccessRecord: ("accepts", "is_near", "older_than", "happened_before", "happened_before_by_warp", "ranges"),
    Accessors: ("know", "know_by_warp", "given"),
    CellCheck: (
        "check",
        "_observed",
        "_known_by_warps",
        "_unordered",
        "_ask_lanes",
        "_happened_before",
        "_both_strong",
        "_keep_strong",
    ),
    Proxies: ("_plainly_fenced", "_fenced_by_all"),
    Shadow: ("set_observer", "keep_strong", "keep_weak"),
    Reach: ("forget",),
}


POLLS = {"a_grid_barrier_of_more_blocks_than_fit", "blocks_that_wait_for_the_next_one"}
"""How often these ask, and for which block, depends on the machine: they are not kept."""


def amount(found: Any) -> int:
    """How much a short cut gives: yes or no, or of how many."""
    if isinstance(found, np.ndarray):
        return int(np.count_nonzero(found)) + found.size
    if isinstance(found, (list, tuple, set, dict)):
        return len(found)
    return int(found) if isinstance(found, (bool, np.bool_)) else int(found is not None)


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    counts: Counter[str] = Counter()

    def watched(name: str, function: Callable[..., Any]) -> Any:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            found = function(*args, **options)
            counts[name] += 1
            counts[name + " "] += amount(found)
            return found

        return call

    with contextlib.ExitStack() as stack:
        for kind, names in SHORT_CUTS.items():
            for name in names:
                made = watched(f"{kind.__name__}.{name}", getattr(kind, name))
                stack.enter_context(mock.patch.object(kind, name, made))
        yield counts


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
    watched = [f"{kind.__name__}.{name}" for kind, names in SHORT_CUTS.items() for name in names]
    numbers = [counts[name + what] for name in watched for what in ("", " ")]  # without the names: those may change
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
