"""Where the elements of a tensor are, and reading and writing them with wide accesses.

``places(layout)`` gives every element's offset as (run-time part, static part). Elements with one run-time part whose
static parts follow each other are one run; a run is read as vectors as wide as the pointer's alignment proves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.errors import HOW_STATIC, ConstraintError, StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import BOOL, ScalarType, VecType
from tilewright.lang.numbers.classes import CLASS_OF
from tilewright.lang.numbers.numeric import Integer, unwrap
from tilewright.lang.tensors.pointer import Pointer, element_bytes, is_packed
from tilewright.layout.coords import offset_of
from tilewright.layout.evaluate import static_offsets
from tilewright.layout.layout import Layout
from tilewright.layout.modes import size
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple, is_static

WIDEST = 16
"""Bytes of the widest access of one thread."""

SplitOffset = tuple[Any, int]  # the run-time part of an offset, and what is added to it


def element_value(value: Any, dtype: Any, tensor: Any) -> Value:
    """``value`` as an element of ``tensor``. Numbers convert, but a float does not lose its fraction silently."""
    need_no_fraction(value, dtype, tensor)
    number: Value = dtype(value).ir_value()
    return number


def need_no_fraction(value: Any, dtype: Any, tensor: Any) -> None:
    """ConstraintError where ``value`` (a number, or the type of many) is a float and elements of ``dtype`` are not."""
    fraction = isinstance(value, float) and not value.is_integer()
    kind = getattr(value, "ir_type", None) or getattr(value, "type", None)
    if dtype.is_integer and dtype.ir_type != BOOL and (fraction or (isinstance(kind, ScalarType) and kind.is_float)):
        type_name = type(value).__name__ if kind is None else CLASS_OF[kind].__name__
        raise ConstraintError(
            f"a {type_name} becomes an element of {tensor}: the fraction would be lost; convert it with "
            f".to({dtype.__name__}), after cute.math.floor, round or trunc as meant"
        )


def element_count(layout: Any, what: str) -> int:
    """The number of elements, which must be known while staging."""
    count = unwrap(size(layout))
    if not isinstance(count, int):
        raise StagingError(
            f"{what} needs a static shape; this tensor's is {format_tree(layout.shape)}: tile it first; {HOW_STATIC}"
        )
    return count


def split_offset(coord: Any, layout: Any) -> SplitOffset:
    """The offset of ``coord`` as (run-time part or 0, static part)."""
    if is_static(coord):
        offset = unwrap(layout(coord))
        return (0, offset) if isinstance(offset, int) else _divide(coord, layout)
    if not isinstance(layout, Layout):
        return unwrap(layout(coord)), 0
    static = unwrap(offset_of(_keep(coord, False), layout.shape, layout.stride))
    dynamic = unwrap(offset_of(_keep(coord, True), layout.shape, layout.stride))
    if isinstance(dynamic, int):
        return (static, dynamic) if not isinstance(static, int) else (0, static + dynamic)
    return (dynamic, static) if isinstance(static, int) else (dynamic + static, 0)


def _divide(coord: Any, layout: Any) -> SplitOffset:
    """A static coordinate under run-time strides (or a layout with a run-time part)."""
    if not isinstance(layout, Layout):
        return layout(coord), 0
    static, dynamic = 0, 0
    leaves = zip(flatten_to_tuple(_natural(coord, layout)), flatten_to_tuple(layout.stride), strict=True)
    for c, d in leaves:
        step = unwrap(c * d) if not (isinstance(c, int) and c == 0) else 0
        if isinstance(step, int):
            static += step
        else:
            dynamic = step if isinstance(dynamic, int) and dynamic == 0 else dynamic + step
    return dynamic, static


def _natural(coord: Any, layout: Layout) -> Any:
    from tilewright.layout.modes import idx2crd

    def walk(c: Any, s: Any) -> Any:
        if isinstance(c, tuple):
            return tuple([walk(ci, si) for ci, si in zip(c, s, strict=True)])
        return idx2crd(c, s) if isinstance(s, tuple) else c

    return walk(coord, layout.shape)


def _keep(coord: Any, dynamic: bool) -> Any:
    """``coord`` with its static (``dynamic``) or its run-time leaves replaced by zero."""
    if isinstance(coord, tuple):
        return tuple([_keep(c, dynamic) for c in coord])
    return coord if isinstance(unwrap(coord), Integer) == dynamic else 0


def places(layout: Any, count: int) -> list[SplitOffset]:
    """The offset of every element in colexicographic order; equal run-time parts are one object."""
    if is_static(layout):
        return [(0, offset) for offset in static_offsets(layout)]
    if not isinstance(layout, Layout):
        return [split_offset(i, layout) for i in range(count)]
    shape, stride = flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)
    remembered: dict[tuple[int, ...], Any] = {}
    result = []
    for i in range(count):
        rest, static, key = i, 0, []
        for s, d in zip(shape, stride, strict=True):
            c, rest = (rest % s, rest // s) if isinstance(s, int) else (rest, 0)
            if isinstance(d, int):
                static += c * d
                c = 0
            key.append(c)
        if tuple(key) not in remembered:
            parts = [c * d for c, d in zip(key, stride, strict=True) if c]
            remembered[tuple(key)] = sum(parts[1:], parts[0]) if parts else 0
        result.append((remembered[tuple(key)], static))
    return result


def runs(where: Sequence[SplitOffset]) -> Iterator[list[int]]:
    """Maximal groups of positions whose elements are one after another in memory."""
    groups: dict[int, list[int]] = {}
    for i, (dynamic, _) in enumerate(where):
        groups.setdefault(0 if isinstance(dynamic, int) else id(dynamic), []).append(i)
    for members in groups.values():
        members.sort(key=lambda i: where[i][1])
        run = [members[0]]
        for i in members[1:]:
            if where[i][1] == where[run[-1]][1] + 1:
                run.append(i)
            else:
                yield run
                run = [i]
        yield run


def _chunks(pointer: Pointer, where: Sequence[SplitOffset]) -> Iterator[tuple[Pointer, int, list[int]]]:
    """(pointer, static offset, positions) of each vector access that the alignment allows."""
    width = element_bytes(pointer.dtype)
    limit = max(1, WIDEST // width)
    for run in runs(where):
        dynamic, start = where[run[0]]
        at = pointer if isinstance(dynamic, int) and dynamic == 0 else pointer + dynamic
        done = 0
        while done < len(run):
            align = (at + (start + done)).alignment
            n = limit
            while n > 1 and (n > len(run) - done or align % (n * width)):
                n //= 2
            yield at, start + done, run[done : done + n]
            done += n


def load_memory(pointer: Pointer, where: Sequence[SplitOffset]) -> Value:
    """All elements as one vector, in the order of ``where``."""
    if is_packed(pointer.dtype):
        return pointer.load_places(where)  # type: ignore[attr-defined]  # PackedPointer's
    builder = Builder.current()
    parts, order = [], []
    for at, offset, members in _chunks(pointer, where):
        parts.append(builder.load(at.value(offset), len(members) if len(members) > 1 else None))
        order += members
    whole = parts[0] if len(parts) == 1 and len(order) > 1 else builder.concat(parts)
    place = {member: k for k, member in enumerate(order)}
    return builder.shuffle(whole, [place[i] for i in range(len(order))])


def store_memory(pointer: Pointer, where: Sequence[SplitOffset], value: Value) -> None:
    """Write the elements of the vector ``value`` to ``where``."""
    if is_packed(pointer.dtype):
        return pointer.store_places(where, value)  # type: ignore[attr-defined]  # PackedPointer's
    builder = Builder.current()
    assert isinstance(value.type, VecType)
    for at, offset, members in _chunks(pointer, where):
        part = builder.shuffle(value, members) if len(members) > 1 else builder.extract(value, members[0])
        builder.store(at.value(offset), part)
    return None
