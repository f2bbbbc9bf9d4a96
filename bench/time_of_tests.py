"""A plugin of pytest: the CPU time of the tests by folder, and what it goes to.

    OMP_NUM_THREADS=1 TILEWRIGHT_CACHE_DIR=$(mktemp -d) python -m pytest -q -p bench.time_of_tests [tests/gemm]

One process (no ``-n``), one BLAS thread as test workers have it (two of them spin: a product of 0.15 s is 0.9), and an
empty cache of compiled kernels as in a clean clone. Times are those of the process and of its ended children, so that
other programs on the machine count little. ``TIMES=file``: a JSON line for each test as well.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from typing import Any

import pytest

PARTS = {
    "simulator": ("sim.machine.SimKernel.__call__", "sim.machine.SimKernel.__init__"),
    "staging": ("lang.launch.specialise.stage", "lang.launch.executor.Executor.__init__", "cuda.compiler.emit"),
    "NVRTC": ("cuda.nvrtc._run",),
}
COLUMNS = (*PARTS, "processes", "other")

inside: list[float] = []  # of each part that runs now: the seconds of the parts inside it
seconds: Counter[str] = Counter()
tests: list[tuple[str, dict[str, float]]] = []


def children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def place(path: str) -> tuple[Any, str]:
    """The module or class that has a function of Tilewright, and the function's name there."""
    module, _, name = path.rpartition(".")
    try:
        return importlib.import_module(f"tilewright.{module}"), name
    except ModuleNotFoundError:  # a method
        module, _, class_name = module.rpartition(".")
        return getattr(importlib.import_module(f"tilewright.{module}"), class_name), name


def measure(path: str, part: str) -> None:
    """Count the time of a function of Tilewright, less that of other parts inside it, for ``part``."""
    owner, name = place(path)
    function = getattr(owner, name)

    @functools.wraps(function)
    def measured(*args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        inside.append(0.0)
        try:
            return function(*args, **kwargs)
        finally:
            spent = time.process_time() - start
            seconds[part] += spent - inside.pop()
            if inside:
                inside[-1] += spent

    setattr(owner, name, measured)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    start = time.process_time()
    result = yield
    tests.append(("collection", {"other": time.process_time() - start}))
    for part, paths in PARTS.items():
        for path in paths:
            measure(path, part)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    seconds.clear()
    start, ended = time.process_time(), children()
    result = yield
    own = time.process_time() - start
    found = {**seconds, "processes": children() - ended, "other": own - sum(seconds.values())}
    tests.append((item.nodeid, found))
    return result


def pytest_terminal_summary(terminalreporter: Any) -> None:
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    count: Counter[str] = Counter()
    for name, found in tests:
        for folder in ("/".join(name.split("::")[0].split("/")[:2]), "all"):
            count[folder] += 1
            rows[folder].update(found)
    terminalreporter.write_line(f"{'CPU seconds':28}{'tests':>7}{'sum':>9}" + "".join(f"{c:>11}" for c in COLUMNS))
    for folder, row in sorted(rows.items(), key=lambda item: -sum(item[1].values())):
        numbers = "".join(f"{row[column]:11.1f}" for column in COLUMNS)
        terminalreporter.write_line(f"{folder:28}{count[folder]:7}{sum(row.values()):9.1f}{numbers}")
    if path := os.environ.get("TIMES"):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"test": name, **found}) + "\n" for name, found in tests)
