"""``tilewright show``: a shipped kernel as IR, CUDA C++, PTX, machine code, or the resources it takes."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from tilewright.errors import ArgumentError

if TYPE_CHECKING:
    from tilewright.gemm import KernelEntry

LEXERS = {"ir": "text", "cuda": "cuda", "ptx": "text", "sass": "text"}


def run(kernel: str | None, stages: Sequence[str], arch: str | None) -> None:
    """Print the stages of ``kernel`` that are asked for (CUDA C++ by default); without a kernel, list them all."""
    if kernel is None:
        list_kernels()
        return
    entry = entry_of(kernel)
    archs = [] if arch is None else [arch]
    printed = entry.printed(*archs)
    compiled = entry.compile(*archs) if set(stages) - set(printed) else None  # text alone needs no compiler
    for stage in stages or ["cuda"]:
        if stage == "resources":
            _resources(kernel, compiled)
        else:
            _source(printed[stage] if stage in printed else str(getattr(compiled, stage)), LEXERS[stage])


def entry_of(kernel: str) -> KernelEntry:
    """The kernel of that name. Raises ArgumentError with the names that there are."""
    from tilewright.gemm import kernels

    entries = kernels()
    if kernel not in entries:
        near = difflib.get_close_matches(kernel, entries, 1)
        hint = f"did you mean {near[0]}?" if near else f"the kernels are {', '.join(entries)}"
        raise ArgumentError(f"there is no kernel {kernel!r}; {hint}")
    return entries[kernel]


def list_kernels() -> None:
    """Print all kernels by name."""
    from rich.table import Table

    from tilewright.gemm import kernels

    table = Table("kernel", "what it is")
    for name, entry in kernels().items():
        table.add_row(name, entry.title)
    Console().print(table)


def _source(text: str, lexer: str) -> None:
    if sys.stdout.isatty():
        from rich.syntax import Syntax

        Console().print(Syntax(text, lexer, theme="ansi_light"))
    else:
        print(text)


def _resources(kernel: str, compiled: Any) -> None:
    from rich.table import Table

    table = Table("resource", "value", title=kernel, title_justify="left")
    table.add_row("registers a thread", str(compiled.registers))
    table.add_row("bytes spilled a thread", str(compiled.spills))
    Console().print(table)
