"""``cute.printf`` and ``cute.print_tensor``.

A format has Python's fields (``{}``, ``{:.3f}``) or C's (``%d``, ``%f``). Inside a staged function the text is printed
when the program runs, by every thread that gets there; outside, at once. Layouts, tuples and tensors print in CuTe
notation with the run-time numbers in them.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

from tilewright.errors import HOW_STATIC, ArgumentError, StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import WIDE, element_of
from tilewright.lang.numbers.dtypes import type_text
from tilewright.lang.numbers.numeric import Boolean, Numeric, as_numeric
from tilewright.lang.numbers.numeric_base import SHOWN_UNKNOWN
from tilewright.lang.staging.location import fail, here, user_frame
from tilewright.lang.staging.text import Text
from tilewright.lang.tensors.pointer import Pointer, element_bits
from tilewright.lang.tensors.registers import Registers
from tilewright.lang.tensors.struct import Scalar
from tilewright.lang.tensors.tensor import Tensor, TensorType
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.lang.tools import printing_loops
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.ints import RuntimeInt
from tilewright.layout.layout import Layout
from tilewright.layout.modes import rank, size
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import is_static

_FIELD = re.compile(r"\{\{|\}\}|\{(\d*)(:[^{}]*)?\}")
_OF_LAYOUT = re.compile(r"[(,]\?[,){]|:\?|\?:")
_C_FIELD = re.compile(r"%%|%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j)?[diouxXeEfFgGcsp]")


def printf(*args: Any, end: str = "\n", loc: Any = None, ip: Any = None) -> None:
    """Print ``args[1:]`` in the format ``args[0]``; without a format string, the values one after another.

    A newline is added where the format does not end in one. Fields are Python's or C's, or some of each.

    >>> @cute.jit
    ... def show(t):
    ...     if t == 3:
    ...         cute.printf("thread %d of %d", t, cute.arch.block_dim()[0])
    >>> _ = per_thread(show, 8)
    thread 3 of 8
    """
    if not args:
        raise ArgumentError("printf needs a format or a value")
    template, *values = args if isinstance(args[0], str) else (" ".join("{}" for _ in args), *args)
    if isinstance(template, Text):
        template, values = _with_fields(template, values)
    elif "?" in template and Builder.active():
        _need_no_lost_number(template)
    values = [v.load() if isinstance(v, Scalar) else v for v in values]  # numbers that are in a struct
    template = template if template.endswith("\n") or not end else template + end
    template = _of_one_kind(template, len(values))
    if _is_python(template) and any(map(_is_row, values)):
        _print_with_rows(template, values)
    else:
        _print(template, values)


def _print(template: str, values: list[Any]) -> None:
    python = _is_python(template)
    text, operands = _expand(template, values) if python else _expand_c(template, values)
    if not Builder.active():
        shown = [_number(v) for v in operands]
        print(text.format(*shown) if python else text % tuple(shown), end="")
        return
    Builder.current().emit("printf", [_operand(v) for v in operands], (), {"format": text})


def _is_row(value: Any) -> bool:
    """Whether it is a tensor in memory of one mode, whose length is known when the program runs."""
    if not (isinstance(value, Tensor) and isinstance(value.engine, Pointer) and Builder.active()):
        return False
    return rank(value.linear) == 1 and not is_static(value.shape)


def _print_with_rows(template: str, values: list[Any]) -> None:
    """``printf`` in parts: what stands before a :func:`row <_is_row>`, its elements in a loop, and what follows."""
    text, given, start, taken = "", [], 0, 0
    for field in _fields(template):
        position = int(field.group(1)) if field.group(1) else taken
        taken += 1
        if position >= len(values):
            raise ArgumentError(f"printf: {template!r} has more fields than its {len(values)} values")
        text, start = text + template[start : field.start()], field.end()
        value = values[position]
        text += f"{{{field.group(2) or ''}}}"
        given.append(value)
        if _is_row(value):
            _print(f"{text} = \n  ( ", given)
            printing_loops.print_row(value, size(value.linear), "{:f}" if value.element_type.is_float else "{}")
            text, given = " )", []
    _print(text + template[start:], given)


def _need_no_lost_number(template: str) -> None:
    """Refuse a text that Python has made of a run-time number, where staging could not see it: in a function without
    ``@cute.jit``. Only its question mark is left."""
    frame = user_frame(3)
    if frame is None or not (frame.f_code in SHOWN_UNKNOWN.asked_by or _OF_LAYOUT.search(template)):
        return
    if template in frame.f_code.co_consts or template in frame.f_globals.values():
        return
    raise fail(
        f"printf({template!r}): the ? stands for a number that is known when the program runs, and its text was made "
        'before: give the number to printf (printf("x = {}", x)), or mark the function that makes the text @cute.jit',
        here(3),
    )


def _with_fields(text: Text, given: list[Any]) -> tuple[str, list[Any]]:
    """An f-string with run-time values as a format and all its values; those ``given`` belong to its own fields."""
    template, values, rest = "", [], iter(given)
    for part in text.parts:
        if isinstance(part, str):
            template += part
            values += [value for _ in _fields(part) for value in itertools.islice(rest, 1)]
        else:
            template += f"{{:{part.spec}}}" if part.spec else "{}"
            values.append(part.value)
    return template, [*values, *rest]


def _fields(template: str) -> list[re.Match[str]]:
    """Python's fields of a format."""
    return [match for match in _FIELD.finditer(template) if match.group(0) not in ("{{", "}}")]


def _is_python(template: str) -> bool:
    """Whether the fields are Python's; a format without any field is taken as it is."""
    return bool(_fields(template)) or not _C_FIELD.search(template)


def _of_one_kind(template: str, count: int) -> str:
    """A format with fields of both kinds, as many as there are values, with Python's for C's: ``{} is %.2f``."""
    given = [m for m in _C_FIELD.finditer(template) if m.group(0) != "%%"]
    if not given or not (own := _fields(template)) or len(own) + len(given) != count:
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
        return _written(values[position], match.group(2) or "", operands)

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


def _written(value: Any, spec: str, operands: list[Any]) -> str:
    """Text for one value with fields for the run-time numbers in it."""
    if isinstance(value, TensorType):
        whole = str(value._replace(layout="\0"))
        return _literal(whole).replace("\0", _written(value.layout, "", operands))
    if isinstance(value, (tuple, list)):
        return f"({','.join(_written(v, spec, operands) for v in value)})"
    if isinstance(value, Layout):
        return f"{_written(value.shape, '', operands)}:{_written(value.stride, '', operands)}"
    if isinstance(value, ComposedLayout):
        inner, offset, outer = (_written(v, "", operands) for v in (value.inner, value.offset, value.outer))
        return f"{inner} o {offset} o {outer}"
    if isinstance(value, ScaledBasis):
        return _written(value.value, "", operands) + "".join(f"@{i}" for i in reversed(value.mode))
    if isinstance(value, Tensor) and isinstance(value.engine, Pointer):
        return _tensor_text(value, operands)
    if isinstance(value, Tensor):
        iterator = value.engine if value.is_coordinate else _literal(str(value.iterator))
        text = iterator if isinstance(iterator, str) else _written(iterator, "", operands)
        return f"tensor<{text} o {_written(value.layout, '', operands)}>"
    if isinstance(value, (Numeric, Value, TensorSSA, Pointer, RuntimeInt)) or type(value) in (int, float, bool):
        operands.append(value)
        return f"{{{spec or (':f' if _is_float(value) else '')}}}"
    return _literal(str(value))


def _tensor_text(tensor: Tensor, operands: list[Any]) -> str:
    """``raw_ptr(0x...: i32, gmem, align<4>) o (3):(1) =`` and, of one static mode, the elements below it."""
    text = _raw(tensor, operands).removeprefix("tensor(")
    if rank(tensor.linear) != 1 or not is_static(tensor.shape):
        return text
    count = int(size(tensor.linear))
    return f"{text} = \n  ( {', '.join(_written(tensor[i], '', operands) for i in range(count))} )"


def _is_float(value: Any) -> bool:
    """Floats print with C's six decimals, ``3.140000``."""
    if isinstance(value, Value):
        return element_of(value.type).is_float
    kind = value.dtype if isinstance(value, TensorSSA) else type(value)
    return kind is float or bool(getattr(kind, "is_float", False))


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _operand(value: Any) -> Value:
    if isinstance(value, Value):
        return value
    if isinstance(value, TensorSSA):
        return value.value
    if isinstance(value, Pointer):
        return value.value()
    number = as_numeric(value)
    return _printable(number).ir_value()


def _number(value: Any) -> Any:
    value = value.value if isinstance(value, Numeric) else value
    if isinstance(value, bool):
        return int(value)
    return value.toint() if isinstance(value, Pointer) else value


# -- tensors -------------------------------------------------------------------------------------------------------


def pretty_str(arg: Any, *, loc: Any = None, ip: Any = None) -> str:
    """What is known of ``arg`` while staging, as text: a layout, a shape, a tensor, an operation, a tiled MMA or copy.

    >>> pretty_str(cute.make_layout((4, (2, 2)))), pretty_str((4, (2, 2)))
    ('(4,(2,2)):(1,(4,8))', '(4,(2,2))')
    """
    return format_tree(arg) if isinstance(arg, tuple) else str(arg)


def print_tensor(tensor: Any, *, verbose: bool = False, loc: Any = None, ip: Any = None) -> None:
    """Print a tensor or TensorSSA: its type and, row by row, its elements.

    With ``verbose`` each element is followed by its address, counted in bytes from the first: ``7(0x18)``. A shape of
    run-time numbers is printed by loops.

    >>> def show(t, p):
    ...     cute.print_tensor(cute.make_tensor(p, cute.make_layout((2, 3), stride=(3, 1))))
    >>> _ = per_thread(show, 1, memory=range(6))
    tensor(raw_ptr(0x...: i32, gmem, align<4>) o (2,3):(3,1), data=
           [[0, 1, 2],
            [3, 4, 5]])
    """
    from tilewright.lang.arguments.dlpack import HostTensor

    if isinstance(tensor, HostTensor):
        print(_host_text(tensor, verbose))
        return
    operands: list[Any] = []
    if isinstance(tensor, TensorSSA):
        layout, values, bits = Layout(tensor.shape), tensor, element_bits(tensor.dtype)
        head = f"tensor_value({type_text(tensor.dtype.ir_type)} o {_literal(format_tree(tensor.shape))}"
    elif not isinstance(tensor, Tensor):
        raise ArgumentError(f"print_tensor needs a tensor, not {tensor!r}")
    elif tensor.is_coordinate:
        return printf("{}", tensor)
    elif isinstance(tensor.engine, Pointer) and not is_static(tensor.layout.shape):
        head = f"{_raw(tensor, operands)}, data="
        printf(head, *operands)
        field = f"{{{_spec(tensor.element_type)}}}"
        return printing_loops.print_matrices(tensor, field, element_bits(tensor.element_type) if verbose else None)
    else:
        layout, values = tensor.layout, tensor.load()
        bits = element_bits(tensor.element_type)
        head = _raw(tensor, operands)
    lines = [f"{head}, data="]
    for prefix, row, suffix in _rows(tensor.shape):
        fields = []
        for coord in row:
            operands.append(_printable(values[coord]))
            address = _offset_text(layout, coord, bits) if verbose else ""
            fields.append(f"{{{_spec(values.dtype)}}}{address}")
        lines.append(f"{prefix}{', '.join(fields)}{suffix}")
    printf("\n".join(lines) + ")", *operands)
    return None


def _spec(dtype: Any) -> str:
    return ":.6f" if dtype.is_float else ""


def _printable(value: Any) -> Any:
    from tilewright.lang.numbers.numeric import Int32

    if getattr(value, "ir_type", None) in WIDE:
        raise ArgumentError("printf has no format for 128 bits: print (x >> 64).to(Int64) and x.to(Uint64)")
    return Int32(value) if isinstance(value, Boolean) else value


def _raw(tensor: Tensor, operands: list[Any]) -> str:
    """The tensor's type, with fields for its address and for run-time numbers in its layout. Registers have none."""
    kind, iterator = type_text(tensor.element_type.ir_type), tensor.iterator
    if isinstance(iterator, Registers):
        pointer = f"{kind}, rmem"
    else:
        operands.append(iterator.toint())
        pointer = f"0x{{:016x}}: {kind}, {iterator.memspace}, align<{iterator.alignment}>"
    return f"tensor(raw_ptr({pointer}) o {_written(tensor.layout, '', operands)}"


def _offset_text(layout: Any, coord: Any, bits: int) -> str:
    offset = layout(coord)
    if not isinstance(offset, int):
        raise StagingError("print_tensor(verbose=True) in a kernel needs a static layout; " + HOW_STATIC)
    return f"(0x{offset * bits // 8:02X})"


def _rows(shape: Any) -> Any:
    """(opening, coordinates, closing) for each line: mode 0 goes down, mode 1 along the line, and the matrices of the
    modes after them follow each other, the last mode slowest (as CuTe's print_tensor has them)."""
    from tilewright.layout.tuples import product

    modes = shape if isinstance(shape, tuple) else (shape,)
    sizes = [product(m) for m in modes]
    order = [*range(len(sizes) - 1, 1, -1), *range(min(2, len(sizes)))]
    *outer, last = [sizes[i] for i in order]
    count = 1
    for n in outer:
        count *= n
    for line in range(count):
        index: list[int] = []
        rest = line
        for n in reversed(outer):
            index.insert(0, rest % n)
            rest //= n
        opening = _brackets(index, [0] * len(outer))
        closing = _brackets(index, [n - 1 for n in outer])
        coords = [_in_order([*index, j], order) if isinstance(shape, tuple) else j for j in range(last)]
        pad = " " * (7 + len(outer) - opening)
        yield f"{pad}{'[' * (opening + 1)}", coords, f"{']' * (closing + 1)}{'' if line == count - 1 else ','}"


def _in_order(index: list[int], order: list[int]) -> tuple[int, ...]:
    coord = [0] * len(order)
    for mode, i in zip(order, index, strict=True):
        coord[mode] = i
    return tuple(coord)


def _brackets(index: list[int], edge: list[int]) -> int:
    """How many of the innermost outer modes are at ``edge``."""
    found = 0
    for i, e in zip(reversed(index), reversed(edge), strict=True):
        if i != e:
            break
        found += 1
    return found


def _host_text(tensor: Any, verbose: bool) -> str:
    array = tensor.numpy()
    kind, pointer = type_text(tensor.element_type.ir_type), tensor.engine
    head = f"tensor(raw_ptr(0x{tensor.data_ptr:016x}: {kind}, {pointer.memspace}, align<{pointer.alignment}>) "
    shape = array.shape or (1,)
    array = array.reshape(shape) if not array.shape else array
    size = tensor.element_type.ir_type.bytes
    is_float = tensor.element_type.is_float
    lines = [f"{head}o {tensor.layout}, data="]
    strides = [s // size for s in array.strides]
    for prefix, row, suffix in _rows(tuple(shape)):
        fields = []
        for coord in row:
            number = array[coord]
            text = (
                f"{float(number):.6f}"
                if is_float and not verbose
                else f"{float(number):g}"
                if is_float
                else f"{int(number)}"
            )
            offset = sum(c * d for c, d in zip(coord, strides, strict=True)) * size
            fields.append(f"{text}(0x{offset:02X})" if verbose else text)
        lines.append(f"{prefix}{', '.join(fields)}{suffix}")
    return "\n".join(lines) + ")"
