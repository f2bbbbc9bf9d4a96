"""``tilewright analyse``: what a shipped kernel takes of a multiprocessor, and what its registers are for."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from tilewright.cli.show import entry_of, list_kernels


def run(kernel: str | None, arch: str | None, grid: int | None, sms: int | None) -> None:
    """Print the report of ``kernel``; without one, list them all."""
    if kernel is None:
        list_kernels()
        return
    from tilewright.analysis import analyse_kernel
    from tilewright.gemm import stage
    from tilewright.ir.target import architecture

    entry = entry_of(kernel)
    if arch is None:
        arch = max("sm_90a", entry.arch, key=lambda name: architecture(name).capability)
    report = analyse_kernel(stage(entry.config), arch, grid=grid, sms=sms)
    report = replace(report, kernel=kernel)  # the name that the user gave
    console = Console()
    console.print(report)
    if report.spills:
        console.print(f"{report.spills} bytes spilled: fewer values a thread, or more threads, would fit.")
