"""The memory that one copy instruction needs: a thread's values side by side, and aligned.

The errors name the first thread and values that break it, the tensor, and a layout of it that would do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.atoms.copy import CopyInstruction
from tilewright.errors import ConstraintError, LayoutError
from tilewright.ir.core import Value
from tilewright.ir.types import PtrType
from tilewright.lang.tensors.pointer import element_bytes
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import (
    Layout,
    coalesce,
    flatten_to_tuple,
    format_tree,
    is_static,
    make_layout,
    product,
    size,
    unflatten,
)
from tilewright.layout.evaluate import static_offsets
from tilewright.tiled.provenance import Partition, partition_of


def check_contiguous(atom: CopyInstruction, side: str, tensor: Tensor, values: Layout) -> None:
    """The values of one instruction follow each other in memory, and a swizzle does not tear them apart."""
    count = int(size(values))
    if count == 1:
        return
    if not is_static(values):
        values = coalesce(values)  # a mode of one element may have any stride
    if not is_static(values):
        fix = "mark the mode with stride 1 as such (leading_dim)"
        raise ConstraintError(_apart(atom, side, tensor, count, 1, "a run-time number of", fix))
    where = static_offsets(values)
    for v in range(1, count):
        if where[v] != where[0] + v:
            raise ConstraintError(_apart(atom, side, tensor, count, v, where[v] - where[v - 1]))
    swizzle = getattr(tensor.engine, "swizzle", None)
    wide = count * element_bytes(tensor.element_type)
    if swizzle is not None and wide > 1 << swizzle.base:
        kept = (1 << swizzle.base) // element_bytes(tensor.element_type)
        raise ConstraintError(
            f"{atom}: reads or writes {count} contiguous elements for each thread, but the swizzle {swizzle} of the "
            f"{side}, {_named(tensor)}, keeps {1 << swizzle.base} bytes together: thread T0's values V{kept - 1} and "
            f"V{kept} may part. Raise the swizzle's M by {(wide // (1 << swizzle.base)).bit_length() - 1} or copy "
            f"{8 * (1 << swizzle.base)} bits"
        )


def _apart(
    atom: CopyInstruction, side: str, tensor: Tensor, count: int, v: int, distance: Any, *first_fixes: str
) -> str:
    width = 8 * element_bytes(tensor.element_type)
    origin = partition_of(tensor)
    at = _coordinates(origin, count) if origin is not None else None
    place = f" (at {at[v - 1]} and {at[v]})" if at is not None else ""
    text = (
        f"{atom}: reads or writes {count} contiguous elements for each thread, but in the {side}, {_named(tensor)}, "
        f"thread T0's values V{v - 1} and V{v}{place} are {distance} elements apart"
    )
    fixes = list(first_fixes)
    if origin is not None and at is not None and (better := _contiguous_layout(origin, at)) is not None:
        fixes.append(f"give the tensor a layout such as {better}")
    if hint := atom.contiguity_hint():
        fixes.append(hint)
    else:
        run = 1
        while 2 * run <= v:
            run *= 2
        if run * width >= atom.least_bits(width):
            fixes.append(f"copy {run * width} bits at a time (num_bits_per_copy)")
        fixes.append("let the copy's values run along the mode with stride 1")
    return f"{text}: {', or '.join(fixes)}"


def check_aligned(atom: CopyInstruction, side: str, tensor: Tensor, values: Layout, pointers: list[Value]) -> None:
    """Where a stride of the tensor breaks the alignment, say which; what else is wrong the instruction says itself."""
    width = element_bytes(tensor.element_type)
    needed = int(size(values)) * width
    kinds = [p.type for p in pointers if isinstance(p.type, PtrType)]
    origin = partition_of(tensor) if any(k.align < needed for k in kinds) else None
    if origin is None or not isinstance(origin.whole, Layout):
        return
    extents, strides = flatten_to_tuple(origin.whole.shape), flatten_to_tuple(origin.whole.stride)
    per = needed // width
    for mode, stride in enumerate(strides):
        if not isinstance(stride, int) and stride.divisibility % per:
            bits = 8 * width * (stride.divisibility & -stride.divisibility)
            fewer = f", or copy {bits} bits at a time" if bits >= atom.least_bits(8 * width) else ""
            raise ConstraintError(
                f"{atom}: each address must be {needed}-byte aligned, but in the {side}, {_named(tensor)}, a step "
                f"along mode {mode} is a run-time number of {width}-byte elements, known to be a multiple of "
                f"{stride.divisibility} only: promise a multiple of {per} (mark_compact_shape_dynamic with "
                f"divisibility={per}, cute.assume){fewer}"
            )
    if not is_static(origin.whole):
        return
    for mode, stride in enumerate(strides):
        if extents[mode] > 1 and stride > 1 and stride % per:
            bits = 8 * (stride * width & -(stride * width))
            fewer = f", or copy {bits} bits at a time" if bits >= atom.least_bits(8 * width) else ""
            raise ConstraintError(
                f"{atom}: each address must be {needed}-byte aligned, but in the {side}, {_named(tensor)}, a step "
                f"along mode {mode} is {stride} x {width} bytes, no multiple of {needed}: thread T0's value V0 and its "
                f"neighbours' along that mode cannot all be. Give the tensor a layout such as "
                f"{_padded(origin.whole, per)}{fewer}"
            )


def _padded(layout: Layout, per: int) -> Layout:
    """``layout`` with the order of its modes and every stride but 1 a multiple of ``per``."""
    extents, strides = flatten_to_tuple(layout.shape), list(flatten_to_tuple(layout.stride))
    reached = 1
    for mode in sorted(range(len(strides)), key=lambda m: strides[m]):
        if strides[mode] > 1:
            strides[mode] = -(-max(strides[mode], reached) // per) * per
        if strides[mode]:
            reached = strides[mode] * extents[mode]
    return Layout(layout.shape, unflatten(strides, layout.shape))


def _named(tensor: Tensor) -> str:
    origin = partition_of(tensor)
    if origin is None:
        return f"the part {tensor.linear}"
    swizzle = f"{origin.swizzle} o " if origin.swizzle is not None else ""
    return f"the part {tensor.linear} of the tensor {swizzle}{origin.whole}"


def _coordinates(origin: Partition, count: int) -> list[str] | None:
    """Where thread 0's first values are in the whole tensor."""
    index = _indices(origin, count, _column_major(origin))
    if index is None:
        return None
    return [format_tree(_column_major(origin).get_hier_coord(i)) for i in index]


def _column_major(origin: Partition) -> Layout:
    """The whole tensor's shape (the tile's where it is known at run time only) numbered from 0."""
    shape = origin.whole.shape
    if not is_static(shape):
        tiler = getattr(origin.by, "tiler", None)
        shape = tuple(size(t) for t in tiler) if tiler is not None else origin.by.tile_shape_mnk
    return make_layout(shape)


def _indices(origin: Partition, count: int, whole: Layout) -> list[int] | None:
    try:
        thread = origin.by.get_slice(0)
        part, offset = getattr(thread, f"partition_{origin.operand}")(whole)
        return [offset + part(i) for i in range(count)]
    except (LayoutError, ConstraintError):
        return None


def _contiguous_layout(origin: Partition, at: list[str]) -> Layout | None:
    """A compact layout of the tensor's shape in which the values are side by side: modes in the order they vary."""
    numbers = _column_major(origin)
    flat = flatten_to_tuple(numbers.shape)
    index = _indices(origin, len(at), numbers) or []
    order: list[int] = []
    for a, b in zip(index, index[1:], strict=False):
        for mode, (x, y) in enumerate(zip(_digits(a, flat), _digits(b, flat), strict=True)):
            if y > x and mode not in order:
                order.append(mode)
    order += [mode for mode in reversed(range(len(flat))) if mode not in order]
    strides = {mode: product(tuple(flat[m] for m in order[:i])) for i, mode in enumerate(order)}
    made = Layout(numbers.shape, unflatten([strides[m] for m in range(len(flat))], numbers.shape))
    indices = _indices(origin, len(at), made)
    return made if indices and indices == list(range(indices[0], indices[0] + len(at))) else None


def _digits(index: int, extents: tuple[int, ...]) -> Iterator[int]:
    for extent in extents:
        yield index % extent
        index //= extent
