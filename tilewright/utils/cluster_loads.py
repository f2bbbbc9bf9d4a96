"""The TMA operations that load the operands of MMAs in clusters."""

from __future__ import annotations

from typing import Any

from tilewright.cute.nvgpu.cpasync import CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileG2SOp
from tilewright.layout import size


def cluster_shape_to_tma_atom_A(
    cluster_shape_mnk: Any, atom_thr_id: Any, *, loc: Any = None, ip: Any = None
) -> CopyBulkTensorTileG2SOp:
    """The TMA operation that loads A: multicast where blocks are side by side along N. ``atom_thr_id``: how many
    blocks work on one MMA; two need sm_100 (ConstraintError).

    >>> from tilewright.layout import make_layout
    >>> cluster_shape_to_tma_atom_A((1, 2, 1), make_layout(1)).multicast
    True
    """
    return _load(cluster_shape_mnk, 1, atom_thr_id)


def cluster_shape_to_tma_atom_B(
    cluster_shape_mnk: Any, atom_thr_id: Any, *, loc: Any = None, ip: Any = None
) -> CopyBulkTensorTileG2SOp:
    """The TMA operation that loads B: multicast where MMAs of other blocks are side by side along M.

    >>> from tilewright.layout import make_layout
    >>> cluster_shape_to_tma_atom_B((2, 1, 1), make_layout(2)).multicast  # one MMA of a pair
    False
    """
    return _load(cluster_shape_mnk, 0, atom_thr_id)


def _load(cluster_shape_mnk: Any, across: int, atom_thr_id: Any) -> CopyBulkTensorTileG2SOp:
    blocks = int(size(cluster_shape_mnk[across]))
    shared = int(size(atom_thr_id))
    if across == 0:
        blocks //= shared
    return (CopyBulkTensorTileG2SMulticastOp if blocks > 1 else CopyBulkTensorTileG2SOp)(shared)


def cluster_shape_to_tma_atom_SFB(
    cluster_shape_mnk: Any, atom_thr_id: Any, *, loc: Any = None, ip: Any = None
) -> CopyBulkTensorTileG2SOp:
    """The TMA operation that loads the scale factors of B, which all blocks along M have, both of a pair included:
    multicast where there are several.

    >>> from tilewright.layout import make_layout
    >>> cluster_shape_to_tma_atom_SFB((2, 1, 1), make_layout(2)).multicast
    True
    """
    several = int(size(cluster_shape_mnk[0])) > 1
    return (CopyBulkTensorTileG2SMulticastOp if several else CopyBulkTensorTileG2SOp)(int(size(atom_thr_id)))
