"""Formats of ``printf`` with structured values written out, and printing them: at once, or by an op of a kernel."""

from __future__ import annotations

import re
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import WIDE, element_of
from tilewright.lang.numbers.dtypes import type_text
from tilewright.lang.numbers.numeric import Boolean, Int32, Numeric, as_numeric
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.registers import Registers
from tilewright.lang.tensors.tensor import Tensor, TensorType
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.ints import RuntimeInt
from tilewright.layout.layout import Layout
from tilewright.layout.modes import rank, size
from tilewright.layout.tuples import is_static

_FIELD = re.compile(r"\{\{|\}\}|\{(\d*)(:[^{}]*)?\}")
_C_FIELD = re.compile(r"%%|%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j)?[diouxXeEfFgGcsp]")


def print_formatted(template: str, values: list[Any]) -> None:
    python = is_python(template)
    text, operands = _expand(template, values) if python else _expand_c(template, values)
    if not Builder.active():
        shown = [_number(v) for v in operands]
        print(text.format(*shown) if python else text % tuple(shown), end="")
        return
    Builder.current().emit("printf", [_operand(v) for v in operands], (), {"format": text})


def fields_of(template: str) -> list[re.Match[str]]:
    """Python's fields of a format."""
    return [match for match in _FIELD.finditer(template) if match.group(0) not in ("{{", "}}")]


def is_python(template: str) -> bool:
    """Whether the fields are Python's; a format without any field is taken as it is."""
    return bool(fields_of(template)) or not _C_FIELD.search(template)


def of_one_kind(template: str, count: int) -> str:
    """A format with fields of both kinds, as many as there are values, with Python's for C's: ``{} is %.2f``."""
    c_fields = [m for m in _C_FIELD.finditer(template) if m.group(0) != "%%"]
    if not c_fields or not (own := fields_of(template)) or len(own) + len(c_fields) != count:
        return template

    def field(match: re.Match[str]) -> str:
        whole = match.group(0)
        if whole == "%%":
            return "%"
        spec = re.sub(r"[-hlzj]", "", whole[1:])
        return f"{{:{spec[:-1]}{spec[-1].replace('i', 'd').replace('u', 'd')}}}" if spec[-1] not in "sp" else "{}"

    return _C_FIELD.sub(field, template)


def _expand(template: str, values: list[Any]) -> tuple[str, list[Any]]:
    """The format with structured values written out, and the numbers for its remaining fields."""
    operands: list[Any] = []
    taken = 0

    def field(match: re.Match[str]) -> str:
        nonlocal taken
        if match.group(0) in ("{{", "}}"):
            return match.group(0)
        position = int(match.group(1)) if match.group(1) else taken
        taken += 1
        if position >= len(values):
            raise ArgumentError(f"printf: {template!r} has more fields than its {len(values)} values")
        return written(values[position], match.group(2) or "", operands)

    if "{" in (rest := _FIELD.sub("", template)) or "}" in rest:
        raise ArgumentError(f"printf: {template!r}: fields are {{}} or {{0}}, a brace of the text is written twice")
    text = _FIELD.sub(field, template)
    if taken < len(values):
        raise ArgumentError(f"printf: {template!r} has no field for {len(values) - taken} of its {len(values)} values")
    return text, operands


def _expand_c(template: str, values: list[Any]) -> tuple[str, list[Any]]:
    fields = [m for m in _C_FIELD.finditer(template) if m.group(0) != "%%"]
    if len(fields) != len(values):
        raise ArgumentError(f"printf: {template!r} has {len(fields)} fields for {len(values)} values")
    for value in values:
        if not isinstance(value, (Numeric, int, float, Pointer, Value)):
            raise ArgumentError(f"printf: {value!r} has no C format; use {{}}")
    return template, list(values)


def written(value: Any, spec: str, operands: list[Any]) -> str:
    """Text for one value with fields for the run-time numbers in it."""
    if isinstance(value, TensorType):
        whole = str(value._replace(layout="\0"))
        return literal(whole).replace("\0", written(value.layout, "", operands))
    if isinstance(value, (tuple, list)):
        return f"({','.join(written(v, spec, operands) for v in value)})"
    if isinstance(value, Layout):
        return f"{written(value.shape, '', operands)}:{written(value.stride, '', operands)}"
    if isinstance(value, ComposedLayout):
        inner, offset, outer = (written(v, "", operands) for v in (value.inner, value.offset, value.outer))
        return f"{inner} o {offset} o {outer}"
    if isinstance(value, ScaledBasis):
        return written(value.value, "", operands) + "".join(f"@{i}" for i in reversed(value.mode))
    if isinstance(value, Tensor) and isinstance(value.engine, Pointer):
        return _tensor_text(value, operands)
    if isinstance(value, Tensor):
        iterator = value.engine if value.is_coordinate else literal(str(value.iterator))
        text = iterator if isinstance(iterator, str) else written(iterator, "", operands)
        return f"tensor<{text} o {written(value.layout, '', operands)}>"
    if isinstance(value, (Numeric, Value, TensorSSA, Pointer, RuntimeInt)) or type(value) in (int, float, bool):
        operands.append(value)
        return f"{{{spec or (':f' if _is_float(value) else '')}}}"
    return literal(str(value))


def _tensor_text(tensor: Tensor, operands: list[Any]) -> str:
    """``raw_ptr(0x...: i32, gmem, align<4>) o (3):(1) =`` and, of one static mode, the elements below it."""
    text = raw_tensor(tensor, operands).removeprefix("tensor(")
    if rank(tensor.linear) != 1 or not is_static(tensor.shape):
        return text
    count = int(size(tensor.linear))
    return f"{text} = \n  ( {', '.join(written(tensor[i], '', operands) for i in range(count))} )"


def _is_float(value: Any) -> bool:
    """Floats print with C's six decimals, ``3.140000``."""
    if isinstance(value, Value):
        return element_of(value.type).is_float
    kind = value.dtype if isinstance(value, TensorSSA) else type(value)
    return kind is float or bool(getattr(kind, "is_float", False))


def literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _operand(value: Any) -> Value:
    if isinstance(value, Value):
        return value
    if isinstance(value, TensorSSA):
        return value.value
    if isinstance(value, Pointer):
        return value.value()
    number = as_numeric(value)
    return printable(number).ir_value()


def _number(value: Any) -> Any:
    value = value.value if isinstance(value, Numeric) else value
    if isinstance(value, bool):
        return int(value)
    return value.toint() if isinstance(value, Pointer) else value


def printable(value: Any) -> Any:
    if getattr(value, "ir_type", None) in WIDE:
        raise ArgumentError("printf has no format for 128 bits: print (x >> 64).to(Int64) and x.to(Uint64)")
    return Int32(value) if isinstance(value, Boolean) else value


def raw_tensor(tensor: Tensor, operands: list[Any]) -> str:
    """The tensor's type, with fields for its address and for run-time numbers in its layout. Registers have none."""
    kind, iterator = type_text(tensor.element_type.ir_type), tensor.iterator
    if isinstance(iterator, Registers):
        pointer = f"{kind}, rmem"
    else:
        operands.append(iterator.toint())
        pointer = f"0x{{:016x}}: {kind}, {iterator.memspace}, align<{iterator.alignment}>"
    return f"tensor(raw_ptr({pointer}) o {written(tensor.layout, '', operands)}"
