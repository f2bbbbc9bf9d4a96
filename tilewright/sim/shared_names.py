"""What the kernel's own variables call places in shared memory: ``full[1]`` for the second mbarrier behind ``full``,
``ring[3, 0]`` for an element of a tensor."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from tilewright.ir.core import Constant, Function, Op, Value
from tilewright.ir.types import MemSpace, PtrType, element_of
from tilewright.layout import ComposedLayout, Layout, Swizzle, cosize, is_static

UNNAMED = "smem"  # an allocation that no variable was assigned


class NamedRange(NamedTuple):
    """The bytes ``start`` to ``stop`` of a block's shared memory, elements of ``size`` bytes each. ``layout``: of a
    tensor whose elements have a place of their own; ``alloc``: the allocation that it is in; ``swizzle``: of byte
    offsets, which exchanges pairs of elements."""

    start: int
    stop: int
    name: str
    size: int
    layout: Layout | None
    alloc: Op
    swizzle: Swizzle | None = None

    def element_at(self, offset: int) -> int | tuple[int, ...] | None:
        """The element at a byte offset of the block's shared memory: its coordinate in a tensor, or its number; None
        where there is one element alone."""
        number = ((offset if self.swizzle is None else self.swizzle(offset)) - self.start) // self.size
        coordinate = None if self.layout is None else coordinate_of(self.layout, number)
        return coordinate or (number if self.stop - self.start > self.size else None)


class SharedNames:
    """The names of a kernel's places in shared memory. They are looked up when a message needs one."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def at(self, offset: int) -> NamedRange | None:
        """The narrowest named place that holds this byte; of several the first that the program assigned."""
        here = [named for named in self._places if named.start <= offset < named.stop]
        return min(here, key=lambda named: (-named.start, named.stop)) if here else None

    def element(self, offset: int) -> str:
        """``empty[0]``; empty where nothing is known of the offset."""
        named = self.at(offset)
        return "" if named is None or named.name == UNNAMED else written(named.name, named.element_at(offset))

    @functools.cached_property
    def _places(self) -> list[NamedRange]:
        allocations = [op for op in self.function.walk() if op.opcode == "smem.alloc"]
        ranges = [
            named
            for variable in self.function.variables
            if (named := self._named(variable.name, variable.value)) is not None
        ]
        starts = sorted({named.start for named in ranges})
        # A pointer says where its elements begin; they end where the next name begins.
        bounded = [
            named
            if named.layout is not None or named.stop < 0
            else named._replace(stop=min([start for start in starts if start > named.start] + [named.stop]))
            for named in ranges
        ]
        return bounded + [_whole(alloc) for alloc in allocations]

    def _named(self, name: str, value: Any) -> NamedRange | None:
        """The place that a variable stands for, where it is a static one in shared memory."""
        pointer = getattr(value, "engine", value)
        base, pending = getattr(pointer, "base", None), getattr(pointer, "pending", 0)
        if not isinstance(base, Value) or not isinstance(pending, int):
            return None
        offset, alloc = self._place(self.function.replaced.get(base, base))
        if alloc is None:
            return None
        size = element_of(base.type).bytes
        start, end = offset + (pointer.const + pending) * size, _end(alloc)
        layout, bits = getattr(value, "layout", None), getattr(pointer, "swizzle", None)
        swizzle = None if bits is None else Swizzle(*bits)
        if isinstance(layout, ComposedLayout) and swizzle is not None and layout.offset == 0:
            layout = layout.outer
        if layout is None:
            return NamedRange(start, end, name, size, None, alloc)
        if not isinstance(layout, Layout) or not is_static(layout):
            return None
        return NamedRange(start, min(end, start + int(cosize(layout)) * size), name, size, layout, alloc, swizzle)

    def _place(self, pointer: Value) -> tuple[int, Op | None]:
        """The static byte offset that a pointer has in shared memory, and the allocation that it came from."""
        moved = 0
        while (op := pointer.op) is not None and op.opcode in ("ptr.add", "ptr.cast"):
            if op.opcode == "ptr.add":
                by = op.operands[1]
                if not isinstance(by, Constant):
                    return 0, None
                moved += int(by.value) * element_of(op.operands[0].type).bytes
            pointer = op.operands[0]
        kind = pointer.type
        if op is None or op.opcode != "smem.alloc" or not isinstance(kind, PtrType) or kind.space is not MemSpace.SMEM:
            return 0, None
        return int(op.attrs["offset"]) + moved, op


def written(name: str, element: int | tuple[int, ...] | None) -> str:
    """An element as a program would write it."""
    inside = element if isinstance(element, tuple) else () if element is None else (element,)
    return f"{name}[{', '.join(map(str, inside))}]" if inside else name


def _whole(alloc: Op) -> NamedRange:
    """An allocation by the name that the program gave it first."""
    kind = alloc.result.type
    assert isinstance(kind, PtrType)
    start = int(alloc.attrs["offset"])
    return NamedRange(start, _end(alloc), alloc.result.hint or UNNAMED, kind.elem.bytes, None, alloc)


def _end(alloc: Op) -> int:
    return int(alloc.attrs["offset"]) + int(alloc.attrs["bytes"])


def coordinate_of(layout: Layout, number: int) -> tuple[int, ...] | None:
    """The index in each mode of ``layout`` at which it has the offset ``number``; None where there is no single one.

    >>> coordinate_of(Layout((32, 2), (1, 32)), 40), coordinate_of(Layout((4, 4), (0, 1)), 2)
    ((8, 1), None)
    """
    modes = [layout[k] for k in range(len(layout))] if isinstance(layout.shape, tuple) else [layout]
    parts: list[tuple[int, int, int, int]] = []  # stride, extent, mode, and the steps of the mode's index
    for mode, each in enumerate(modes):
        step = 1
        for extent, stride in zip(_flat(each.shape), _flat(each.stride), strict=True):
            parts.append((stride, extent, mode, step))
            step *= extent
    coordinate = [0] * len(modes)
    # From the largest stride down, each index is a quotient. What remains shows that no element is there.
    for stride, extent, mode, step in sorted(parts, reverse=True):
        if extent == 1:
            continue
        if stride <= 0:
            return None
        index = min(number // stride, extent - 1)
        number -= index * stride
        coordinate[mode] += index * step
    return tuple(coordinate) if number == 0 else None


def _flat(tree: Any) -> list[int]:
    return [leaf for part in tree for leaf in _flat(part)] if isinstance(tree, tuple) else [int(tree)]
