"""``cute.experimental``: tensors in any memory, the part of one thread, and copies that stay within bounds."""

from __future__ import annotations

import math
from typing import Any, Unpack

from tilewright.atoms.universal import UniversalCopy
from tilewright.errors import ConstraintError
from tilewright.lang.device.smem import SmemAllocator
from tilewright.lang.numbers.numeric import Boolean, Integer, as_numeric
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.bounded_tensor import BoundedTensor
from tilewright.lang.tensors.layout_functions import zipped_divide
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.registers import Registers
from tilewright.lang.tensors.tensor import Tensor, unwrap_tree
from tilewright.layout import Layout, composition, elem_less, flatten_to_tuple, make_layout, size
from tilewright.tiled import staged_copy
from tilewright.tiled.atom import CopyAtom


def allocate(
    dtype: Any,
    address_space: AddressSpace,
    layout: Any,
    *,
    alignment: int | None = None,
    loc: Any = None,
    ip: Any = None,
) -> Tensor:
    """A fresh tensor in registers (``rmem``) or in the block's shared memory (``smem``), of a static layout.

    ``alignment`` is in bytes; registers have none.
    """
    if address_space is AddressSpace.rmem:
        return make_rmem_tensor(layout, dtype)
    if address_space is AddressSpace.smem:
        return SmemAllocator().allocate_tensor(dtype, layout, alignment or 1)
    raise ConstraintError(f"allocate: {address_space} is not a memory of a kernel's own; registers (rmem) and smem are")


def partition(
    tensor: Tensor, thr_idx: Any, *, layout_tv: Layout, tiler: Any, loc: Any = None, ip: Any = None
) -> Tensor:
    """The elements of thread ``thr_idx`` in every tile of ``tensor``: (values, tiles).

    ``layout_tv`` maps (thread, value) to the elements of a tile of shape ``tiler``, column-major.
    """
    tiles = zipped_divide(tensor, tiler)  # (tile, rest)
    of_threads = tiles.through(lambda layout: make_layout(composition(layout[0], layout_tv), layout[1]))
    return of_threads[(thr_idx, None), None]


def copy(
    src: Tensor,
    dst: Tensor,
    *,
    copy_atom: CopyAtom,
    loc: Any = None,
    ip: Any = None,
    **options: Unpack[staged_copy.CopyOptions],
) -> None:
    """``cute.copy(copy_atom, src, dst)`` of the elements that are inside the kernel's arguments.

    What a load into registers would read outside becomes zero; stores outside are left out. Where the extents are not
    known to be multiples of what one instruction moves, elements are copied one by one.

    Raises ConstraintError where an instruction that cannot move single elements would cross a bound.
    """
    sides = [x for x in (src, dst) if isinstance(x, BoundedTensor)]
    if not sides:
        return staged_copy.copy(copy_atom, src, dst, **options)
    if isinstance(dst.engine, Registers):
        dst.fill(0)
    values = copy_atom.num_val_src
    if all(_never_crosses(side, values) for side in sides):
        return staged_copy.copy(copy_atom, src, dst, pred=_predicates(sides, values), **options)
    if not isinstance(copy_atom.instruction, UniversalCopy):
        raise ConstraintError(
            f"copy: {copy_atom.instruction} moves {values} elements at once, and the extents {sides[0].extents} are "
            f"not known to be multiples of it: mark_compact_shape_dynamic(divisibility={values}), or a narrower copy"
        )
    return staged_copy.basic_copy_if(_predicates(sides, 1), src, dst)


def _never_crosses(side: BoundedTensor, values: int) -> bool:
    """Whether ``values`` neighbours are inside or outside together: they run along modes whose extents they divide."""
    first, last = (flatten_to_tuple(unwrap_tree(side.coords.linear(i))) for i in (0, values - 1))
    if values > int(size(side.linear)) or not all(isinstance(n, int) for n in (*first, *last)):
        return values == 1
    extents = flatten_to_tuple(side.extents)
    # A tile of fewer modes gives shorter coordinates: it has one place along the modes after them.
    first, last = ((*c, *[0] * (len(extents) - len(c))) for c in (first, last))
    spans = [b - a + 1 for a, b in zip(first, last, strict=True)]
    return math.prod(spans) == values and all(
        span == 1 or _divisor(extent) % span == 0 for span, extent in zip(spans, extents, strict=True)
    )


def _divisor(extent: Any) -> int:
    extent = unwrap_tree(extent)
    return extent.divisibility if isinstance(extent, Integer) else int(extent)


def _predicates(sides: list[BoundedTensor], values: int) -> Tensor:
    """One Boolean for every ``values`` elements: whether the first of them is inside."""
    count = int(size(sides[0].linear)) // values
    inside = make_rmem_tensor(count, Boolean)
    for i in range(count):
        predicates = [as_numeric(elem_less(side.coords[i * values], side.extents)) for side in sides]
        inside[i] = predicates[0] if len(predicates) == 1 else predicates[0] & predicates[1]
    return inside
