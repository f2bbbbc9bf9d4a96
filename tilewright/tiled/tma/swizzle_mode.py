"""The swizzle of a shared-memory layout as TMA knows it."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.tensormap import ATOM_32B
from tilewright.ir.types import ScalarType
from tilewright.layout import ComposedLayout, Layout, Swizzle


def split_swizzle(smem: Any, source: ScalarType) -> tuple[Layout, int]:
    """The shared-memory layout without its swizzle, and the TMA swizzle mode (``SWIZZLE_SPANS``).

    Both ways to state a swizzle are known by their base: on byte addresses it is 4 (``Sw<3,4,3>``, as
    ``make_smem_layout_atom`` and the layouts made from it have it), on elements it is less for wider ones
    (``Sw<3,3,3>`` for 16 bits). Chunks of 32 bytes are ``Sw<2,5,2>``.
    """
    if isinstance(smem, Layout):
        return smem, 0
    if not isinstance(smem, ComposedLayout) or not isinstance(smem.inner, Swizzle):
        raise ConstraintError(f"TMA copies to a layout or swizzled layout of shared memory, not {smem}")
    if not isinstance(smem.outer, Layout) or (not isinstance(smem.offset, int) or smem.offset != 0):
        raise ConstraintError(f"TMA: the shared-memory layout {smem} must begin at offset 0: slice the stages off at 0")
    swizzle = smem.inner
    if swizzle.bits == 0:
        return smem.outer, 0
    in_elements = (128 // source.memory_bits).bit_length() - 1
    if (swizzle.bits, swizzle.shift) == (2, 2) and swizzle.base in (5, in_elements + 1):
        return smem.outer, ATOM_32B
    if swizzle.base not in (4, in_elements) or swizzle.shift != 3 or swizzle.bits > 3:
        bits = min(swizzle.bits, 3)
        raise ConstraintError(
            f"TMA has the swizzles Sw<1|2|3,4,3> and Sw<2,5,2> of byte addresses; {swizzle} is not one of them: use "
            f"Sw<{bits},4,3> (or Sw<{bits},{in_elements},3>, the same in elements of {source}), as "
            "make_smem_layout_atom gives it"
        )
    return smem.outer, swizzle.bits
