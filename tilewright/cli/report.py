"""The report of a GEMM as a table, and its check against float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tilewright.cli.npy import Array

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.gemm import GemmReport


@dataclass(frozen=True)
class Check:
    """Distance from the float64 product; ``ratio`` is the worst error over the error that rounding explains."""

    worst: float
    ratio: float
    nan: int = 0
    """Elements that are NaN in both, of which there is no error."""

    @property
    def passed(self) -> bool:
        return self.ratio <= 1.0

    def __str__(self) -> str:
        text = f"largest error {self.worst:.3g}, {self.ratio:.2g} of what rounding allows"
        return text + (f"; {self.nan} elements are NaN, as in float64" if self.nan else "")


def compare(d: Array, a: Array, b: Array, c: Array | None, alpha: float, beta: float) -> Check:
    """Compare ``d`` with alpha·a·b + beta·c in float64.

    Allowed is the a-priori bound of a float32 accumulation of k products in any order, plus one rounding to the dtype
    of ``d``; float32 operands may have been rounded to TF32 (11 significant bits) first, as tensor cores do.
    """
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    # As in BLAS an alpha of 0 leaves the product out, NaN and infinity in it, too.
    exact = alpha * (a64 @ b64) if alpha else np.zeros(d.shape)
    magnitude = abs(alpha) * (np.abs(a64) @ np.abs(b64)) if alpha else np.zeros(d.shape)
    if c is not None and beta:
        scaled = beta * c.astype(np.float64)
        exact += scaled
        magnitude += np.abs(scaled)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = exact.astype(d.dtype).astype(np.float64)
        got = d.astype(np.float64)
        unit = 2.0**-24 * (a.shape[1] + 3)
        if a.dtype == np.float32:
            unit += 2.0**-10
        allowed = _unit_roundoff(d.dtype) * np.abs(exact) + unit * magnitude + _smallest(d.dtype)
        nan = np.isnan(got) & np.isnan(rounded)
        same = (got == rounded) | nan
        error = np.where(same, 0.0, np.abs(got - exact))
        error = np.where(np.isnan(error), np.inf, error)
        ratio = np.where(error > 0, error / allowed, 0.0)
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
    return Check(float(error.max(initial=0.0)), float(ratio.max(initial=0.0)), int(nan.sum()))


def print_report(
    console: Console,
    report: GemmReport,
    shape: tuple[int, int, int],
    dtype: np.dtype[Any],
    check: Check | None,
    instructions: bool = True,
) -> None:
    """Print the table: kernel, machine, tiles, grid, ``instructions``, bank conflicts, time, error."""
    from rich.table import Table

    table = Table(title=f"D = alpha·A·B + beta·C, m n k = {' '.join(map(str, shape))}, {dtype}", title_justify="left")
    table.add_column("what")
    table.add_column("value", justify="right")
    table.add_row("kernel", report.kernel)
    table.add_row("machine", report.machine)
    table.add_row("tile (m, n, k)", " x ".join(map(str, report.tile)))
    table.add_row("decomposition", report.decomposition)
    table.add_row("thread blocks", " x ".join(map(str, report.grid)))
    if report.instructions and instructions:
        table.add_section()
        table.add_row("instructions, one for each warp that executes it:", "")
        for kind, count in instruction_rows(report.instructions):
            table.add_row(f"  {kind}", f"{count:,}")
        table.add_section()
    if report.bank_conflicts is not None:
        table.add_row("shared-memory bank conflicts", f"{report.bank_conflicts:,}")
    table.add_row("time", _duration(report.seconds))
    if report.seconds > 0 and all(shape):
        table.add_row("rate", _rate(2.0 * shape[0] * shape[1] * shape[2] / report.seconds))
    if check is not None:
        table.add_row("largest error (float64)", f"{check.worst:.3g}")
        table.add_row("error / rounding bound", f"{check.ratio:.2g}")
        if check.nan:
            table.add_row("elements that are NaN, as in float64", f"{check.nan:,}")
    console.print(table)


def instruction_rows(counts: dict[str, int]) -> list[tuple[str, int]]:
    """The counts of the machine's instructions, most frequent first, and the sum of the scalar work between them.

    >>> instruction_rows({"add": 5, "ldmatrix.x4": 2, "store": 1, "mul": 4})
    [('ldmatrix.x4', 2), ('store', 1), ('scalar: indices, addresses, predicates, control', 9)]
    """
    from tilewright.ir.ops import RULES

    scalar = {kind: n for kind, n in counts.items() if kind in RULES and kind not in ("load", "store")}
    rows = sorted(((kind, n) for kind, n in counts.items() if kind not in scalar), key=lambda row: -row[1])
    if scalar:
        rows.append(("scalar: indices, addresses, predicates, control", sum(scalar.values())))
    return rows


def _unit_roundoff(dtype: np.dtype[Any]) -> float:
    return 0.0 if dtype.kind in "iu" else float(ml_dtypes.finfo(dtype).eps) / 2


def _smallest(dtype: np.dtype[Any]) -> float:
    """The error that rounding may add near zero: the spacing of subnormals; for integers nothing, but a safe
    divisor."""
    return 2.0**-1000 if dtype.kind in "iu" else max(float(ml_dtypes.finfo(dtype).smallest_subnormal), 2.0**-149)


def _duration(seconds: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def _rate(flops: float) -> str:
    for unit, name in ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s")):
        if flops >= unit:
            return f"{flops / unit:.3g} {name}"
    return f"{flops:.3g} FLOP/s"
