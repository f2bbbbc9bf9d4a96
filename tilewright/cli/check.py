"""``tilewright check``: a script's kernels on the simulator with all checks."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from rich.console import Console

from tilewright import sim
from tilewright.errors import ArgumentError, SimulationError


def run(script: Path, arguments: list[str], seed: int) -> int:
    """Run ``script`` as the main program with ``arguments``; the exit code is 1 when something was found."""
    if not script.is_file():
        raise ArgumentError(f"{script} is no file: give the Python script that launches the kernels")
    before, path = sys.argv, sys.path[:]
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    console = Console(stderr=True)
    try:
        with sim.options(check="all", seed=seed):
            runpy.run_path(str(script), run_name="__main__")
    except SimulationError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return 1
    finally:
        sys.argv, sys.path[:] = before, path
    console.print("nothing found", style="green")
    return 0
