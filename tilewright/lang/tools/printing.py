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
from tilewright.lang.numbers.dtypes import type_text
from tilewright.lang.numbers.numeric_base import SHOWN_UNKNOWN
from tilewright.lang.staging.location import fail, here, user_frame
from tilewright.lang.staging.text import Text
from tilewright.lang.tensors.pointer import Pointer, element_bits
from tilewright.lang.tensors.struct import Scalar
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.lang.tools import printing_loops
from tilewright.lang.tools.formats import (
    fields_of,
    is_python,
    literal,
    of_one_kind,
    print_formatted,
    printable,
    raw_tensor,
)
from tilewright.layout.layout import Layout
from tilewright.layout.modes import rank, size
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import is_static

_OF_LAYOUT = re.compile(r"[(,]\?[,){]|:\?|\?:")


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
    template = of_one_kind(template, len(values))
    if is_python(template) and any(map(_is_row, values)):
        _print_with_rows(template, values)
    else:
        print_formatted(template, values)


def _is_row(value: Any) -> bool:
    """Whether it is a tensor in memory of one mode, whose length is known when the program runs."""
    if not (isinstance(value, Tensor) and isinstance(value.engine, Pointer) and Builder.active()):
        return False
    return rank(value.linear) == 1 and not is_static(value.shape)


def _print_with_rows(template: str, values: list[Any]) -> None:
    """``printf`` in parts: what stands before a :func:`row <_is_row>`, its elements in a loop, and what follows."""
    text, pending, start, taken = "", [], 0, 0
    for field in fields_of(template):
        position = int(field.group(1)) if field.group(1) else taken
        taken += 1
        if position >= len(values):
            raise ArgumentError(f"printf: {template!r} has more fields than its {len(values)} values")
        text, start = text + template[start : field.start()], field.end()
        value = values[position]
        text += f"{{{field.group(2) or ''}}}"
        pending.append(value)
        if _is_row(value):
            print_formatted(f"{text} = \n  ( ", pending)
            printing_loops.print_row(value, size(value.linear), "{:f}" if value.element_type.is_float else "{}")
            text, pending = " )", []
    print_formatted(text + template[start:], pending)


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


def _with_fields(text: Text, more: list[Any]) -> tuple[str, list[Any]]:
    """An f-string with run-time values as a format and all its values; those ``more`` belong to its own fields."""
    template, values, rest = "", [], iter(more)
    for part in text.parts:
        if isinstance(part, str):
            template += part
            values += [value for _ in fields_of(part) for value in itertools.islice(rest, 1)]
        else:
            template += f"{{:{part.spec}}}" if part.spec else "{}"
            values.append(part.value)
    return template, [*values, *rest]


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
        head = f"tensor_value({type_text(tensor.dtype.ir_type)} o {literal(format_tree(tensor.shape))}"
    elif not isinstance(tensor, Tensor):
        raise ArgumentError(f"print_tensor needs a tensor, not {tensor!r}")
    elif tensor.is_coordinate:
        return printf("{}", tensor)
    elif isinstance(tensor.engine, Pointer) and not is_static(tensor.layout.shape):
        head = f"{raw_tensor(tensor, operands)}, data="
        printf(head, *operands)
        field = f"{{{_spec(tensor.element_type)}}}"
        return printing_loops.print_matrices(tensor, field, element_bits(tensor.element_type) if verbose else None)
    else:
        layout, values = tensor.layout, tensor.load()
        bits = element_bits(tensor.element_type)
        head = raw_tensor(tensor, operands)
    lines = [f"{head}, data="]
    for prefix, row, suffix in _rows(tensor.shape):
        fields = []
        for coord in row:
            operands.append(printable(values[coord]))
            address = _offset_text(layout, coord, bits) if verbose else ""
            fields.append(f"{{{_spec(values.dtype)}}}{address}")
        lines.append(f"{prefix}{', '.join(fields)}{suffix}")
    printf("\n".join(lines) + ")", *operands)
    return None


def _spec(dtype: Any) -> str:
    return ":.6f" if dtype.is_float else ""


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
    count = 0
    for i, e in zip(reversed(index), reversed(edge), strict=True):
        if i != e:
            break
        count += 1
    return count


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
