"""Copies by TMA of whole tiles, without partitioning them first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilewright.atoms.tma import TmaLoad
from tilewright.errors import ConstraintError
from tilewright.lang.device.threads import block_in_cluster_idx
from tilewright.lang.launch.jit import jit
from tilewright.lang.tensors.layout_functions import filter_zeros, group_modes, rank
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout.layout import make_layout
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.staged_copy import copy
from tilewright.tiled.tma.atom import TmaCopyAtom
from tilewright.tiled.tma.partition import create_tma_multicast_mask, tma_partition


def block_copy(
    atom: CopyAtom,
    src: Tensor,
    dst: Tensor,
    *,
    tma_multicast: Mapping[str, Any] | None = None,
    loc: Any = None,
    ip: Any = None,
    **kwargs: Any,
) -> None:
    """Copy one tile between shared memory and a TMA tensor: ``cpasync.tma_partition``, then ``cute.copy``, to which the
    other keywords go (``tma_bar_ptr``, ``cache_policy``, ...).

    ``src`` and ``dst`` are tiles of one shape, (bM, bK), or with these as one mode, ((bM, bK)); one of them is in
    shared memory, the other a tile of the second result of ``make_tiled_tma_atom``. With ``tma_multicast``,
    ``{"cluster_shape": (m, n), "multicast_dim": "M"}``, the blocks of a cluster that have the same coordinate along M
    (or "N") share the tile. Each of them calls, and the first one issues the copy, which counts the bytes of a whole
    tile at the mbarrier of each. ``"use_2cta_mma_inst": True``: two blocks along M work on one MMA, and have tiles of
    their own.

    Raises ConstraintError for other tensors, and for a multicast store.

    >>> from tilewright import Float32
    >>> from tilewright.cute.nvgpu import cpasync
    >>> @cute.kernel
    ... def kernel(store: cute.CopyAtom, tD: cute.Tensor):
    ...     t, _, _ = cute.arch.thread_idx()
    ...     tile = cute.make_tensor(cute.arch.alloc_smem(Float32, 128, 128), cute.make_layout((8, 16), stride=(16, 1)))
    ...     for row in range(4):
    ...         tile[2 * row + t // 16, t % 16] = Float32(t)
    ...     cute.arch.fence_proxy("async.shared", space="cta")
    ...     cute.arch.sync_threads()
    ...     block_copy(store, tile, cute.local_tile(tD, (8, 16), (1, 0)))  # by all threads of a warp
    ...     cute.arch.cp_async_bulk_commit_group()
    ...     cute.arch.cp_async_bulk_wait_group(0)
    >>> @cute.jit
    ... def host(d: cute.Tensor):
    ...     layout = cute.make_layout((8, 16), stride=(16, 1))
    ...     store, tD = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), d, layout, (8, 16))
    ...     kernel(store, tD).launch(grid=(1, 1, 1), block=(32, 1, 1))
    >>> d = np.zeros(260, np.float32)
    >>> d = d[-d.ctypes.data % 16 // 4 :][:256].reshape(16, 16)  # which begins at a multiple of 16 bytes
    >>> host(d)
    >>> d[7, :3].tolist(), d[8, :3].tolist(), d[9, :3].tolist()
    ([0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [16.0, 17.0, 18.0])
    """
    if not isinstance(src, Tensor) or not isinstance(dst, Tensor) or src.is_coordinate == dst.is_coordinate:
        raise ConstraintError(
            "block_copy: one side must be a tile of a TMA tensor (the second result of make_tiled_tma_atom), the other "
            f"one in shared memory, not {src} and {dst}"
        )
    gmem, smem = (src, dst) if src.is_coordinate else (dst, src)
    smem, gmem = tma_partition(atom, 0, make_layout(1), _as_one_mode(smem), _as_one_mode(gmem))
    # Scale factors: elements that share one have stride 0 on both sides, and are copied once.
    smem, gmem = filter_zeros(smem), filter_zeros(gmem)
    parts = (gmem, smem) if src.is_coordinate else (smem, gmem)
    cluster, shared = _sharing(tma_multicast)  # blocks (V, M, N)
    if cluster[shared] == 1:
        copy(atom, *parts, **kwargs)
        return
    if not isinstance(atom, TmaCopyAtom) or not isinstance(atom.instruction, TmaLoad):
        raise ConstraintError(f"block_copy: tma_multicast is for loads, not for {atom.instruction}")
    load = replace(atom.instruction, multicast=True)
    everywhere = TmaCopyAtom(atom.op, load, atom.value_type, atom.plan, atom.tensor_map)
    x, y, _ = block_in_cluster_idx()
    place = (x % cluster[0], x // cluster[0], y)
    mask = create_tma_multicast_mask(make_layout(cluster), place, shared)
    _copy_where(place[shared] == 0, everywhere, *parts, mcast_mask=mask, **kwargs)


@jit
def _copy_where(condition: Any, atom: CopyAtom, src: Tensor, dst: Tensor, **kwargs: Any) -> None:
    if condition:
        copy(atom, src, dst, **kwargs)


def _as_one_mode(tile: Tensor) -> Tensor:
    grouped: Tensor = group_modes(tile, 0, rank(tile)) if rank(tile) > 1 else tile
    return grouped


def _sharing(tma_multicast: Mapping[str, Any] | None) -> tuple[tuple[int, int, int], int]:
    """The blocks (V, M, N) of a cluster, V of them for one MMA, and the mode along which they share the tile."""
    if tma_multicast is None:
        return (1, 1, 1), 0
    shape, dim = tuple(tma_multicast.get("cluster_shape", ())), tma_multicast.get("multicast_dim")
    pair = 2 if tma_multicast.get("use_2cta_mma_inst", False) else 1
    if dim not in ("M", "N") or len(shape) != 2 or not all(isinstance(n, int) for n in shape) or shape[0] % pair:
        raise ConstraintError(
            "block_copy: tma_multicast has cluster_shape, two ints (the first even with use_2cta_mma_inst), and "
            f"multicast_dim, 'M' or 'N', not {dict(tma_multicast)}"
        )
    return (pair, shape[0] // pair, shape[1]), 2 if dim == "M" else 1
