"""Reading PTX: the statements of an ``asm`` text (PTX ISA, "Syntax").

``{ .reg .b32 t; add.s32 t, $1, 1; @p mov.b32 $0, t; }`` gives a declaration and two instructions. Braces open a
scope for names; inside an operand list they make a vector.
"""

from __future__ import annotations

import functools
import re
import struct
from dataclasses import dataclass

from tilewright.errors import ConstraintError
from tilewright.ir.types import ScalarType

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


def parts(operand: Operand) -> tuple[str, ...]:
    """The parts of a vector, or the one operand.

    >>> parts(("a", "b")), parts("a")
    (('a', 'b'), ('a',))
    """
    return operand if isinstance(operand, tuple) else (operand,)


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"[\w$%]+\s*:(?!:)")
_GUARD = re.compile(r"@(!?)\s*([\w$%]+)\s*(.*)", re.DOTALL)
_DECLARED = re.compile(r"([\w$%]+)(?:<(\d+)>)?")
_REGISTER = re.compile(r"[A-Za-z_$%][\w$%]*")
_HEX_FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")
_INTEGER = re.compile(r"(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?")
_DECIMAL = re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")


@functools.lru_cache(1024)
def parse(text: str) -> Program:
    """The program of an ``asm`` text. Raises ConstraintError where it is not a sequence of PTX statements."""
    statements: list[Statement] = []
    registers: dict[str, str] = {}
    scopes: list[dict[str, str]] = [{}]  # of the braces that are open: the names of registers, and what they are here
    for piece in _pieces(_COMMENT.sub(" ", text)):
        if piece == "{":
            scopes.append({})
        elif piece == "}":
            scopes[1:] = scopes[1:-1]
        elif piece.startswith(".reg"):
            _declare(piece, registers, scopes)
        elif piece.startswith("."):
            raise ConstraintError(f"inline PTX: the simulator does not know the directive {piece.split()[0]!r}")
        elif _LABEL.match(piece):
            raise ConstraintError(f"inline PTX: the simulator follows no labels ({piece.split()[0]!r})")
        else:
            statements.append(_renamed(_statement(piece), scopes))
    return Program(tuple(statements), registers)


def _pieces(text: str) -> list[str]:
    """The text cut at semicolons; the braces that open and close scopes stand alone."""
    pieces, piece, depth = [], "", 0
    for c in text:
        if c == "{" and not piece.strip() or c == "}" and not depth and not piece.strip():
            pieces.append(c)
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


def _declare(piece: str, registers: dict[str, str], scopes: list[dict[str, str]]) -> None:
    """A register that hides one of the same name around its scope gets a name of its own."""
    kind, _, names = piece.removeprefix(".reg").strip().partition(" ")
    for name, count in _DECLARED.findall(names):
        for i in range(int(count)) if count else ("",):
            here = own = f"{name}{i}"
            while own in registers and any(here in scope for scope in scopes[:-1]):
                own += "_"
            scopes[-1][here] = own
            registers[own] = kind.removeprefix(".")


def _renamed(statement: Statement, scopes: list[dict[str, str]]) -> Statement:
    """A statement with the registers' own names in place of those of its scope."""
    own = {here: name for scope in scopes for here, name in scope.items()}
    if all(here == name for here, name in own.items()):
        return statement

    def rename(text: str) -> str:
        return _REGISTER.sub(lambda match: own.get(match[0], match[0]), text)

    operands = [rename(o) if isinstance(o, str) else tuple(map(rename, o)) for o in statement.operands]
    return Statement(statement.opcode, tuple(operands), rename(statement.guard))


def immediate(token: str, kind: ScalarType) -> int | float | None:
    """The number that a constant in a text is as an operand of type ``kind``: of integers and bits its bits, as
    ``0f3F800000`` is 1.0 for ``.f32`` and 0x3F800000 for ``.b32``. None where it is no constant of that type.

    >>> from tilewright.ir.types import F32, U32
    >>> immediate("0f3F800000", F32), hex(immediate("0f3F800000", U32)), immediate("-1", U32), immediate("012U", U32)
    (1.0, '0x3f800000', 4294967295, 10)
    """
    if match := _HEX_FLOAT.fullmatch(token):
        size = 4 if match[1] else 8
        bits = int(match[1] or match[2], 16)
        if kind.is_float:
            return float(struct.unpack({4: "<f", 8: "<d"}[size], bits.to_bytes(size, "little"))[0])
        return bits if kind.bytes >= size else None
    if match := _INTEGER.fullmatch(token):
        sign, digits = (-1 if match[1] else 1), match[2]
        octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        if octal and not set(digits) <= set("01234567"):
            return None
        number = sign * int(digits, 8 if octal else 0)
        return float(number) if kind.is_float else number & ((1 << kind.width) - 1)
    return float(token) if kind.is_float and _DECIMAL.fullmatch(token) else None


def _statement(piece: str) -> Statement:
    guard, rest = "", piece
    if match := _GUARD.match(piece):
        guard, rest = match.group(1) + match.group(2), match.group(3)
    opcode, *others = rest.split(None, 1)
    return Statement(opcode, _operands(others[0]) if others else (), guard)


def _operands(text: str) -> tuple[Operand, ...]:
    operands: list[Operand] = []
    for part in re.findall(r"\{[^}]*\}|[^,{}]+", text):
        part = part.strip()
        if part.startswith("{"):
            operands.append(tuple(p.strip() for p in part[1:-1].split(",")))
        elif "|" in part:
            operands.append(tuple(p.strip() for p in part.split("|")))
        elif part:
            operands.append(part)
    return tuple(operands)
