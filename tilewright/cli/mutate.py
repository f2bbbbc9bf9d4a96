"""``tilewright mutate``: whether a missing or weakened synchronisation operation is noticed, and by what."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console

from tilewright.cli.scripts import own_traceback, run_script
from tilewright.sim import marking_empty_arrays
from tilewright.sim.mutation import KnownList, Outcome, as_json, study, table


def run(
    script: Path,
    arguments: list[str],
    *,
    seed: int,
    schedules: int,
    every: bool,
    launches: int,
    known: Path | None,
    json: Path | None,
    verbose: bool,
) -> int:
    """Run ``script`` (with ``arguments``), then each mutant of its kernels, and print what noticed it: the options are
    those of :func:`tilewright.sim.mutation.study`. ``known``: a file of mutants that are known to change nothing;
    ``json``: where the outcomes go; ``verbose``: list the mutants that were noticed, too. The exit code is 1 when one
    is missed."""
    console = Console(stderr=True)

    def show(outcome: Outcome) -> None:
        done[0] += 1
        if console.is_terminal:
            console.print(f"{done[0]} mutants of {outcome.kernel}", end="\r", highlight=False)

    done = [0]
    with own_traceback(script), marking_empty_arrays():
        result = study(
            lambda: run_script(script, arguments),
            every=every,
            seed=seed,
            schedules=schedules,
            launches=launches,
            known=KnownList.read(known) if known is not None else None,
            progress=show,
        )
    if not result.outcomes:
        typer.echo("no kernel with a synchronisation operation was launched on the simulator")
        return 0
    typer.echo(table(result, all_of_them=verbose))
    if json is not None:
        json.write_text(as_json(result) + "\n", encoding="utf-8")
    return 1 if result.of("missed") else 0
