"""One side of a copy as the analysis sees it: a layout, a memory space, and what is known of the alignment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.errors import ArgumentError, ConstraintError
from tilewright.ir.types import MemSpace
from tilewright.lang.tensors.pointer import Pointer, element_bytes
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import ComposedLayout, Layout, Swizzle, SymbolicInt, is_static, make_layout
from tilewright.layout.tuples import transform_leaf

LARGE_ODD = 1025  # stands for an unknown factor: no power of two helps it


@dataclass(frozen=True)
class MemoryTile:
    """A tile in memory: ``layout`` maps coordinates to elements, its start is known to be ``align``-byte aligned."""

    layout: Any
    space: MemSpace
    align: int

    def __str__(self) -> str:
        return f"{self.space.value} {self.layout}"


def gmem(layout: Any, align: int = 16) -> MemoryTile:
    """A tile in global memory. Strides may be run-time ints with a known divisor.

    >>> print(gmem(Layout((8, 64), (64, 1))))
    gmem (8,64):(64,1)
    """
    return MemoryTile(_as_layout(layout), MemSpace.GMEM, align)


def smem(layout: Any, align: int = 128) -> MemoryTile:
    """A tile in shared memory; a swizzled layout starts at a multiple of its swizzle's span, as allocators place it.

    >>> from tilewright import Float16, analysis
    >>> analysis.smem(cute.make_layout((8, 64), stride=(64, 1)), Float16)
    MemoryTile(layout=(8,64):(64,1), space=smem, align=Float16)
    """
    return MemoryTile(_as_layout(layout), MemSpace.SMEM, align)


def side_of(x: Any, what: str, space: MemSpace | None) -> MemoryTile | None:
    """``x`` (memory, tensor, layout, shape; None for registers) as a side; ``space`` is where the instruction looks."""
    if x is None or isinstance(x, MemoryTile):
        return x
    if isinstance(x, Tensor):
        return _of_tensor(x, what)
    layout = _as_layout(x)
    if space is None:
        raise ArgumentError(
            f"analyse_copy: the {what} {layout} may be in global or in shared memory: say gmem(layout) or smem(layout)"
        )
    return gmem(layout) if space == MemSpace.GMEM else smem(layout)


def _of_tensor(x: Tensor, what: str) -> MemoryTile | None:
    pointer = x.engine
    if not isinstance(pointer, Pointer):
        if x.is_coordinate:
            raise ArgumentError(f"analyse_copy: the {what} {x} is a coordinate tensor: it is not in memory")
        return None
    layout = x.linear
    if pointer.swizzle is not None:
        bits = pointer.swizzle.in_units(element_bytes(x.element_type))
        layout = ComposedLayout(Swizzle(bits.bits, bits.base, bits.shift), 0, layout)
    return MemoryTile(layout, pointer.space, pointer.alignment)


def _as_layout(x: Any) -> Any:
    return x if isinstance(x, (Layout, ComposedLayout)) else make_layout(x)


def static_shape(layout: Any) -> Any:
    """The shape of ``layout``, which must be known now."""
    if not is_static(layout.shape):
        raise ConstraintError(
            f"analyse_copy: the shape of {layout} is known only at run time, but a copy repeats a static number of "
            "times: analyse one tile of it (strides may stay unknown)"
        )
    return layout.shape


def with_leaves(layout: Any, f: Callable[[Any], Any]) -> Any:
    """``layout`` with ``f`` of every stride that is a run-time int."""
    outer = layout.outer if isinstance(layout, ComposedLayout) else layout
    if is_static(outer):
        return layout
    made = Layout(outer.shape, transform_leaf(lambda d: d if isinstance(d, int) else f(d), outer.stride))
    return layout.on_outer(lambda _: made) if isinstance(layout, ComposedLayout) else made


def numbered(layout: Any, where: Mapping[str, int]) -> tuple[Any, dict[str, int]]:
    """``layout`` with a number for every unknown stride, and the numbers that had to be assumed.

    An unknown stride is taken to be a multiple of its divisor and of no larger power of two: nothing is aligned by
    luck. ``where`` gives symbolic ints a value instead.

    >>> numbered(Layout((8, 64), (SymbolicInt("k", divisibility=8), 1)), {})
    ((8,64):(8200,1), {'k': 8200})
    """
    assumed: dict[str, int] = {}

    def number(leaf: Any) -> int:
        literal = getattr(leaf, "value", None)
        if isinstance(literal, int):
            return literal
        if isinstance(leaf, SymbolicInt) and where:
            try:
                return leaf.substitute(where)
            except KeyError as missing:
                text = f"analyse_copy: {leaf} needs a value for {missing}; where has {dict(where)}"
                raise ArgumentError(text) from None
        return assumed.setdefault(str(leaf), leaf.divisibility * LARGE_ODD)

    return with_leaves(layout, number), assumed


def span_bytes(layout: Any, width: int) -> int:
    """The alignment in bytes that a swizzled layout of ``width``-byte elements asks of its start (1: none)."""
    swizzle = layout.inner if isinstance(layout, ComposedLayout) else None
    if not isinstance(swizzle, Swizzle) or not swizzle.bits:
        return 1
    return width << (swizzle.bits + swizzle.base + abs(swizzle.shift))
