"""Mutants of the package itself: which wrong guards, conditions, keys and refusals do the tests notice?

``python bench/mutants.py collect`` runs the tests once and remembers which test executes which line (in
``build/mutants``); ``python bench/mutants.py run --each 40 --json bench/results/mutants.json`` draws 40 mutants of each
package with a fixed seed and runs, for each, the tests that execute its line, the quickest first, until one fails.

A mutant changes one expression or statement of one function:

- ``compare``: ``<`` and ``<=`` for each other, ``==`` and ``!=``, ``is`` and ``is not``, ``in`` and ``not in``;
- ``condition``: the negation of the condition of an ``if``, a ``while`` or a comprehension, ``and`` for ``or``;
- ``operand``: an ``and`` or ``or`` without one of its operands, ``not x`` as ``x``;
- ``key``: a tuple that is a key, without one of its components;
- ``refusal``: a ``raise`` that is not there;
- ``bound``: an integer that is compared with, or divided by, one larger.

Tests are collected once. Each mutant is a forked child that replaces the code of the function where it stands (other
modules' references to it included) and runs the tests in its own process; so code that runs at import, and functions
whose source is staged (``@cute.jit``, ``@cute.kernel``), are not mutated. A mutant that no test notices is either
*missed*, or *equivalent*: listed with the reason in ``bench/mutants_equivalent.json``. One whose line is executed by no
test that was collected is *unexecuted*, and counted as neither.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import importlib.machinery
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

from mutant_changes import ROOT, Mutant, apply, is_staged, mutants

STORE = ROOT / "build/mutants"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.json")
PACKAGES = ("lang/launch", "gemm/host", "gemm/operators", "cuda", "sim/checks", "tiled", "ir")
UNTESTED = {"documentation", "types", "examples", "viz", "layout", "benchmarks", "repo", "platforms", "compat", "cli"}
"""Directories of tests that are left out: most are slow, start processes, or are about other packages."""


def sources(packages: tuple[str, ...] = PACKAGES) -> list[str]:
    places = [ROOT / "tilewright" / package for package in packages]
    found = [path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    return [str(path.relative_to(ROOT)) for path in found]


# -- which test executes which line ------------------------------------------------------------------------------------


class Instrumented(importlib.machinery.SourceFileLoader):
    """Loads a module whose functions say which of their statements run."""

    hits: dict[str, set[int]] = {}

    def get_code(self, fullname: str) -> Any:
        path = Path(self.get_filename(fullname))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not is_staged(node):
                self.instrument(node)
        return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)

    def exec_module(self, module: Any) -> None:
        file = str(Path(module.__spec__.origin).relative_to(ROOT))
        module.__dict__["__hits__"] = self.hits.setdefault(file, set())
        super().exec_module(module)

    def instrument(self, node: Any) -> None:
        for field in ("body", "orelse", "finalbody"):
            listed = getattr(node, field, None)
            if isinstance(listed, list):
                described = (
                    field == "body" and isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None
                )
                told = [x for one in listed[described:] for x in (self.hit(one), one)]
                setattr(node, field, listed[:described] + told)
                for one in listed:
                    if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                        self.instrument(one)
        for part in [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]:
            self.instrument(part)

    def hit(self, statement: ast.stmt) -> ast.stmt:
        return ast.copy_location(ast.parse(f"__hits__.add({statement.lineno})").body[0], statement)


class Finder:
    """Finds the modules under study for :class:`Instrumented`."""

    def __init__(self) -> None:
        self.files = {str(ROOT / file) for file in sources()}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith("tilewright."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.origin in self.files:
            spec.loader = Instrumented(name, spec.origin)
        return spec


class Recorder:
    """A plugin of pytest that remembers each passed test: seconds, and lines by file."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, dict[str, frozenset[int]]]] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        for lines in Instrumented.hits.values():
            lines.clear()
        self.start = time.process_time()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)
        if report.when == "teardown" and report.nodeid not in self.failed:
            lines = {file: frozenset(found) for file, found in Instrumented.hits.items() if found}
            self.tests[report.nodeid] = time.process_time() - self.start, lines


def collect_part(part: str) -> None:
    """Run the tests of one file or directory and store what they execute."""
    import pytest

    sys.meta_path.insert(0, Finder())
    recorder = Recorder()
    pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", "--tb=no", part], plugins=[recorder])
    STORE.mkdir(parents=True, exist_ok=True)
    (STORE / f"{part.replace('/', '-')}.pickle").write_bytes(pickle.dumps(recorder.tests))
    print(f"{part}: {len(recorder.tests)} passed, {len(recorder.failed)} failed or left out")


def environment() -> dict[str, str]:
    return {**os.environ, "CI": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def collect(parts: list[str], jobs: int) -> None:
    """Run each file of tests in a process of its own, the largest files first."""
    files = [path.relative_to(ROOT) for path in (ROOT / "tests").glob("*/**/test_*.py")]
    files = [path for path in files if path.parts[1] not in UNTESTED]
    files.sort(key=lambda path: -path.stat().st_size)
    listed = [*(f"tilewright/{package}" for package in PACKAGES), *map(str, files)]

    def one(part: str) -> None:
        subprocess.run([sys.executable, __file__, "collect-part", part], cwd=ROOT, env=environment(), check=False)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, parts or listed))


# -- running -----------------------------------------------------------------------------------------------------------


class Study:
    """A plugin of pytest that runs mutants in the place of the tests that were collected."""

    def __init__(self, chosen: list[Mutant], args: argparse.Namespace, known: dict[str, str], after: Any) -> None:
        self.after = after
        """Called with the results so far."""
        self.chosen, self.seconds, self.known = chosen, args.seconds, known
        self.end = time.perf_counter() + 60 * args.minutes
        self.times: dict[str, float] = {}
        self.lines: dict[tuple[str, int], list[str]] = defaultdict(list)
        for path in STORE.glob("*.pickle"):
            for test, (time_, files) in pickle.loads(path.read_bytes()).items():
                self.times[test] = time_
                for file, lines in files.items():
                    for line in lines:
                        self.lines[file, line].append(test)
        self.kills: Counter[str] = Counter()
        self.unsound: set[str] = set()
        self.results: list[dict[str, Any]] = []
        self.failed = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: Any) -> bool:
        items = {item.nodeid: item for item in session.items}
        session.config.pluginmanager.unregister(name="terminalreporter")
        for file in {mutant.file for mutant in self.chosen}:  # many are imported at first use
            importlib.import_module(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        gc.unfreeze()
        living = defaultdict(list)
        for function in gc.get_objects():
            if type(function) is FunctionType:
                living[function.__code__.co_filename].append(function)
        gc.freeze()
        for mutant in self.chosen:
            start = time.perf_counter()
            if start > self.end:
                break
            verdict, test = self.verdict(mutant, items, living[str(ROOT / mutant.file)])
            if verdict == "missed" and mutant.name in self.known:
                verdict, test = "equivalent", self.known[mutant.name]
            seconds = round(time.perf_counter() - start, 1)
            unsound = sorted(self.unsound.intersection(self.lines[mutant.file, mutant.line]))
            self.results.append(
                {"verdict": verdict, "by": test, **vars(mutant), "seconds": seconds, "unsound": unsound}
            )
            print(f"{verdict:10} {seconds:6.1f} s  {mutant.kind:9} {mutant.file}:{mutant.line} {mutant.before}  ->  "
                  f"{mutant.after}   [{test}]", flush=True)  # fmt: skip
            self.after(self.results)
        return True

    def chosen_tests(self, mutant: Mutant) -> tuple[list[str], int]:
        """Those that are run for a mutant, the most promising first, and how many execute its line."""
        tests = [t for t in self.lines[mutant.file, mutant.line] if t not in self.unsound]
        tests.sort(key=lambda t: (-self.kills[t] / (0.5 + self.times[t]), self.times[t]))
        left, taken = self.seconds, []
        for test in tests:
            if self.times[test] <= left:
                taken.append(test)
                left -= self.times[test]
        return taken, len(tests)

    def verdict(self, mutant: Mutant, items: dict[str, Any], functions: list[FunctionType]) -> tuple[str, str]:
        """``noticed`` and the test that failed, or ``missed`` and how many did not."""
        taken, count = self.chosen_tests(mutant)
        taken = [t for t in taken if t in items]
        if not taken:
            return "unexecuted", f"{count} tests execute the line, none of them within {self.seconds:g} s"
        while True:
            status, test = self.child([items[t] for t in taken], mutant, functions)
            if status in ("unmade", "passed"):
                return ("missed", f"{len(taken)} of {count} tests") if status == "passed" else (status, "")
            if self.child([items[test]], None, functions)[0] == "passed":
                self.kills[test] += 1
                return "noticed", test if status == "failed" else f"{test} ({status})"
            self.unsound.add(test)  # fails without the mutant, too, when it runs alone
            taken = taken[taken.index(test) + 1 :]

    def child(self, tests: list[Any], mutant: Mutant | None, functions: list[FunctionType]) -> tuple[str, str]:
        """Run ``tests`` in a child until one fails: what ended it, and at which test."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            status = 2
            try:
                if mutant is None or apply(mutant, functions):
                    status = self.run_tests(tests, writing)
            finally:
                os._exit(status)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            begun = len(pipe.read())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        at = tests[begun - 1].nodeid if begun else ""
        ended = {0: "passed", 1: "failed", 2: "unmade"}.get(code, "crashed" if code != -signal.SIGALRM else "hangs")
        return ended if begun or code in (0, 2) else "crashed", at

    def run_tests(self, tests: list[Any], writing: int) -> int:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for item, following in zip(tests, [*tests[1:], None], strict=True):
            os.write(writing, b".")
            signal.alarm(int(30 + 20 * self.times[item.nodeid]))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return 1
        return 0


def sample(packages: tuple[str, ...], each: int, seed: int) -> list[Mutant]:
    chosen = []
    for package in packages:
        found = [m for file in sources((package,)) for m in mutants(file)]
        chosen += random.Random(f"{seed} {package}").sample(found, min(each, len(found)))
    return chosen


def chosen_mutants(args: argparse.Namespace) -> list[Mutant]:
    packages = tuple(args.packages) or PACKAGES
    return [m for m in sample(packages, args.each, args.seed) if args.only in m.name]


def run(args: argparse.Namespace) -> None:
    """Run the sample in ``args.jobs`` processes, each with every ``args.jobs``-th mutant of it."""
    STORE.mkdir(parents=True, exist_ok=True)
    parts = [STORE / f"part-{i}.json" for i in range(args.jobs)]
    options = ("each", "seed", "seconds", "minutes", "only")
    arguments = [*args.packages, *(f"--{name}={getattr(args, name)}" for name in options)]

    def one(i: int) -> None:
        parts[i].unlink(missing_ok=True)
        command = [sys.executable, __file__, "run-part", *arguments, f"--part={i}/{args.jobs}", f"--json={parts[i]}"]
        subprocess.run(command, cwd=ROOT, env=environment(), check=False)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, range(args.jobs)))
    results = [r for part in parts if part.exists() for r in json.loads(part.read_text(encoding="utf-8"))["mutants"]]
    for package, counts in store(results, tuple(args.packages) or PACKAGES, args).items():
        print(package, counts)


def run_part(args: argparse.Namespace) -> None:
    import hypothesis
    import pytest

    hypothesis.settings.register_profile(
        "mutants", deadline=None, derandomize=True, database=None, phases=["explicit", "generate"],
    )  # fmt: skip
    packages = tuple(args.packages) or PACKAGES
    known = json.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else {}
    part, jobs = map(int, args.part.split("/"))
    chosen = chosen_mutants(args)[part::jobs]
    study = Study(chosen, args, known, partial(store, packages=packages, args=args))
    parts = sorted({test.partition("::")[0] for mutant in chosen for test in study.chosen_tests(mutant)[0]})
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "--tb=no", "--hypothesis-profile=mutants"]
    options += ["-o", "faulthandler_timeout=0"]
    if chosen:
        pytest.main([*options, *parts], plugins=[study])


def store(results: list[dict[str, Any]], packages: tuple[str, ...], args: argparse.Namespace) -> dict[str, Any]:
    """The results by package, written where ``--json`` says."""
    table = {}
    for package in packages:
        count = Counter(r["verdict"] for r in results if r["file"].startswith(f"tilewright/{package}"))
        judged = count["noticed"] + count["missed"]
        table[package] = {**count, "share": round(count["noticed"] / judged, 3) if judged else None}
    if args.json:
        command = f"python bench/mutants.py run {' '.join(packages)} --each {args.each} --seed {args.seed} "
        content = {"command": command + f"--seconds {args.seconds:g}", "packages": table, "mutants": results}
        Path(args.json).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect", help="run the tests and remember which lines each executes")
    collecting.add_argument("parts", nargs="*", help="files or directories of tests; by default all that matter")
    collecting.add_argument("--jobs", type=int, default=2)
    commands.add_parser("collect-part").add_argument("part")
    running = commands.add_parser("run", help="draw mutants and run the tests that execute their lines")
    running.add_argument("--jobs", type=int, default=2)
    running_part = commands.add_parser("run-part")
    running_part.add_argument("--part", default="0/1")
    for command in (running, running_part):
        command.add_argument("packages", nargs="*", help=f"by default {', '.join(PACKAGES)}")
        command.add_argument("--each", type=int, default=40, help="mutants of each package")
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--seconds", type=float, default=60, help="of tests for each mutant")
        command.add_argument("--minutes", type=float, default=600, help="after which no further mutant is begun")
        command.add_argument("--only", default="", help="mutants whose name has this in it")
        command.add_argument("--json", help="where results go")
    args = parser.parse_args()
    os.environ.update(environment())
    sys.path.insert(0, str(ROOT))
    if args.command == "collect":
        collect(args.parts, args.jobs)
    elif args.command == "collect-part":
        collect_part(args.part)
    elif args.command == "run":
        run(args)
    else:
        run_part(args)


if __name__ == "__main__":
    main()
