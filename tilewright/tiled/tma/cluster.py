"""Which blocks of a cluster share operands, and whom a commit of ``tcgen05`` tells: the cluster as (V, M, N, K)."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.layout import Layout, make_layout, size, tiled_divide
from tilewright.tiled.tma.partition import multicast_mask


def cluster_layout_vmnk(cluster_shape_mnk: tuple[int, int, int], ctas: int) -> Layout:
    """((V), M, N, K) to the rank of a block: V are the blocks of one MMA, M counts MMAs.

    ConstraintError where pairs do not divide the cluster along M.

    >>> cluster_layout_vmnk((4, 2, 1), 2)
    ((2),2,2,1):((1),2,4,0)
    """
    if ctas not in (1, 2) or cluster_shape_mnk[0] % ctas:
        raise ConstraintError(f"a cluster {cluster_shape_mnk} does not consist of MMAs of {ctas} blocks along M")
    made: Layout = tiled_divide(make_layout(cluster_shape_mnk), (ctas,))
    return made


def operand_mask(layout_vmnk: Layout, coord_vmnk: Any, operand: str) -> Any:
    """The blocks that receive what a block loads of an operand: A goes along N, B along M, each within its half of a
    pair; scale factors of B (``"SFB"``) go to both halves.

    >>> bin(operand_mask(cluster_layout_vmnk((4, 2, 1), 2), (1, 0, 0, 0), "B"))
    '0b1010'
    """
    modes = {"A": (2,), "SFA": (2,), "B": (1,), "SFB": (0, 1)}.get(operand)
    if modes is None:
        raise ConstraintError(f"operand_mask: the operand is {operand!r}; it is A, B, SFA or SFB")
    return multicast_mask(layout_vmnk, coord_vmnk, modes)


def commit_mask(layout_vmnk: Layout, coord_vmnk: Any, mcast_mode_mn: tuple[int, int] = (1, 1)) -> Any:
    """The blocks whose loads an MMA of this block has read: ``tcgen05.commit`` tells them that the stage is free.
    ``mcast_mode_mn``: whether A is multicast along N, and B along M.

    >>> bin(commit_mask(cluster_layout_vmnk((2, 2, 1), 1), (0, 1, 0, 0)))
    '0b1011'
    """
    a, b = mcast_mode_mn
    of_a = multicast_mask(layout_vmnk, coord_vmnk, (0, 2) if a else (0,))
    return multicast_mask(layout_vmnk, coord_vmnk, (0, 1) if b else (0,)) | of_a


def commit_arrivals(layout_vmnk: Layout) -> int:
    """How many commits a stage waits for: those of all MMAs that read what a block has loaded.

    >>> commit_arrivals(cluster_layout_vmnk((4, 2, 1), 2))
    3
    """
    return int(size(layout_vmnk[1]) + size(layout_vmnk[2])) - 1
