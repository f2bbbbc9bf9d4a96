"""Printing ``printf`` and ``assert``.

A format may use Python's ``{}`` (also ``{:.3f}``, ``{:d}``, ``{:x}``) or C's ``%d``; either way the length
modifier follows the argument's type, and small floats are widened. ``{}`` prints a whole vector in brackets.
"""

from __future__ import annotations

import re

from tilewright.cuda.emitter import KernelEmitter, prints
from tilewright.cuda.vectors import materialise
from tilewright.errors import CompileError
from tilewright.ir.core import Op, Value
from tilewright.ir.types import PtrType, ScalarType, VecType, element_of

FIELD = re.compile(
    r"\{\{|\}\}|\{(?:\w*)(?::(?P<spec>[^{}]*))?\}|%%"
    r"|%(?P<flags>[-+ #0-9.*]*)(?:hh|h|ll|l|z|j)?(?P<kind>[diouxXeEfFgGaAcps])"
)


@prints("printf")
def _printf(e: KernelEmitter, op: Op) -> None:
    text, arguments = _format(e, op)
    e.line(f"printf({', '.join([_quoted(text), *arguments])});")


def _format(e: KernelEmitter, op: Op) -> tuple[str, list[str]]:
    """The format as C has it, and the arguments: each field takes the next value, whose type decides its conversion."""
    # The simulator prints by the same rules (``sim/output.py``).
    waiting = list(op.operands)
    arguments: list[str] = []

    def field(match: re.Match[str]) -> str:
        whole = match.group(0)
        if whole in ("{{", "}}"):
            return whole[0]
        if whole == "%%":
            return whole
        if not waiting:
            raise CompileError(
                f"printf: {op.attrs['format']!r} has more fields than its {len(op.operands)} values{_at(op)}"
            )
        value = waiting.pop(0)
        if whole.startswith("%"):
            return _one(e, value, match.group("flags"), match.group("kind"), arguments)
        spec = match.group("spec") or ""
        kind = spec[-1] if spec[-1:].isalpha() else ""
        return _one(e, value, spec[: len(spec) - len(kind)], kind, arguments)

    text = FIELD.sub(field, op.attrs["format"])
    if waiting:
        raise CompileError(f"printf: {op.attrs['format']!r} has no field for {len(waiting)} of its values{_at(op)}")
    return text, arguments


def _one(e: KernelEmitter, value: Value, flags: str, kind: str, arguments: list[str]) -> str:
    """The C conversion of one value; its arguments are appended."""
    if isinstance(value.type, VecType):
        name = materialise(e, value)
        fields = [_scalar(value.type.elem, f"{name}[{i}]", flags, kind, arguments) for i in range(value.type.n)]
        return "[" + ", ".join(fields) + "]"
    if isinstance(value.type, PtrType):
        arguments.append(f"static_cast<const void*>({e.expr(value).text})")
        return "%p"
    return _scalar(element_of(value.type), e.expr(value).text, flags, kind, arguments)


def _scalar(elem: ScalarType, text: str, flags: str, kind: str, arguments: list[str]) -> str:
    # Variable arguments have no types: each is cast to exactly what its conversion reads.
    if elem.is_float:
        arguments.append(
            text if elem.width == 64 else f"double({text})" if elem.width == 32 else f"double(float({text}))"
        )
        return f"%{flags}{kind if kind and kind in 'eEfFgGaA' else 'f'}"
    if kind and kind in "eEfFgGaA":
        arguments.append(f"double({text})")
        return f"%{flags}{kind}"
    if kind == "c":
        arguments.append(f"int({text})")
        return f"%{flags}c"
    unsigned = elem.kind == "uint" or kind in ("o", "u", "x", "X")
    kind = kind if kind and kind in "ouxX" else "u" if unsigned else "d"
    if elem.width == 64:
        arguments.append(f"(unsigned long long)({text})" if unsigned else f"(long long)({text})")
        return f"%{flags}ll{kind}"
    # Narrow integers are widened to the 32 bits that their conversion reads.
    exact = elem.width == 32 and unsigned == (elem.kind == "uint")
    arguments.append(text if exact else f"uint32_t({text})" if unsigned else f"int({text})")
    return f"%{flags}{kind}"


@prints("assert")
def _assert(e: KernelEmitter, op: Op) -> None:
    if op.attrs.get("simulated"):  # a condition of the layout algebra, which only the simulator checks
        return
    file, line = (op.loc.file, op.loc.line) if op.loc else ("?", 0)
    message = op.attrs.get("message") or "the assertion"
    condition = e.expr(op.operands[0]).text
    e.line(f"tw::check({condition}, {_quoted(message)}, {_quoted(file)}, {line}, {_quoted(e.function.name)});")


def _quoted(text: str) -> str:
    """A C string literal.

    >>> print(_quoted('a "b"\\n'))
    "a \\"b\\"\\n"
    """
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return (
        '"' + "".join(escapes.get(c, c) if c.isprintable() or c in escapes else f"\\{ord(c):03o}" for c in text) + '"'
    )


def _at(op: Op) -> str:
    return f" at {op.loc}" if op.loc else ""
