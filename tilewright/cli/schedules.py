"""``tilewright check --schedules N`` and ``--systematic``: a script's kernels under other schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from tilewright import sim
from tilewright.cli.check import no_kernels, served, write
from tilewright.cli.scripts import own_traceback, run_script
from tilewright.sim.checks import enabled_checkers
from tilewright.sim.exploration import Exploration, ExplorationResult


def run(
    script: Path,
    arguments: list[str],
    *,
    check: str,
    seed: int,
    schedules: int,
    systematic: bool,
    limit: int,
    compare: bool,
    json_file: Path | None = None,
    sarif_file: Path | None = None,
) -> int:
    """Explore the schedules of the kernels of ``script``; the exit code is 1 when one fails."""
    exploration = Exploration()
    try:
        with (
            own_traceback(script),
            served(),
            sim.marking_empty_arrays(enabled_checkers(check).get("uninitialised", False)),
        ):
            exploration = sim.explore(
                lambda: run_script(script, arguments),
                schedules=max(schedules, 1),
                seed=seed,
                systematic=systematic,
                compare=compare,
                limit=limit,
                check=check,
            )
    finally:
        write(
            exploration.report(), json_file, sarif_file, explored=[_as_json(launch) for launch in exploration.launches]
        )
    console = Console(stderr=True)
    for launch in exploration.launches:
        style = "green" if launch.failure is None else "red"
        console.print(str(launch), style=style, markup=False, highlight=False, soft_wrap=True)
    if not exploration.launches:
        raise no_kernels(script)
    return 0 if exploration else 1


def _as_json(launch: ExplorationResult) -> dict[str, Any]:
    """The exploration of a launch and its result."""
    described: dict[str, Any] = {
        "kernel": launch.kernel,
        "grid": list(launch.config.grid),
        "block": list(launch.config.block),
        "schedules": launch.schedules,
        "steps": launch.steps,
        "complete": launch.complete,
    }
    if launch.claim:
        described["claim"] = launch.claim
    failure = launch.failure
    if failure is not None:
        described["failure"] = {
            "kind": failure.kind,
            "seed": failure.seed,
            "order": failure.order,
            "text": str(failure),
        }
    return described
