"""``tilewright gemm``: D = alpha·A·B + beta·C on files."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType

import numpy as np
from rich.console import Console

from tilewright.cli.npy import Array, pending_output, read_array
from tilewright.cli.report import Check, compare, print_report
from tilewright.errors import ArgumentError, MachineError, SimulationError


def run(
    a_path: Path,
    b_path: Path,
    output: Path | None,
    *,
    c_path: Path | None,
    alpha: float,
    beta: float | None,
    kernel: str | None,
    decomposition: str,
    machine: str,
    check: bool,
) -> None:
    """Read, multiply, check and write if asked, and print a table of what ran."""
    if output is None and not check:
        raise ArgumentError("the result would be dropped: give -o D.npy to write it, or --check to compare it")
    if beta and c_path is None:
        raise ArgumentError(f"--beta {beta:g} needs a matrix to multiply: give --c C.npy")
    beta = float(c_path is not None) if beta is None else beta
    a, b = read_array(a_path), read_array(b_path)
    c = None if c_path is None else read_array(c_path)
    _check_shapes((a_path, a), (b_path, b), None if c_path is None or c is None else (c_path, c))

    from tilewright import gemm as library

    where = where_to_run(machine)
    with nullcontext() if output is None else pending_output(output) as write:
        with ProgressBar("simulating") as progress:
            report = library.gemm(
                a,
                b,
                c,
                alpha=alpha,
                beta=beta,
                kernel=kernel,
                decomposition=decomposition,
                machine=where,
                progress=progress,
            )
        verdict: Check | None = compare(report.d, a, b, c, alpha, beta) if check else None
        if verdict is not None and not verdict.passed:
            unwritten = "" if output is None else f"; {output} was not written"
            raise SimulationError(f"{report.kernel} is wrong: {verdict}{unwritten}")
        if write is not None:
            write(np.asarray(report.d))
    print_report(Console(), report, (a.shape[0], b.shape[1], a.shape[1]), a.dtype, verdict)


def where_to_run(machine: str) -> str:
    """``machine`` itself, or for ``auto`` the GPU if one can be used, else the simulator."""
    if machine != "auto":
        return machine
    from tilewright.lang.launch.machine import machine_of

    try:
        machine_of("cuda")
    except MachineError:
        return "cpu"
    return "gpu"


def _check_shapes(a: tuple[Path, Array], b: tuple[Path, Array], c: tuple[Path, Array] | None) -> None:
    for path, array in filter(None, (a, b, c)):
        if array.ndim != 2:
            raise ArgumentError(f"{path} has the shape {array.shape}; a matrix (two dimensions) is needed")
    (m, k), (k_of_b, n) = a[1].shape, b[1].shape
    if k != k_of_b:
        raise ArgumentError(
            f"{a[0]} is {m} x {k} and {b[0]} is {k_of_b} x {n}: the inner dimensions {k} and {k_of_b} differ"
        )
    if c is not None and c[1].shape != (m, n):
        raise ArgumentError(f"{c[0]} is {c[1].shape[0]} x {c[1].shape[1]}; the product is {m} x {n}")


class ProgressBar:
    """A bar on the terminal for work that takes longer than a second; shorter work shows nothing.

    Call it with the fraction that is done.
    """

    PATIENCE = 1.0

    def __init__(self, title: str) -> None:
        from rich.progress import Progress

        console = Console(stderr=True)
        self._watched = console.is_terminal
        self._bar = Progress(console=console, transient=True)
        self._task = self._bar.add_task(title, total=1.0)
        self._shown = False
        self._start = time.monotonic()

    def __enter__(self) -> ProgressBar:
        return self

    def __call__(self, fraction: float) -> None:
        if self._watched and not self._shown and time.monotonic() - self._start > self.PATIENCE:
            self._bar.start()
            self._shown = True
        if self._shown:
            self._bar.update(self._task, completed=fraction)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shown:
            self._bar.stop()
