"""The parts of a tile that the blocks of a cluster copy, and who receives them."""

from __future__ import annotations

import math
from typing import Any

from tilewright.errors import ConstraintError, LayoutError
from tilewright.lang.numbers.numeric import Int16
from tilewright.lang.tensors.tensor import Tensor, unwrap_tree
from tilewright.layout import (
    Layout,
    coalesce,
    composition,
    cosize,
    format_tree,
    is_static,
    logical_divide,
    make_layout,
    rank,
    right_inverse,
    size,
    slice_,
    tile_to_shape,
)
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.tma.atom import TmaCopyAtom
from tilewright.tiled.tma.plan import TmaPlan


def partition_layouts(elements: int, cta: Any, cta_layout: Layout, smem: Any, gmem: Any) -> tuple[Any, Any, Any]:
    """``(smem, gmem)`` layouts of ``tma_partition`` as ((TMA, rest of the tile), ...), and the element of mode 0 at
    which the part of block ``cta`` begins.

    ``elements`` is what one instruction copies for all blocks together; mode 0 of both layouts is the tile.
    """
    first = make_layout(smem[0])
    if size(first) != size(make_layout(gmem[0])):
        raise ConstraintError(
            f"tma_partition: mode 0 of the shared-memory tensor {smem} and of the global one {gmem} differ in size: "
            "group the modes of the tile into mode 0 of both (cute.group_modes(t, 0, 2))"
        )
    if not is_static(first):
        raise ConstraintError(f"tma_partition: the tile must be static, not {first}")
    order = tile_to_shape(make_layout(right_inverse(first)), (size(first),))
    cut = logical_divide(order, make_layout(elements))
    start = cta_layout(cta) * (elements // cosize(cta_layout))

    def part(layout: Layout) -> Any:
        whole = composition(layout, (cut, *[None] * (rank(layout) - 1)))
        return coalesce(whole, target_profile=((1, 1),))

    return part(smem), part(gmem), start


def multicast_mask(cta_layout_vmnk: Layout, coord: Any, modes: tuple[int, ...]) -> Any:
    """Bit ``cta_layout_vmnk(c)`` for every block ``c`` that differs from ``coord`` in ``modes`` only."""
    bad = [m for m in modes if not isinstance(m, int) or not 0 <= m < rank(cta_layout_vmnk)]
    if bad:
        raise ConstraintError(
            f"a multicast mode of {cta_layout_vmnk} is 0 to {rank(cta_layout_vmnk) - 1}, not {bad[0]!r}"
        )
    origin = tuple([0 if k in modes else c for k, c in enumerate(coord)])
    image = 0
    others = slice_(cta_layout_vmnk, tuple([None if k in modes else 0 for k in range(rank(cta_layout_vmnk))]))
    for i in range(size(others) if modes else 1):
        image |= 1 << (others(i) if modes else 0)
    if image >> 16:
        raise ConstraintError(
            f"a multicast mask has 16 bits, and {cta_layout_vmnk} has more blocks: {format_tree(coord)}"
        )
    start = cta_layout_vmnk(origin)
    return image << start


def tma_partition(
    atom: CopyAtom,
    cta_coord: Any,
    cta_layout: Layout,
    smem_tensor: Tensor,
    gmem_tensor: Tensor,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Tensor, Tensor]:
    """``(shared-memory tensor, TMA tensor)`` as ((TMA, rest of the tile), ...) for the block at ``cta_coord`` of
    ``cta_layout``, the blocks that share the tile by multicast (``make_layout(1)`` and 0 for one block).

    Mode 0 of both tensors is the tile (``cute.group_modes(t, 0, 2)``); the other modes, stages of shared memory and
    tiles of the tensor, stay as they are. Slice both to one tile and copy with ``cute.copy``.

    Args:
        atom: the first result of ``make_tiled_tma_atom``.
        cta_coord: the block's place in ``cta_layout``.
        cta_layout: as many blocks as the atom's ``num_multicast``.
        smem_tensor: (tile, stages...) in shared memory.
        gmem_tensor: (tile, tiles...) of the second result of ``make_tiled_tma_atom``.

    Raises:
        ConstraintError: mode 0 is not the tile, or the blocks are not those of the atom.

    >>> from tilewright import Float16, utils
    >>> from tilewright.cute.nvgpu import cpasync, warpgroup
    >>> from tilewright.cute.runtime import from_dlpack
    >>> @cute.kernel
    ... def show(load: cute.CopyAtom, a: cute.Tensor, layout: cute.ComposedLayout):
    ...     sA = utils.SmemAllocator().allocate_tensor(Float16, layout.outer, 1024, swizzle=layout.inner)  # two stages
    ...     gA = cute.local_tile(a, (64, 64), (None, 0))  # (64, 64, tiles along M)
    ...     one = cute.make_layout(1)  # no cluster
    ...     tAsA, tAgA = cpasync.tma_partition(load, 0, one, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
    ...     print(tAsA.shape, tAgA.shape)  # what one copy brings, and the stages; the same, and the tiles
    >>> @cute.jit
    ... def run(a: cute.Tensor):
    ...     atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, Float16)
    ...     layout = cute.tile_to_shape(atom, (64, 64, 2), (0, 1, 2))
    ...     one_stage = cute.slice_(layout, (None, None, 0))
    ...     load, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, one_stage, (64, 64))
    ...     show(load, tensor, layout).launch(grid=(1, 1, 1), block=(32, 1, 1))
    >>> run(from_dlpack(np.zeros((256, 128), np.float16), assumed_align=16))
    ((4096, 1), (1, 2)) (((64, 64), 1), 4)
    """
    if not isinstance(atom, TmaCopyAtom):
        raise ConstraintError(f"tma_partition takes an atom of make_tiled_tma_atom, not {atom!r}")
    if not isinstance(smem_tensor, Tensor) or not isinstance(gmem_tensor, Tensor):
        raise ConstraintError("tma_partition takes the shared-memory tensor, then the tiled TMA tensor")
    if not gmem_tensor.is_coordinate:
        raise ConstraintError(
            f"tma_partition: {gmem_tensor} is not a TMA tensor: tile the second result of make_tiled_tma_atom"
        )
    cta_layout = make_layout(cta_layout) if not isinstance(cta_layout, Layout) else cta_layout
    if cosize(cta_layout) != atom.plan.num_multicast:
        raise ConstraintError(
            f"tma_partition: the blocks {cta_layout} that share the tile are {cosize(cta_layout)}, but the atom "
            "was made "
            f"with num_multicast={atom.plan.num_multicast}"
        )
    _check_grouped(atom.plan, smem_tensor, gmem_tensor)
    try:
        smem, gmem, start = partition_layouts(
            atom.plan.elements_per_instruction,
            unwrap_tree(cta_coord),
            cta_layout,
            smem_tensor.linear,
            gmem_tensor.linear,
        )
    except LayoutError as error:
        raise ConstraintError(
            f"tma_partition: {smem_tensor} and {gmem_tensor} are not tiles of boxes of "
            f"{atom.plan.elements_per_instruction} "
            f"elements: {error}"
        ) from error
    return tuple(
        [  # type: ignore[return-value]  # two of them
            tensor.with_layout(layout, layout(((start, 0), *[0] * (rank(layout) - 1))))
            for tensor, layout in ((smem_tensor, smem), (gmem_tensor, gmem))
        ]
    )


def _check_grouped(plan: TmaPlan, smem_tensor: Tensor, gmem_tensor: Tensor) -> None:
    """Refuse tensors whose mode 0 holds no whole boxes: their tile still has several modes."""
    for name, tensor in (("shared-memory", smem_tensor), ("global", gmem_tensor)):
        sizes = [size(mode) for mode in tensor.linear]
        if not isinstance(sizes[0], int) or sizes[0] % plan.elements_per_instruction == 0:
            continue
        tile = int(size(plan.tile))
        modes = next((n for n in range(2, len(sizes) + 1) if _is_product(sizes[:n], tile)), 0)
        raise ConstraintError(
            f"tma_partition: mode 0 of the {name} tensor, of shape {format_tree(tensor.shape)}, has {sizes[0]} "
            f"elements, and the atom copies tiles of {format_tree(plan.tiler_mn)}: {tile} elements, in boxes of "
            f"{plan.elements_per_instruction}. Mode 0 is the whole tile, the modes after it are stages or tiles: "
            + (
                f"here modes 0 to {modes - 1} are the tile, so pass cute.group_modes(tensor, 0, {modes})"
                if modes
                else "pass tensors tiled as the atom is (cute.local_tile), with cute.group_modes(tensor, 0, 2)"
            )
        )


def _is_product(sizes: list[Any], whole: int) -> bool:
    return all(isinstance(n, int) for n in sizes) and math.prod(sizes) == whole


def create_tma_multicast_mask(
    cta_layout_vmnk: Layout, cta_coord_vmnk: Any, mcast_mode: Any, *, loc: Any = None, ip: Any = None
) -> Any:
    """The multicast mask (Int16) of the blocks that differ from ``cta_coord_vmnk`` only in mode ``mcast_mode`` (or in
    the modes of a tuple).

    >>> create_tma_multicast_mask(Layout((1, 2, 4, 1), (0, 4, 1, 0)), (0, 0, 3, 0), 2).value
    15
    """
    modes = tuple(mcast_mode) if isinstance(mcast_mode, (tuple, list)) else (mcast_mode,)
    mask = multicast_mask(cta_layout_vmnk, unwrap_tree(tuple(cta_coord_vmnk)), modes)
    return Int16(mask if not isinstance(mask, int) or mask < 1 << 15 else mask - (1 << 16))
