"""``tilewright demo``: a product, a race that the checker finds, a timeline, and the picture of a swizzled tile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tilewright import sim
from tilewright.cli.gemm import ProgressBar, where_to_run
from tilewright.cli.report import compare, print_report
from tilewright.errors import ArgumentError, SimulationError
from tilewright.layout import ComposedLayout, Layout, Swizzle
from tilewright.viz import bank_figure, timeline

SHAPE = (512, 512, 512)
SEED = 2024
COLUMN = Layout((8, 8), (1, 8))  # eight threads, each with the 16-byte vector of its row
TILE = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))


def run(machine: str, pictures: Path, verbose: bool = False) -> None:
    """Print and draw into the folder ``pictures``; ``verbose``: with the instructions that the product executed.

    Drawing comes first, so that a folder that cannot be written is known before anything is computed.
    """
    console = Console()
    try:
        drawn = draw(pictures)
    except ArgumentError as error:
        raise ArgumentError(f"{error}; work in a folder of yours, or name one with --pictures") from None
    console.rule("a product, checked against float64", align="left")
    multiply(console, machine, verbose)
    console.rule("a kernel without its barrier, checked (tilewright/cli/demo_race.py)", align="left")
    find_the_race(console)
    console.rule("pictures", align="left")
    for path in [*drawn, *draw_timeline(pictures)]:
        console.print(path, markup=False, highlight=False, soft_wrap=True)


def draw(folder: Path) -> list[Path]:
    """Draw an 8 x 64 half-precision tile without and with its swizzle, a cell for each 16-byte vector."""
    return save(bank_figure(TILE, 16, vector=8, access=COLUMN), folder / "swizzled_tile")


def save(figure: Any, path: Path) -> list[Path]:
    """The figure as SVG and, where Pillow is installed, as PNG."""
    drawn = [path.with_suffix(".svg")]
    figure.save(drawn[0])
    try:
        figure.save(path.with_suffix(".png"))
        drawn.append(path.with_suffix(".png"))
    except ArgumentError:
        pass  # PNG needs Pillow; the SVG has it all
    return drawn


def multiply(console: Console, machine: str, verbose: bool) -> None:
    from tilewright import gemm as library

    random, (m, n, k) = np.random.default_rng(SEED), SHAPE
    a = random.standard_normal((m, k)).astype(np.float16)
    b = random.standard_normal((k, n)).astype(np.float16)
    with ProgressBar(f"multiplying {m} x {n} x {k}") as progress:
        report = library.gemm(a, b, machine=where_to_run(machine), progress=progress)
    check = compare(np.asarray(report.d), a, b, None, 1.0, 0.0)
    print_report(console, report, (m, n, k), a.dtype, check, instructions=verbose)
    if not check.passed:
        raise SimulationError(f"{report.kernel} is wrong for {m} x {n} x {k}: {check}")


def find_the_race(console: Console) -> None:
    """The findings of the default checks in a kernel that lacks a barrier; always in the simulator."""
    from tilewright.cli import demo_race
    from tilewright.cli.check import print_report
    from tilewright.sim.checks import collecting

    with sim.options(check="default"), collecting() as report:
        demo_race.run()
    print_report(console, report, f"{Path(demo_race.__file__).parent}{os.sep}")


def draw_timeline(folder: Path) -> list[Path]:
    """One block of the warp-specialised Hopper kernel in the time of the simulator's model: TMA, wgmma, waits."""
    from tilewright.gemm import gemm

    with sim.trace() as trace:
        gemm(np.ones((128, 512), np.float16), np.ones((512, 128), np.float16), kernel="hopper_f16", machine="cpu")
    return save(timeline(trace, blocks=(0,), title="the Hopper kernel: one block"), folder / "hopper_timeline")
