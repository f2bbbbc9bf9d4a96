"""One way to rearrange and slice for layouts and tensors: whatever has ``with_layout`` is a tensor.

A tensor keeps the swizzle of its layout in its pointer; ``linear`` is the layout below it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.tensors.overhung import OverhungPointer
from tilewright.lang.tensors.packed import PackedPointer
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    composition,
    flatten_to_tuple,
    make_layout,
    size,
    slice_,
    slice_and_offset,
    unflatten,
)


def layout_of(x: Any) -> Any:
    """The layout of a tensor; a layout itself; the column-major layout of a shape."""
    if isinstance(x, (Layout, ComposedLayout)):
        return x
    return x.linear if hasattr(x, "linear") else make_layout(x)


def rearranged(x: Any, f: Callable[[Any], Any]) -> Any:
    """``f`` of a layout, or the tensor with ``f`` of its layout."""
    if not hasattr(x, "with_layout"):
        return f(layout_of(x))
    return x.with_layout(f(x.linear))


def sliced(x: Any, coord: Any) -> Any:
    """A tensor's slice, or (layout, offset) of a layout's."""
    if isinstance(x, ComposedLayout):
        layout, offset = slice_and_offset(coord, x)
        return (
            _split_at_bits(layout, slice_(x.outer, coord), x.inner) if isinstance(layout, Layout) else layout
        ), offset
    if isinstance(x, Layout):
        return slice_and_offset(coord, x)
    return x[coord]


def need_whole_tiles(x: Any, tile: tuple[int, ...], who: str) -> Any:
    """``x``; refused where it is a shared-memory tensor that the tile overhangs: its partitions would reach into other
    memory. ``who`` names the caller in the error.

    Global tensors may be overhung, their copies are predicated; layouts and coordinates have no memory to leave. Of a
    tensor that is partitioned already, (MMA, MMA_M, MMA_K, ...), the error waits for an access: published programs make
    such a part for its shape alone.
    """
    fault = _overhang(x, tile, who)
    if not fault:
        return x
    modes = x.linear.shape
    if not (isinstance(modes, tuple) and len(modes) > 2 and isinstance(modes[0], tuple)):
        raise ConstraintError(f"{fault[0]}: choose a tile of whole multiples of {fault[1]}")
    why = f"{fault[0]}: its modes are those of a part already, (MMA, MMA_M, ...); use it without {who.split()[0]}"
    if isinstance(x.engine, PackedPointer):
        under = _refused_at_accesses(x.engine.under, why)
        return Tensor(PackedPointer(under, x.engine.dtype, x.engine.rest), x.linear)
    return Tensor(_refused_at_accesses(x.engine, why), x.linear)


def for_copies_with_predicates(x: Any, tile: tuple[int, ...], who: str) -> Any:
    """``x``; a shared-memory tensor that the tile overhangs is one whose parts can be copied with predicates only."""
    fault = _overhang(x, tile, who)
    if not fault:
        return x
    why = f"{fault[0]}: choose a tile of whole multiples of {fault[1]}, or copy with pred="
    return Tensor(_refused_at_accesses(x.engine, why), x.linear)


def _refused_at_accesses(pointer: Any, why: str) -> OverhungPointer:
    if type(pointer) is not Pointer:
        raise ConstraintError(why)
    return OverhungPointer.of(pointer, why)


def _overhang(x: Any, tile: tuple[int, ...], who: str) -> tuple[str, int] | None:
    """The error, and the extent of the tile, where ``x`` is a tensor in shared memory that the tile overhangs."""
    pointer = getattr(x, "engine", None)
    if getattr(pointer, "memspace", None) is not AddressSpace.smem:
        return None
    for mode, step in enumerate(tile):
        extent = size(x.linear[mode])
        if isinstance(extent, int) and extent % step:
            what = f"{who}: mode {mode} of the shared-memory tensor {x.linear} has {extent} elements"
            return f"{what}, which tiles of {step} do not divide", step
    return None


def _split_at_bits(layout: Layout, plain: Layout, swizzle: Any) -> Layout:
    """``layout``, the slice of a swizzled layout whose swizzle has become strides, with one shape for every thread.

    Which modes have merged depends on the thread's own offset; CuTe, where that offset is a run-time number, splits a
    mode at every bit that the swizzle touches. ``plain`` is the same slice without the swizzle.
    """
    if not isinstance(swizzle, Swizzle):
        return layout
    b, m, gap = swizzle.bits, swizzle.base, abs(swizzle.shift) - swizzle.bits
    bits = (1 << m, *[2] * b, 1 << gap, *[2] * b, 1)
    # Strides that never merge (5 is not an extent): only the shape of the composition is of interest.
    shape = composition(Layout(bits, tuple(5**i << 40 if i else 1 for i in range(len(bits)))), plain).shape
    leaves, strides, position = flatten_to_tuple(shape), [], 1
    for extent in leaves:
        strides.append(layout(position) if extent > 1 else 0)
        position *= extent
    return Layout(shape, unflatten(strides, shape))
