"""Mutants of the package itself: which wrong guards, conditions, keys and refusals do the tests notice?

``python bench/mutants.py run --each 40 --json bench/results/mutants.json`` draws 40 mutants of each package with a
fixed seed. First all tests run once with the mutants' expressions beside the package's own (``bench/mutant_reach.py``):
which tests does a mutant make a difference to? Then each mutant takes its place, and these tests run, the most
promising first, until one fails; then others of the same files.

A mutant changes one expression or statement of one function:

- ``compare``: ``<`` and ``<=`` for each other, ``==`` and ``!=``, ``is`` and ``is not``, ``in`` and ``not in``;
- ``condition``: the negation of the condition of an ``if``, a ``while`` or a comprehension, ``and`` for ``or``;
- ``operand``: an ``and`` or ``or`` without one of its operands, ``not x`` as ``x``;
- ``key``: a tuple that is a key, without one of its components;
- ``refusal``: a ``raise`` that is not there;
- ``bound``: an integer that is compared with, or divided by, one larger.

Each mutant is a forked child that replaces the code of the function where it stands (other
modules' references to it included) and runs the tests in its own process; so code that runs at import, and functions
whose source is staged (``@cute.jit``, ``@cute.kernel``), are not mutated. A mutant that no test notices is either
*missed*, or *equivalent*: listed with the reason in ``bench/mutants_equivalent.json``, and not run. One that no test
executes is *unexecuted*, and counted as neither.
"""

from __future__ import annotations

import argparse
import gc
import importlib
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

import mutant_reach
from mutant_changes import ROOT, Mutant, apply, mutants

STORE = ROOT / "build/mutants"
CHOSEN = STORE / "chosen"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.json")
PACKAGES = ("lang/launch", "gemm/host", "gemm/operators", "cuda", "sim/checks", "tiled", "ir")
UNTESTED = {"types", "viz", "benchmarks", "repo", "platforms"}
"""Directories of tests that are left out: they start processes, or are about other packages."""


def sources(packages: tuple[str, ...] = PACKAGES) -> list[str]:
    places = [ROOT / "tilewright" / package for package in packages]
    found = [path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    return [str(path.relative_to(ROOT)) for path in found]


# -- which test reaches which mutant -----------------------------------------------------------------------------------


def options() -> list[str]:
    """Of pytest, for both parts: the same examples of hypothesis are drawn."""
    import hypothesis

    hypothesis.settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
        phases=["explicit", "generate"],
    )
    given = ["-q", "--no-header", "-p", "no:cacheprovider", "--tb=no", "--hypothesis-profile=mutants"]
    return [*given, "-o", "faulthandler_timeout=0"]


def environment() -> dict[str, str]:
    return {**os.environ, "CI": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def test_files() -> list[list[str]]:
    """The files of each folder of tests, the largest folder first, after the packages with their doctests."""
    folders: dict[Path, list[Path]] = defaultdict(list)
    for path in sorted((ROOT / "tests").glob("*/**/test_*.py")):
        if path.relative_to(ROOT).parts[1] not in UNTESTED:
            folders[path.parent].append(path)
    listed = sorted(folders.values(), key=lambda files: -sum(path.stat().st_size for path in files))
    doctests = [f"tilewright/{package}" for package in PACKAGES]
    return [doctests, *([str(path.relative_to(ROOT)) for path in files] for files in listed)]


def in_processes(commands: list[list[str]], jobs: int) -> None:
    def one(command: list[str]) -> None:
        subprocess.run([sys.executable, __file__, *command], cwd=ROOT, env=environment(), check=False)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, commands))


def reach(args: argparse.Namespace) -> None:
    """Run each folder of tests in a process of its own, with the mutants beside the package's expressions."""
    STORE.mkdir(parents=True, exist_ok=True)
    if not args.tests:
        for path in STORE.glob("*.pickle"):
            path.unlink()
    write_chosen(args)
    parts = [args.tests] if args.tests else test_files()
    in_processes([["reach-part", *(f"--tests={file}" for file in part)] for part in parts], args.jobs)


def reach_part(args: argparse.Namespace) -> None:
    store = STORE / f"{os.getpid()}-{time.time_ns()}.pickle"
    print(mutant_reach.reach(args.tests, pickle.loads(CHOSEN.read_bytes()), store, options()), flush=True)


# -- running -----------------------------------------------------------------------------------------------------------


class Study:
    """A plugin of pytest that runs mutants in place of the tests that were collected."""

    def __init__(self, chosen: list[Mutant], args: argparse.Namespace, known: dict[str, str], after: Any) -> None:
        self.after = after
        """Called with the results so far."""
        self.chosen, self.seconds, self.known = chosen, args.seconds, known
        self.end = time.perf_counter() + 60 * args.minutes
        self.times: dict[str, float] = {}
        self.executing: dict[str, list[str]] = defaultdict(list)
        self.telling: dict[str, list[str]] = defaultdict(list)
        reached: dict[str, Any] = {}
        for path in sorted(STORE.glob("*.pickle"), key=lambda path: path.stat().st_mtime):
            reached |= pickle.loads(path.read_bytes())  # the latest of each test
        for test, (seconds, executed, differing) in reached.items():
            self.times[test] = seconds
            for name in executed:
                self.executing[name].append(test)
            for name in differing:
                self.telling[name].append(test)
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
            if mutant.name in self.known:
                verdict, test = "equivalent", self.known[mutant.name]
            else:
                verdict, test = self.verdict(mutant, items, living[str(ROOT / mutant.file)])
            seconds = round(time.perf_counter() - start, 1)
            unsound = sorted(self.unsound.intersection(self.executing[mutant.name]))
            self.results.append(
                {"verdict": verdict, "by": test, **vars(mutant), "seconds": seconds, "unsound": unsound}
            )
            print(
                f"{verdict:10} {seconds:6.1f} s  {mutant.kind:9} {mutant.file}:{mutant.line} {mutant.before}  ->  "
                f"{mutant.after}   [{test}]",
                flush=True,
            )
            self.after(self.results)
        return True

    def chosen_tests(self, mutant: Mutant) -> tuple[list[str], int]:
        """Those that are run for a mutant, the most promising first, and for how many tests it makes a difference.

        Others of the same files follow: what a test has compiled is used by the next without a second look.
        """
        telling = [t for t in self.telling[mutant.name] if t not in self.unsound]
        files = {file_of(t) for t in telling}
        beside = [t for t in self.times if file_of(t) in files and t not in self.unsound and t not in set(telling)]
        taken, left = [], self.seconds
        for tests in (telling, beside):
            for test in self.in_turn(tests):
                if self.times[test] <= left:
                    taken.append(test)
                    left -= self.times[test]
            left = min(left, self.seconds / 4)
        return taken, len(telling)

    def in_turn(self, tests: list[str]) -> list[str]:
        """Those that noticed the most so far; then the quickest of each file, the second quickest of each, ..."""
        rank: Counter[str] = Counter()
        places = {}
        for test in sorted(tests, key=self.times.__getitem__):
            places[test] = rank[file_of(test)]
            rank[file_of(test)] += 1
        return sorted(tests, key=lambda t: (-self.kills[t] / (0.5 + self.times[t]), places[t], self.times[t]))

    def verdict(self, mutant: Mutant, items: dict[str, Any], functions: list[FunctionType]) -> tuple[str, str]:
        """``noticed`` and the test that failed, or ``missed`` and how many did not."""
        taken, count = self.chosen_tests(mutant)
        taken = [t for t in taken if t in items]
        if not self.executing[mutant.name]:
            return "unexecuted", "no test executes it"
        if not taken:
            return "missed", f"0 of {count} tests"
        while True:
            status, test = self.child([items[t] for t in taken], mutant, functions)
            if status in ("unmade", "passed"):
                ran = f"{min(count, len(taken))} of {count} tests and {max(0, len(taken) - count)} beside them"
                return ("missed", ran) if status == "passed" else (status, "")
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


def file_of(test: str) -> str:
    return test.partition("::")[0]


def sample(packages: tuple[str, ...], each: int, seed: int) -> list[Mutant]:
    chosen = []
    for package in packages:
        found = [m for file in sources((package,)) for m in mutants(file)]
        chosen += random.Random(f"{seed} {package}").sample(found, min(each, len(found)))
    return chosen


def known() -> dict[str, str]:
    """The mutants that change nothing, each with the reason."""
    return dict(json.loads(EQUIVALENT.read_text(encoding="utf-8")))


def again(paths: list[str]) -> list[Mutant]:
    """Those that earlier studies missed or did not execute, as far as the package still has them."""
    listed = [r for p in paths for r in json.loads(Path(p).read_text(encoding="utf-8"))["mutants"]]
    names = {
        f"{r['file']}:{r['function']}: {r['before']} -> {r['after']}"
        for r in listed
        if r["verdict"] in ("missed", "unexecuted")
    }
    present = {m.name: m for file in sources() for m in mutants(file)}
    return [m for name, m in present.items() if name in names and name not in known()]


def write_chosen(args: argparse.Namespace) -> None:
    packages = tuple(args.packages) or PACKAGES
    chosen = again(args.again) if args.again else sample(packages, args.each, args.seed)
    CHOSEN.write_bytes(pickle.dumps([m for m in chosen if args.only in m.name]))


def run(args: argparse.Namespace) -> None:
    """Run the sample in ``args.jobs`` processes, each with every ``args.jobs``-th mutant of it."""
    reach(args) if not args.reached else write_chosen(args)
    parts = [STORE / f"part-{i}.json" for i in range(args.jobs)]
    for path in parts:
        path.unlink(missing_ok=True)
    given = ["run-part", f"--seconds={args.seconds}", f"--minutes={args.minutes}"]
    in_processes([[*given, f"--part={i}/{args.jobs}", f"--json={parts[i]}"] for i in range(args.jobs)], args.jobs)
    results = [r for part in parts if part.exists() for r in json.loads(part.read_text(encoding="utf-8"))["mutants"]]
    for package, counts in store(results, tuple(args.packages) or PACKAGES, args).items():
        print(package, counts)


def run_part(args: argparse.Namespace) -> None:
    import pytest

    part, jobs = map(int, args.part.split("/"))
    chosen = pickle.loads(CHOSEN.read_bytes())[part::jobs]
    study = Study(chosen, args, known(), partial(store, packages=PACKAGES, args=args))
    parts = sorted({test.partition("::")[0] for mutant in chosen for test in study.chosen_tests(mutant)[0]})
    if chosen:
        pytest.main([*options(), *parts], plugins=[study])


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
    parsers = [commands.add_parser(name) for name in ("reach", "run", "reach-part", "run-part")]
    for command in parsers:
        command.add_argument("packages", nargs="*", help=f"by default {', '.join(PACKAGES)}")
        command.add_argument("--each", type=int, default=40, help="mutants of each package")
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--seconds", type=float, default=60, help="of tests for each mutant")
        command.add_argument("--minutes", type=float, default=600, help="after which no further mutant is begun")
        command.add_argument("--only", default="", help="mutants whose name has this in it")
        command.add_argument("--again", action="append", default=[], help="results whose misses are run, not a draw")
        command.add_argument("--tests", action="append", default=[], help="files of tests whose reach is found anew")
        command.add_argument("--reached", action="store_true", help="what tests reach was stored before")
        command.add_argument("--jobs", type=int, default=2)
        command.add_argument("--part", default="0/1", help=argparse.SUPPRESS)
        command.add_argument("--json", help="where results go")
    args = parser.parse_args()
    os.environ.update(environment())
    sys.path.insert(0, str(ROOT))
    {"reach": reach, "run": run, "reach-part": reach_part, "run-part": run_part}[args.command](args)


if __name__ == "__main__":
    main()
