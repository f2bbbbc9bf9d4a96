"""``tilewright demo``: two products of normal random matrices, checked, and the picture of a swizzled tile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console

from tilewright.cli.gemm import ProgressBar, where_to_run
from tilewright.cli.report import compare, print_report
from tilewright.errors import ArgumentError, SimulationError
from tilewright.layout import ComposedLayout, Layout, Swizzle
from tilewright.viz import bank_figure

SHAPES = ((512, 512, 512), (500, 300, 200))
SEED = 2024
COLUMN = Layout((8, 8), (1, 8))  # eight threads, each with the 16-byte vector of its row
TILE = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))


def run(machine: str, pictures: Path) -> None:
    """Multiply, check against float64, print what ran, and draw into the folder ``pictures``.

    Drawn is first, so that a folder that cannot be written is known before anything is computed.
    """
    console = Console()
    try:
        drawn = draw(pictures)
    except ArgumentError as error:
        raise ArgumentError(f"{error}; work in a folder of yours, or name one with --pictures") from None
    for m, n, k in SHAPES:
        _multiply(console, m, n, k, machine)
    for path in drawn:
        console.print(f"drawn: {path}", markup=False, soft_wrap=True)


def draw(folder: Path) -> list[Path]:
    """Draw an 8 x 64 half-precision tile without and with its swizzle, a cell for each 16-byte vector.

    The PNG is left out where Pillow is missing.
    """
    figure = bank_figure(TILE, 16, vector=8, access=COLUMN)
    drawn = [folder / "swizzled_tile.svg"]
    figure.save(drawn[0])
    try:
        figure.save(folder / "swizzled_tile.png")
        drawn.append(folder / "swizzled_tile.png")
    except ArgumentError as error:
        Console(stderr=True).print(f"no PNG: {error}", style="dim", markup=False)
    return drawn


def _multiply(console: Console, m: int, n: int, k: int, machine: str) -> None:
    from tilewright import gemm as library

    random = np.random.default_rng(SEED)
    a = random.standard_normal((m, k)).astype(np.float16)
    b = random.standard_normal((k, n)).astype(np.float16)
    with ProgressBar(f"multiplying {m} x {n} x {k}") as progress:
        report = library.gemm(a, b, machine=where_to_run(machine), progress=progress)
    check = compare(np.asarray(report.d), a, b, None, 1.0, 0.0)
    print_report(console, report, (m, n, k), a.dtype, check)
    if not check.passed:
        raise SimulationError(f"{report.kernel} is wrong for {m} x {n} x {k}: {check}")
