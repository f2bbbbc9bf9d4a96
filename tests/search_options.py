"""What the searches that run as programs ask on their command lines, and how they run their cases."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any


def positive(text: str) -> int:
    """A count of cases or of processes."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def add_options(parser: argparse.ArgumentParser, devices: bool = False) -> None:
    """How many cases, from which on, in how many processes; of searches that also run on a GPU (``devices``) where."""
    parser.add_argument("--cases", type=positive, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--jobs", type=positive, default=1, help="processes")
    if devices:
        parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where the kernels run")
        parser.add_argument("--seconds", type=float, default=36_000, help="after which no further case is counted")


def in_processes(options: argparse.Namespace, judge: Callable[[int], Any]) -> Iterator[tuple[int, Any]]:
    """Each case with what ``judge`` says of it, as they end, until the time is over."""
    end = time.monotonic() + options.seconds
    start = "spawn" if options.device == "cuda" else None  # a forked process cannot use the GPU
    pool = ProcessPoolExecutor(options.jobs, multiprocessing.get_context(start))
    run = partial(_with_a_context, judge) if options.device == "cuda" else judge
    cases = {pool.submit(run, options.first + i): options.first + i for i in range(options.cases)}
    try:
        for future in as_completed(cases, options.seconds):
            yield cases.pop(future), future.result()
            if time.monotonic() > end:
                break
    except TimeoutError:
        print(f"no case ended in time any more; open is {min(cases.values())} among others", flush=True)
    pool.shutdown(wait=False, cancel_futures=True)


def _with_a_context(judge: Callable[[int], Any], case: int) -> Any:
    """What ``judge`` says. An illegal access ends the process's CUDA context, after which every call fails: further
    cases of this worker then run in a process of their own."""
    if not _context_lives():
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            return alone.submit(judge, case).result()
    return judge(case)


def _context_lives() -> bool:
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def search(description: str | None, verdict: Callable[..., tuple[str, str]], good: Sequence[str] = ("right",)) -> int:
    """The program of a search: ``verdict(seed, device=)`` gives a kind and a text; kinds that are not ``good`` are
    failures. Prints each as it is found, the counts, and the three shortest at the end; returns the exit status."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    add_options(parser, devices=True)
    options = parser.parse_args()
    found: Counter[str] = Counter()
    failed: list[tuple[str, int, str]] = []
    for seed, (kind, text) in in_processes(options, partial(verdict, device=options.device)):
        found[kind] += 1
        if kind not in good:
            failed.append((text, seed, kind))
            print(f"case {seed}: {kind}: {text.splitlines()[-1][:300]}", flush=True)
    print(dict(found))
    for text, seed, kind in sorted(failed, key=lambda each: len(each[0]))[:3]:
        print(f"\ncase {seed}: {kind}\n{text}")
    return 1 if failed else 0


def leave(code: int) -> None:
    """End the program and its processes. What a process still does may never end, and a pool would wait for it."""
    sys.stdout.flush()
    for process in multiprocessing.active_children():
        process.kill()
    os._exit(code)
