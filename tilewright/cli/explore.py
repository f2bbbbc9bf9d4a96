"""``tilewright check --schedules N`` and ``--systematic``: a script's kernels under other schedules."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tilewright import sim
from tilewright.cli.scripts import run_script


def run(
    script: Path, arguments: list[str], *, seed: int, schedules: int, systematic: bool, limit: int, compare: bool
) -> int:
    """Explore the schedules of the kernels of ``script``; the exit code is 1 when one fails."""
    found = sim.explore(
        lambda: run_script(script, arguments), schedules=max(schedules, 1), seed=seed, systematic=systematic,
        compare=compare, limit=limit,
    )  # fmt: skip
    console = Console(stderr=True)
    for launch in found.launches:
        style = "green" if launch.failure is None else "red"
        console.print(str(launch), style=style, markup=False, highlight=False, soft_wrap=True)
    if not found.launches:
        console.print(str(found))
    return 0 if found else 1
