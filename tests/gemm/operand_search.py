"""Many products of operands in every layout, by every kernel and every entry point (:mod:`.operand_cases`).

``python -m tests.gemm.operand_search --cases 4000 --jobs 2 --out counts.json`` takes every kernel by every entry point
in turns, and counts the verdicts by kernel, entry point, and how each operand lies in memory.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np

from tests.gemm.operand_cases import ENTRY_POINTS, drawn, run
from tests.search_options import add_options
from tilewright.gemm import kernels


def kinds(x: np.ndarray) -> set[str]:
    """How a matrix (or a stack of them) lies in memory, in the words of people who make such views."""
    if 0 in x.shape:
        return {"empty"}
    steps = [step // x.itemsize for extent, step in zip(x.shape, x.strides, strict=True) if extent > 1]
    found = {"reversed"} if any(step < 0 for step in steps) else set()
    found |= {"broadcast"} if 0 in steps else set()
    found |= {"no contiguous mode"} if steps and 1 not in steps else set()
    found |= {"transposed"} if len(steps) > 1 and abs(steps[-2]) < abs(steps[-1]) else set()
    found |= {"padded rows"} if x.ndim > 1 and steps and max(map(abs, steps)) >= x.size else set()
    found |= {"not aligned to 16 bytes"} if x.ctypes.data % 16 else set()
    return found or {"row-major"}


def pairs(entry: str | None = None, kernel: str | None = None) -> list[tuple[str, str]]:
    """All pairs of an entry point and a kernel, or those of one of them."""
    points, names = [entry] if entry else ENTRY_POINTS, [kernel] if kernel else kernels()
    return [(point, name) for name in names for point in points if ENTRY_POINTS[point].has(name)]


def examine(number: int, entry: str | None, kernel: str | None) -> tuple[str, list[str], str]:
    """Verdict, what is counted, and the message of a failure, of case ``number``: the pairs of a kernel and an entry
    point follow each other, so that as many cases as there are pairs have each once."""
    listed = pairs(entry, kernel)
    point, name = listed[number % len(listed)]
    point, case = drawn(number, point, name)

    def counted() -> list[str]:  # the bias is drawn in the run
        lies = [f"{operand}: {kind}" for operand, x in case.operands for kind in kinds(x.view)]
        return [f"entry point {point}", f"kernel {name}", f"{name} by {point}", *lies]

    try:
        return run(point, case), counted(), ""
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())[:600]
        verdict = "wrong" if isinstance(error, AssertionError) else "error"
        return verdict, counted(), f"{number} {type(error).__name__} {text} at {last.filename}:{last.lineno}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--entry", choices=ENTRY_POINTS)
    parser.add_argument("--kernel", choices=kernels())
    parser.add_argument("--minutes", type=float, default=600, help="after which no further case is counted")
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    options = parser.parse_args()
    begin, counts, failed = time.time(), Counter[str](), []
    by: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with ProcessPoolExecutor(options.jobs) as pool:
        numbers = range(options.first, options.first + options.cases)
        waiting = [pool.submit(examine, number, options.entry, options.kernel) for number in numbers]
        for future in waiting:
            try:
                verdict, counted, text = future.result(max(0.0, begin + 60 * options.minutes - time.time()))
            except TimeoutError:
                break
            except BrokenProcessPool:
                counts["crashed"] += 1
                failed.append("a process died: which of the cases under way it was, runs of --cases 1 say")
                break
            counts[verdict] += 1
            for name in counted:
                by[name][verdict] += 1
            if text:
                failed.append(text)
                print(text, flush=True)
        pool.shutdown(wait=False, cancel_futures=True)
    chosen = [f" --{name} '{given}'" for name in ("entry", "kernel") if (given := getattr(options, name))]
    command = f"python -m tests.gemm.operand_search --cases {options.cases} --first {options.first}{''.join(chosen)}"
    empty = [
        f"{name} by {point}"
        for point, name in pairs(options.entry, options.kernel)
        if not by[f"{name} by {point}"]["right"]
    ]
    found = {
        "command": command,
        "cases": counts.total(),
        **counts,
        "pairs without a right product": empty,
        "failed": failed,
        "by": {name: dict(by[name]) for name in sorted(by)},
        "seconds": round(time.time() - begin),
    }
    print(json.dumps({name: value for name, value in found.items() if name != "by"}))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
