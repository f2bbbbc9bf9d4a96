"""The resources of a multiprocessor that a kernel takes: registers, spills, shared memory, threads, and how many blocks
fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tilewright.analysis.fragments import FragmentReport, analyse_fragments
from tilewright.analysis.residency import Occupancy, Waves, occupancy
from tilewright.errors import ArgumentError
from tilewright.ir.core import Function
from tilewright.reports import Report, Row


@dataclass(frozen=True)
class KernelReport(Report):
    """``registers`` and bytes of ``spills`` and ``stack`` a thread, bytes of shared memory a block (static and
    dynamic), as the compiler tells for ``arch``. ``fragments`` is None where only the compiled kernel is known."""

    kernel: str
    arch: str
    threads: int
    registers: int
    spills: int
    stack: int
    smem: int
    occupancy: Occupancy
    waves: Waves | None
    fragments: FragmentReport | None

    def rows(self) -> list[Row]:
        allowed = ", ".join(f"{name} {blocks}" for name, blocks in self.occupancy.limits.items())
        rows = [
            ("threads a block", str(self.threads)),
            ("registers a thread", str(self.registers)),
            ("bytes spilled a thread", str(self.spills)),
            ("bytes of stack a thread", str(self.stack)),
            ("shared memory a block", f"{self.smem:,} bytes"),
            ("occupancy", str(self.occupancy)),
            ("blocks allowed by", allowed),
        ]
        if self.waves is not None:
            rows.append(("waves", f"{self.waves}, on {self.waves.sms} multiprocessors"))
        return rows + (self.fragments.rows() if self.fragments is not None else [])

    def heading(self) -> str:
        return f"{self.kernel} for {self.arch}"


def analyse_kernel(
    kernel: Any,
    arch: str = "sm_90a",
    *,
    threads: int | None = None,
    smem: int | None = None,
    grid: int | tuple[int, ...] | None = None,
    sms: int | None = None,
) -> KernelReport:
    """Compile ``kernel`` for ``arch`` (no GPU is needed) and say what it takes and how many blocks of it fit.

    Args:
        kernel: a staged kernel (``ir.Function``), what ``cute.compile`` gives when it launches one kernel, or a
            compiled artifact (of its own architecture).
        threads: threads of a block, where the launch does not state them.
        smem: bytes of dynamic shared memory of the launch, where it asks for more than the kernel's allocations.
        grid: blocks of a launch, for its waves on ``sms`` multiprocessors (by default those of the usual device).

    Raises ArgumentError where something must be said, and what compiling raises.
    """
    function = _function_of(kernel)
    artifact = kernel if function is None else import_module("tilewright.cuda").compile(function, arch)
    if threads is None:
        threads = function.attrs.get("max_threads") if function is not None else None
    if threads is None:
        raise ArgumentError(f"analyse_kernel: the block size of {artifact.name} is not known: say threads=...")
    static = artifact.smem - artifact.dynamic_smem
    shared = static + max(artifact.dynamic_smem, smem or 0)
    resident = occupancy(threads, artifact.registers, shared, artifact.arch)
    blocks = math.prod(grid) if isinstance(grid, tuple) else grid
    return KernelReport(
        artifact.name,
        artifact.arch,
        threads,
        artifact.registers,
        artifact.spills,
        artifact.stack,
        shared,
        resident,
        None if blocks is None else resident.waves(blocks, sms),
        None if function is None else analyse_fragments(function),
    )


def _function_of(kernel: Any) -> Function | None:
    """The staged kernel behind ``kernel``; None for an artifact."""
    if isinstance(kernel, Function):
        return kernel
    staged = getattr(kernel, "kernels", None)
    if isinstance(staged, list):
        if len(staged) != 1:
            names = ", ".join(f.name for f in staged) or "none"
            raise ArgumentError(f"analyse_kernel takes one kernel, not {len(staged)} ({names}): pass .kernels[i]")
        return staged[0]
    if hasattr(kernel, "cubin") and hasattr(kernel, "dynamic_smem"):
        return None
    raise ArgumentError(f"analyse_kernel takes a staged or compiled kernel, not {kernel!r}")
