"""``print_tensor`` and ``printf`` of tensors whose shape is known when the program runs: loops over their elements."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.lang.numbers.numeric import Boolean, Int32, Int64
from tilewright.lang.staging.generate import if_generate
from tilewright.lang.staging.generate_loops import for_generate, yield_out
from tilewright.lang.tools.formats import print_formatted
from tilewright.layout.modes import size


def print_row(tensor: Any, count: Any, field: str) -> None:
    """``a, b, c`` of the elements 0 to ``count`` of one mode."""
    _row(lambda j: _print(field, tensor[j]), count)


def print_matrices(tensor: Any, field: str, bits: int | None) -> None:
    """The elements as ``print_tensor`` has them: mode 0 goes down, mode 1 along the line, and the matrices of the modes
    after them follow each other. ``bits`` of an element: with the place of each in bytes."""
    shape = tensor.shape
    sizes = [Int32(size(tensor, mode=[i])) for i in range(len(shape))] if isinstance(shape, tuple) else [size(tensor)]
    order = [*range(len(sizes) - 1, 1, -1), *range(min(2, len(sizes)))]
    *outer, last = [sizes[i] for i in order]

    def element(index: Sequence[Any], j: Any) -> None:
        coord = tuple(x for _, x in sorted(zip(order, [*index, j], strict=True), key=lambda pair: pair[0]))
        at = coord if isinstance(shape, tuple) else j
        if bits is None:
            _print(field, tensor[at])
        else:
            _print(f"{field}(0x{{:02X}})", tensor[at], Int64(tensor.layout(at)) * bits // 8)

    def line(number: Any) -> None:
        index: list[Any] = []
        for n in reversed(outer):
            index.insert(0, number % n)
            number = number // n
        first, end = [i == 0 for i in index], [i == n - 1 for i, n in zip(index, outer, strict=True)]
        _innermost(first, lambda k: _print(f"{' ' * (7 + len(outer) - k)}{'[' * (k + 1)}"))
        _row(lambda j: element(index, j), last)
        _innermost(end, lambda k: _print(f"{']' * (k + 1)}{')' if k == len(outer) else ','}\n"))

    if not outer:
        return line(0)
    for number in for_generate(0, functools.reduce(operator.mul, outer)):
        line(number)
        yield_out()
    return None


def _row(element: Callable[[Any], None], count: Any) -> None:
    for j in for_generate(0, Int32(count)):
        if_generate(Boolean(j > 0), lambda: _print(", "))
        element(j)
        yield_out()


def _innermost(holds: Sequence[Any], then: Callable[[int], None], count: int = 0) -> None:
    """``then`` with the number of last ones that hold."""
    if count == len(holds):
        return then(count)
    if_generate(holds[-1 - count], lambda: _innermost(holds, then, count + 1), lambda: then(count))
    return None


def _print(text: str, *values: Any) -> None:
    print_formatted(text, list(values))
