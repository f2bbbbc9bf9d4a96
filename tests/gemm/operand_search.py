"""Many products of operands in every layout, by every kernel and every entry point (:mod:`.operand_cases`).

``python -m tests.gemm.operand_search --cases 4000 --jobs 2 --out counts.json`` takes every kernel by every entry point
in turns, and counts the verdicts by kernel, entry point, and how each operand lies in memory. ``--device cuda``: those
of tensors of the GPU.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections import Counter, defaultdict
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np

from tests.gemm import operand_gpu
from tests.gemm.operand_cases import ENTRY_POINTS, drawn, run
from tests.gemm.operand_draws import Case
from tests.search_options import add_options, in_processes, leave
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


def pairs(entry: str | None = None, kernel: str | None = None, device: str = "cpu") -> list[tuple[str, str]]:
    """All pairs of an entry point and a kernel, or those of one of them."""
    known = operand_gpu.ENTRY_POINTS if device == "cuda" else ENTRY_POINTS
    points, names = [entry] if entry else known, [kernel] if kernel else kernels()
    return [(point, name) for name in names for point in points if ENTRY_POINTS[point].has(name)]


def examine(number: int, entry: str | None, kernel: str | None, device: str = "cpu") -> tuple[str, list[str], str]:
    """Verdict, what is counted, and the message of a failure, of case ``number``: the pairs of a kernel and an entry
    point follow each other, so that as many cases as there are pairs have each once."""
    listed = pairs(entry, kernel, device)
    point, name = listed[number % len(listed)]
    with operand_gpu.on_device() if device == "cuda" else nullcontext():
        return examined(number, *drawn(number, point, name))


def examined(number: int, point: str, case: Case) -> tuple[str, list[str], str]:
    name = case.entry.name

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
    add_options(parser, devices=True)
    parser.add_argument("--entry", choices=ENTRY_POINTS)
    parser.add_argument("--kernel", choices=kernels())
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    options = parser.parse_args()
    begin, counts, failed = time.time(), Counter[str](), []
    by: defaultdict[str, Counter[str]] = defaultdict(Counter)
    judge = partial(examine, entry=options.entry, kernel=options.kernel, device=options.device)
    try:
        for _, (verdict, counted, text) in in_processes(options, judge):
            counts[verdict] += 1
            for name in counted:
                by[name][verdict] += 1
            if text:
                failed.append(text)
                print(text, flush=True)
    except BrokenProcessPool:
        counts["crashed"] += 1
        failed.append("a process died: which of the cases under way it was, runs of --cases 1 say")
    chosen = [f" --{name} '{given}'" for name in ("entry", "kernel") if (given := getattr(options, name))]
    chosen += [" --device cuda"] if options.device == "cuda" else []
    command = f"python -m tests.gemm.operand_search --cases {options.cases} --first {options.first}{''.join(chosen)}"
    empty = [
        f"{name} by {point}"
        for point, name in pairs(options.entry, options.kernel, options.device)
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
    shown = {name: value for name, value in found.items() if name not in ("by", "failed")}
    print(json.dumps(shown | {"pairs without a right product": len(empty)}))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
    leave(0)
