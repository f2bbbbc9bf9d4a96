"""Reading PTX: the statements of an ``asm`` text (PTX ISA, "Syntax").

``{ .reg .b32 t; add.s32 t, $1, 1; @p mov.b32 $0, t; }`` gives a declaration and two instructions. The outer braces only
open a scope for names and are dropped; inside an operand list braces make a vector.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from tilewright.errors import ConstraintError

Operand = str | tuple[str, ...]
"""One operand's text; a vector ``{a, b}`` or a pair ``d|p`` is the tuple of its parts."""


@dataclass(frozen=True)
class Statement:
    """``@guard opcode operands``; a ``guard`` of ``!p`` acts where p is false."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: str = ""

    def __str__(self) -> str:
        operands = [o if isinstance(o, str) else f"{{{', '.join(o)}}}" for o in self.operands]
        return f"{self.opcode} {', '.join(operands)}"


@dataclass(frozen=True)
class Program:
    """The instructions in order, and the type (``b32``, ``pred``, ...) of each register that is declared."""

    statements: tuple[Statement, ...]
    registers: dict[str, str]


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"[\w$%]+\s*:(?!:)")
_GUARD = re.compile(r"@(!?)\s*([\w$%]+)\s*(.*)", re.DOTALL)
_DECLARED = re.compile(r"([\w$%]+)(?:<(\d+)>)?")


@functools.lru_cache(1024)
def parse(text: str) -> Program:
    """The program of an ``asm`` text. Raises ConstraintError where it is not a sequence of PTX statements."""
    statements: list[Statement] = []
    registers: dict[str, str] = {}
    for piece in _pieces(_COMMENT.sub(" ", text)):
        if piece.startswith(".reg"):
            _declare(piece, registers)
        elif piece.startswith("."):
            raise ConstraintError(f"inline PTX: the simulator does not know the directive {piece.split()[0]!r}")
        elif _LABEL.match(piece):
            raise ConstraintError(f"inline PTX: the simulator follows no labels ({piece.split()[0]!r})")
        else:
            statements.append(_statement(piece))
    return Program(tuple(statements), registers)


def _pieces(text: str) -> list[str]:
    """The text cut at semicolons, without the braces that open and close scopes."""
    pieces, piece, depth = [], "", 0
    for c in text:
        if c == "{" and not piece.strip() or c == "}" and not depth and not piece.strip():
            continue
        depth += (c == "{") - (c == "}")
        if c == ";" and not depth:
            pieces.append(piece.strip())
            piece = ""
        else:
            piece += c
    if piece.strip():
        pieces.append(piece.strip())
    return [p for p in pieces if p]


def _declare(piece: str, registers: dict[str, str]) -> None:
    kind, _, names = piece.removeprefix(".reg").strip().partition(" ")
    for name, count in _DECLARED.findall(names):
        for i in range(int(count)) if count else ("",):
            registers[f"{name}{i}"] = kind.removeprefix(".")


def _statement(piece: str) -> Statement:
    guard, rest = "", piece
    if found := _GUARD.match(piece):
        guard, rest = found.group(1) + found.group(2), found.group(3)
    opcode, *others = rest.split(None, 1)
    return Statement(opcode, _operands(others[0]) if others else (), guard)


def _operands(text: str) -> tuple[Operand, ...]:
    found: list[Operand] = []
    for part in re.findall(r"\{[^}]*\}|[^,{}]+", text):
        part = part.strip()
        if part.startswith("{"):
            found.append(tuple(p.strip() for p in part[1:-1].split(",")))
        elif "|" in part:
            found.append(tuple(p.strip() for p in part.split("|")))
        elif part:
            found.append(part)
    return tuple(found)
