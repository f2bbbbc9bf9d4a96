"""What the kernels of other people's libraries cost to compile: seconds of one CPU core, without a GPU.

    python bench/library_compile.py PROGRAM

PROGRAM is one of bench/library_programs; its wheels lie on PYTHONPATH, as bench/libraries.py installs them. Every
``cute.compile`` is timed: the staging, and NVRTC for sm_90a. Nothing is read from the cache. One line of JSON a
kernel, and one with the median and the greatest.
"""

from __future__ import annotations

import json
import os
import resource
import runpy
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ["TILEWRIGHT_CACHE_MB"] = "0"

import tilewright.compat
import tilewright.cuda
from tilewright.lang.launch.compile import Compiler

found: list[float] = []


def timed(compiler: Compiler, function: Any, *args: Any, **kwargs: Any) -> Any:
    """``cute.compile``, and the machine code of its kernels beside it."""
    start = time.process_time()
    executor = staged(compiler, function, *args, **kwargs)
    lowered = time.process_time()
    for kernel in executor.kernels:
        begin = time.process_time()
        code = tilewright.cuda.compile(kernel, "sm_90a")
        now = time.process_time()
        stage_s = (lowered - start) / len(executor.kernels)
        found.append(stage_s + now - begin)
        line = {"kernel": kernel.name, "stage_s": round(stage_s, 2), "nvrtc_s": round(now - begin, 2)}
        print(json.dumps(line | {"registers": code.registers, "spills": code.spills}), flush=True)
    return executor


staged = Compiler.__call__
Compiler.__call__ = timed  # what programs call is timed


def main() -> None:
    program = Path(sys.argv[1])
    sys.path.insert(0, str(program.parent))
    tilewright.compat.install(cpu=True)
    try:
        runpy.run_path(str(program), run_name="__main__")
    finally:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        line = {"kernels": len(found), "median_s": statistics.median(found), "greatest_s": max(found), "peak_mib": peak}
        print(json.dumps({k: round(v, 2) for k, v in line.items()}), flush=True)


if __name__ == "__main__":
    main()
