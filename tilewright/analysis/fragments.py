"""The fragments of a staged kernel: what registers they ask for, and which of them only hold a copy of another.

A fragment made like another partition and filled by a register-to-register copy gives the right values in the right
order, but asks for its registers a second time where ``thr_copy.retile`` would only rename the first ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tilewright.analysis.text import many
from tilewright.ir.core import Function, Location, Op, Value
from tilewright.ir.types import FragType
from tilewright.reports import Report, Row


@dataclass(frozen=True)
class Fragment:
    """``registers`` are 32-bit registers of one thread; ``name`` is the user's variable where it is known."""

    name: str
    type: FragType
    registers: int
    where: Location | None

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True)
class FragmentCopy:
    """``target`` holds only what was copied from ``source``, ``reordered`` or element for element."""

    source: Fragment
    target: Fragment
    reordered: bool
    where: Location | None

    @property
    def extra_registers(self) -> int:
        return self.target.registers

    def __str__(self) -> str:
        fix = "retile the first (thr_copy.retile)" if self.reordered else "use the first itself"
        lines = f" (line {self.where.line})" if self.where is not None else ""
        return (
            f"{many(self.extra_registers, 'extra register')}: {self.target.name} is a copy of "
            f"{self.source.name}{lines}: {fix}"
        )


@dataclass(frozen=True)
class FragmentReport(Report):
    """The fragments of ``kernel`` in program order, and the copies among them. What is named here is what the program
    asks for: the compiler may still merge fragments whose live ranges do not overlap."""

    kernel: str
    fragments: tuple[Fragment, ...]
    copies: tuple[FragmentCopy, ...]

    @property
    def registers(self) -> int:
        return sum(f.registers for f in self.fragments)

    @property
    def extra_registers(self) -> int:
        """Registers of fragments that are copies of others."""
        return sum(c.extra_registers for c in self.copies)

    def rows(self) -> list[Row]:
        rows = [(str(f), many(f.registers, "register") + _at(f.where)) for f in self.fragments]
        rows.append(("all fragments", many(self.registers, "register")))
        return rows + [("warning", str(c)) for c in self.copies]

    def heading(self) -> str:
        return f"fragments of {self.kernel}"


def _at(where: Location | None) -> str:
    return "" if where is None else f", {Path(where.file).name}:{where.line}"


def analyse_fragments(function: Function) -> FragmentReport:
    """The fragments of a staged kernel (one of ``cute.compile(...).kernels``).

    A fragment counts as a copy of another when they have equally many elements of one width, each of its elements is
    written exactly once and from the other, and the other is not written again while the copy is still read.

    >>> from tilewright import analysis
    >>> from tilewright.gemm import kernels, stage
    >>> report = analysis.analyse_fragments(stage(kernels()["tensorop_f16"].config))
    >>> [(fragment.name, str(fragment.type), fragment.registers) for fragment in report.fragments[:1]]
    [('acc', 'frag<f32, 128>', 128)]
    """
    ops = list(function.walk())
    fragments = {op.result: _fragment(op, n) for n, op in enumerate(o for o in ops if o.opcode == "frag.alloc")}
    uses = {value: list(_uses(value, ops)) for value in fragments}
    order = {id(op): position for position, op in enumerate(ops)}
    copies = []
    for target in fragments:
        copied = _copy_into(target, uses, order)
        if copied is not None:
            source, reordered = copied
            where = next(op.loc for _, op, writes in uses[target] if writes)
            copies.append(FragmentCopy(fragments[source], fragments[target], reordered, where))
    return FragmentReport(function.name, tuple(fragments.values()), tuple(copies))


def _fragment(op: Op, number: int) -> Fragment:
    kind = op.result.type
    assert isinstance(kind, FragType)
    return Fragment(op.result.hint or f"fragment {number}", kind, -(-kind.n * kind.elem.bytes // 4), op.loc)


Use = tuple[int, Op, bool]  # the op's position in program order, and whether it writes


def _uses(value: Value, ops: list[Op]) -> Iterator[Use]:
    for position, op in enumerate(ops):
        for index, operand in enumerate(op.operands):
            if operand is value:
                yield position, op, _writes(op, index)


def _writes(op: Op, operand: int) -> bool:
    """Whether ``op`` writes to the fragment that is its operand number ``operand``; in doubt, yes."""
    if op.opcode == "frag.load":
        return False
    if op.opcode == "call" and "registers" in op.attrs and "store" in op.attrs:
        return not op.attrs["store"]
    if op.opcode == "call" and "d_layout" in op.attrs:
        return operand == 0
    return True


class FragmentElement(NamedTuple):
    """An element of a fragment, as read by ``load``."""

    fragment: Value
    offset: int
    load: Op


def _origins(value: Value) -> list[FragmentElement]:
    """The fragment elements that a scalar or vector consists of, unchanged; empty if it is anything else."""
    op = value.op
    if op is None:
        return []
    if op.opcode == "frag.load" and len(op.operands) == 1:
        return [FragmentElement(op.operands[0], offset, op) for offset in op.attrs["offsets"]]
    if op.opcode == "bitcast" and _elements(op.operands[0]) == _elements(value):
        return _origins(op.operands[0])
    if op.opcode in ("vec.build", "vec.concat"):
        parts = [_origins(part) for part in op.operands]
        return [place for part in parts for place in part] if all(parts) else []
    if op.opcode in ("vec.shuffle", "vec.extract"):
        whole = _origins(op.operands[0])
        chosen = op.attrs["indices"] if op.opcode == "vec.shuffle" else [op.attrs["index"]]
        return [whole[i] for i in chosen] if whole else []
    return []


def _elements(value: Value) -> int:
    return getattr(value.type, "n", 1)


def _moves(uses: list[Use]) -> list[tuple[int, FragmentElement]] | None:
    """(element written, where it comes from) for a fragment that is only written by plain copies of registers."""
    moves: list[tuple[int, FragmentElement]] = []
    for _, op, writes in uses:
        if not writes:
            continue
        places = _origins(op.operands[1]) if op.opcode == "frag.store" and len(op.operands) == 2 else []
        if not places:
            return None
        moves += zip(op.attrs["offsets"], places, strict=True)
    return moves


def _copy_into(target: Value, uses: dict[Value, list[Use]], order: dict[int, int]) -> tuple[Value, bool] | None:
    """(the fragment that ``target`` is a copy of, whether the order differs), or None."""
    moves = _moves(uses[target])
    sources = {place.fragment for _, place in moves or ()}
    if not moves or len(sources) != 1:
        return None
    source = sources.pop()
    kind, other = target.type, source.type
    assert isinstance(kind, FragType) and isinstance(other, FragType)
    whole = sorted(at for at, _ in moves) == sorted(place.offset for _, place in moves) == list(range(kind.n))
    if (other.n, other.elem.bytes) != (kind.n, kind.elem.bytes) or not whole:
        return None
    written = max(position for position, _, writes in uses[target] if writes)
    reads = [position for position, _, writes in uses[target] if not writes]
    if not reads or min(reads) < written:
        return None  # it is never read, or a loop carries it around
    taken = min(order[id(place.load)] for _, place in moves)
    if any(taken < position < max(reads) for position, _, writes in uses[source] if writes):
        return None  # the source changes while the copy keeps its old value
    return source, any(at != place.offset for at, place in moves)
