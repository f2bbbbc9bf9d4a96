"""What each short cut of the simulator's checks gains: programs with it and without it, in turns.

    python bench/short_cuts.py [word ...] [--programs hopper,default stream_k,all ...] [--rounds N] [--write]

The short cuts are those of ``tests/check/short_cuts.py`` whose names hold one of the words; a program is a word of its
name and the checks. The gain is the process time without a short cut over that with it, of the least of ``--rounds``
runs of both in turns in one process. "nothing" is no short cut: how far its gain is from 1 is the noise.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from check_cost import PROGRAMS
from figures import ROOT, table, write_results

import tilewright as cutlass
from tilewright import cute, sim

sys.path.insert(0, str(ROOT))
from tests.check.short_cuts import SHORT_CUTS, ShortCut
from tests.check.test_chains import all_threads_poll

RUNS = [
    "hopper,default",
    "hopper,all",
    "stream_k,default",
    "stream_k,all",
    "simt,all",
    "tensorop_f16 512,default",
    "add,all",
    "in place,all",
    "poll,all",
]


@cute.kernel
def add_in_place(x: cute.Tensor):
    """Each thread updates numbers of its own again and again: what its own program order orders."""
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    for _ in cutlass.range(16):
        for k in cutlass.range_constexpr(4):
            x[k, b, t] = x[k, b, t] + 1.0


@cute.jit
def in_place(x: cute.Tensor):
    add_in_place(x).launch(grid=(32, 1, 1), block=(256, 1, 1))


@cute.jit
def poll(count: cute.Tensor, d: cute.Tensor):
    """Blocks whose threads all wait for the block before."""
    all_threads_poll(count, d).launch(grid=(40, 1, 1), block=(64, 1, 1))


def polling() -> None:
    with sim.options(sms=40):
        poll(np.zeros(1, np.int32), np.zeros(64, np.float32))


OTHERS: dict[str, Callable[[], Callable[[], Any]]] = {
    "in place": lambda: lambda: in_place(np.zeros((4, 32, 256), np.float32)),
    "poll": lambda: polling,
}


class Nothing:
    name = "nothing"

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        yield


def seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def gain(cut: ShortCut | Nothing, run: Callable[[], Any], check: str, rounds: int) -> float:
    """Process time without the short cut over that with it."""
    least = {True: float("inf"), False: float("inf")}
    with sim.options(check=check):
        for turn in range(rounds):
            for off in (True, False) if turn % 2 else (False, True):
                with cut.off() if off else contextlib.nullcontext():
                    least[off] = min(least[off], seconds(run))
    return least[True] / least[False]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--programs", nargs="*", default=RUNS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", action="store_true", help="a file of results")
    args = parser.parse_args()
    runs = []
    for text in args.programs:
        word, check = text.split(",")
        runs.append((next(make for name, make in (PROGRAMS | OTHERS).items() if word in name)(), check))
    cuts = [Nothing(), *(cut for cut in SHORT_CUTS if not args.words or any(word in cut.name for word in args.words))]
    records, rows = [], []
    for cut in cuts:
        found = {text: gain(cut, *run, args.rounds) for text, run in zip(args.programs, runs, strict=True)}
        records.append({"short_cut": cut.name, **found})
        rows.append((cut.name, *(f"{ratio:.2f}" for ratio in found.values())))
        print(cut.name, *(f"{ratio:.2f}" for ratio in found.values()), flush=True)
        if args.write:
            write_results("short_cuts", "cpu", records)
    table("time without over time with it", rows, ("short cut", *args.programs))


if __name__ == "__main__":
    main()
