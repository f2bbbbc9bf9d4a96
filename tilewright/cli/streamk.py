"""``tilewright streamk``: decompositions of one product side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from tilewright.cli.drawing import check_names
from tilewright.cli.gemm import ProgressBar, where_to_run
from tilewright.errors import ArgumentError, SimulationError

if TYPE_CHECKING:
    from tilewright.gemm.operators.compare import Outcome


def run(
    problem: tuple[int, int, int],
    *,
    sms: int | None,
    available: int | None,
    occupancy: int | None,
    tile: str | None,
    split: int | None,
    scales: tuple[float, float],
    iterations: int,
    kernel: str,
    picture: Path | None,
    machine: str,
) -> None:
    """Print what the example program prints, and draw the schedules if asked. A wrong result ends in SimulationError,
    after all have been printed."""
    check_names(picture, None)
    from tilewright.gemm.operators.compare import Comparison

    where = where_to_run(machine)
    comparison = Comparison(
        problem,
        machine=where,
        sms=sms,
        tile=None if tile is None else parsed(tile),
        split=split,
        scales=scales,
        available=available,
        occupancy=occupancy,
        kernel=kernel,
    )
    console = Console(highlight=False)
    m, n, k = problem
    timed = f"{iterations} timing iterations of" if where == "gpu" else "Modelled times and simulated results of"
    console.print(f"{timed} {m} x {n} x {k} matrix-matrix multiply", soft_wrap=True)
    config = comparison.entry.config
    shape, sums = "x".join(map(str, config.tile)), config.acc_dtype.__name__
    other = "" if sums == "Float16" else "; CUTLASS's example adds in half, as tensorop_f16_f16 does"
    console.print(f"{comparison.entry.name}, tiles of {shape}, sums in {sums}{other}", markup=False, soft_wrap=True)
    outcomes: dict[str, Outcome] = {}
    with ProgressBar("simulating") as progress:
        for outcome in comparison.run(iterations, progress):
            outcomes[outcome.variant.name] = outcome
            show(console, outcome, outcomes, 2.0 * m * n * k)
    if picture is not None:
        from tilewright.viz import gantt

        title = f"{m} x {n} x {k} in tiles of {shape} on {comparison.sms} multiprocessors"
        gantt([(one.variant.name, one.schedule) for one in outcomes.values()], title).save(picture)
        console.print(f"\ndrawn into {picture}", markup=False, soft_wrap=True)
    failed = [name for name, one in outcomes.items() if not one.passed]
    if failed:
        raise SimulationError(f"wrong results: {', '.join(failed)}")


def show(console: Console, outcome: Outcome, outcomes: dict[str, Outcome], flops: float) -> None:
    """One block of the example program's output."""
    modelled = "" if outcome.seconds is not None else " (modelled)"
    seen = outcome.schedule
    lines = [
        "",
        outcome.variant.name,
        f"  Disposition: {'Passed' if outcome.passed else 'Failed'}",
        f"  Avg runtime: {outcome.us * 1e-3:.6g} ms{modelled}",
        f"  GFLOPs: {flops / outcome.us * 1e-3:.6g} ({flops / outcome.us * 1e-6:.4g} TFLOP/s)",
        f"  Blocks: {len(outcome.variant.blocks)}, quantisation efficiency {seen.quantisation_efficiency:.1%}",
    ]
    against = outcomes.get(outcome.variant.against or "")
    if against is not None:
        short = "Basic-SplitK" if "split-K" in against.variant.name else "Basic-DP"
        lines.append(f"  Speedup vs {short}: {against.us / outcome.us:.3f}")
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def parsed(tile: str) -> tuple[int, int, int]:
    """``128x128x32`` as numbers."""
    try:
        m, n, k = (int(number) for number in tile.split("x"))
    except ValueError:
        raise ArgumentError(f"--tile {tile!r}: a tile is written MxNxK, for instance 128x128x32") from None
    return m, n, k
