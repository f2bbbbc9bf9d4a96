"""Places in a kernel by Python line: where a line begins among its ops."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tilewright.errors import ArgumentError
from tilewright.ir.core import Block, Function, Location, Op
from tilewright.sim.lowering import lower
from tilewright.sim.program import Program


class PlacePattern(NamedTuple):
    """``file``: the end of a path, or empty: the kernel's own; ``kernel``: its name, or empty: any; ``line``: 0 for
    any."""

    file: str
    kernel: str
    line: int

    @classmethod
    def of(cls, text: str | int) -> PlacePattern:
        """From ``"file.py:12"``, ``"kernel:12"``, ``"kernel"`` (its first line) or ``12`` (a line of the kernel's
        file)."""
        if isinstance(text, int) and not isinstance(text, bool):
            return cls("", "", text)
        head, _, tail = str(text).rpartition(":")
        if not head and str(text).isidentifier():
            return cls("", str(text), 0)
        if not head or not tail.isdigit():
            raise ArgumentError(f"{text!r} is not a place: give 'file.py:12', 'kernel:12', 'kernel' or a line's number")
        return cls(head, "", int(tail)) if head.endswith(".py") else cls("", head, int(tail))

    def in_kernel(self, function: Function) -> bool:
        """Whether it may be in this kernel."""
        if self.kernel and function.name != self.kernel:
            return False
        files = {op.loc.file for op in function.walk() if op.loc is not None}
        return any(self.in_file(file, function) for file in files)

    def in_file(self, file: str, function: Function) -> bool:
        pattern = self.file or str(function.attrs.get("source") or "")
        return file == pattern or Path(file).match(pattern) if pattern else True

    def at(self, op: Op, function: Function) -> bool:
        if op.loc is None or not self.in_file(op.loc.file, function):
            return False
        return self.line in (0, op.loc.line)

    def check(self, function: Function) -> None:
        """Refuse a line of this kernel's that has no code."""
        lines = sorted({op.loc.line for op in function.walk() if op.loc and self.in_file(op.loc.file, function)})
        if self.line and self.line not in lines:
            near = sorted(lines, key=lambda line: abs(line - self.line))[:3]
            raise ArgumentError(
                f"kernel {function.name!r} does nothing at line {self.line} when it runs; the nearest lines with code "
                f"are {', '.join(map(str, sorted(near)))}"
            )


def beginnings(function: Function) -> set[int]:
    """The ops (by id) with which a line begins: those before them in their block are of another line."""
    lines: set[int] = set()

    def walk(block: Block) -> None:
        before: Location | None = None
        for op in block.ops:
            # These end a region and carry the line of its loop or branch: no line of the user begins there.
            if op.opcode not in ("yield", "condition"):
                if op.loc is not None and op.loc != before:
                    lines.add(id(op))
                before = op.loc
            for region in op.regions:
                walk(region)

    walk(function.body)
    return lines


def program_by_lines(program: Program) -> Program:
    """The kernel lowered with a stop wherever a line begins."""
    if program.by_lines is None:
        starts = beginnings(program.function)
        program.by_lines = lower(program.function, stops=lambda op: id(op) in starts)
    return program.by_lines
