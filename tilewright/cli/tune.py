"""``tilewright tune M N K``: the fastest way to multiply, measured and remembered."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def run(
    shape: tuple[int, int, int, int],
    dtype: str,
    out_dtype: str | None,
    a_major: str,
    b_major: str,
    candidates: int,
    seconds: float,
) -> None:
    """Tune, and print a table of what was found."""
    from tilewright.gemm import tune

    result = tune(
        shape, dtype, out_dtype=out_dtype, a_major=a_major, b_major=b_major, candidates=candidates, seconds=seconds
    )
    m, n, k, batch = result.shape
    flops = 2.0 * m * n * k * batch
    table = Table("", "way", "us", "TFLOP/s", title=f"{m} x {n} x {k}{f' x {batch}' if batch > 1 else ''} {dtype}")
    for name, way, us in (
        ("fastest", result.best, result.us),
        ("the model's choice", result.default, result.default_us),
    ):
        table.add_row(name, str(way), f"{us:.2f}", f"{flops / us * 1e-6:.1f}")
    console = Console()
    console.print(table)
    time_up = "" if result.complete else "; the time was up before all were measured"
    console.print(f"{result.measured} ways measured, {len(result.failed)} failed{time_up}", highlight=False)
    for failed, reason in result.failed.items():
        console.print(f"  {failed}: {reason}", highlight=False, markup=False)
    console.print(f"remembered in {result.file}", highlight=False, markup=False, soft_wrap=True)
