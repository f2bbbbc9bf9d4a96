"""What each short cut of the simulator and of its checks gains: programs with it and without it, in turns.

    python bench/short_cuts.py [word ...] [--simulator] [--programs hopper,default ...] [--rounds N] [--write]

The short cuts are those of ``tests/check/short_cuts.py`` (with ``--simulator`` of ``tests/sim/short_cuts.py``) whose
names hold one of the words; a program is a word of its name and the checks. The gain is the process time without a
short cut over that with it, of the least of ``--rounds`` runs of both in turns in one process. "nothing" is no short
cut: how far its gain is from 1 is the noise.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from check_cost import PROGRAMS
from figures import ROOT, table, write_results

import tilewright as cutlass
from tilewright import cute, sim
from tilewright.gemm.host import handle

sys.path.insert(0, str(ROOT))
from tests.check.short_cuts import SHORT_CUTS, ShortCut
from tests.check.test_chains import all_threads_poll
from tests.sim import short_cuts as of_simulator
from tests.sim.short_cuts import without

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

OF_SIMULATOR = ["add,none", "simt,none", "tensorop_f16 512,none", "hopper,none", "stream_k,none"]


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


def gain(cut: ShortCut | Nothing, make: Callable[[], Callable[[], Any]], check: str, rounds: int) -> float:
    """Process time without the short cut over that with it. Each has kernels of its own, as some short cuts are taken
    when a kernel is lowered."""
    least = {True: float("inf"), False: float("inf")}
    compiled: dict[bool, dict[Any, Any]] = {True: {}, False: {}}
    runs: dict[bool, Callable[[], Any]] = {}
    with sim.options(check=check):
        for turn in range(rounds + 1):
            for off in (True, False) if turn % 2 else (False, True):
                with without(cut, compiled[off]) if off else mock.patch.object(handle, "_COMPILED", compiled[off]):
                    if turn == 0:  # compiles
                        runs[off] = make()
                        runs[off]()
                    else:
                        least[off] = min(least[off], seconds(runs[off]))
    return least[True] / least[False]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--simulator", action="store_true", help="those of the simulator itself")
    parser.add_argument("--programs", nargs="*")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", action="store_true", help="a file of results")
    args = parser.parse_args()
    args.programs = args.programs or (OF_SIMULATOR if args.simulator else RUNS)
    runs = []
    for text in args.programs:
        word, check = text.split(",")
        runs.append((next(make for name, make in (PROGRAMS | OTHERS).items() if word in name), check))
    known = of_simulator.SHORT_CUTS if args.simulator else SHORT_CUTS
    cuts = [Nothing(), *(cut for cut in known if not args.words or any(word in cut.name for word in args.words))]
    records, rows = [], []
    for cut in cuts:
        found = {text: gain(cut, *run, args.rounds) for text, run in zip(args.programs, runs, strict=True)}
        records.append({"short_cut": cut.name, **found})
        rows.append((cut.name, *(f"{ratio:.2f}" for ratio in found.values())))
        print(cut.name, *(f"{ratio:.2f}" for ratio in found.values()), flush=True)
        if args.write:
            write_results("short_cuts_of_the_simulator" if args.simulator else "short_cuts", "cpu", records)
    table("time without over time with it", rows, ("short cut", *args.programs))


if __name__ == "__main__":
    main()
