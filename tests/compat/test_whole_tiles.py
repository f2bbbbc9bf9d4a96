"""``utils.block_copy``: tiles by TMA, in one block and over the blocks of a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float16, cute
from tilewright.cute.nvgpu import cpasync
from tilewright.errors import ConstraintError
from tilewright.utils import SmemAllocator, block_copy

TILE = (8, 16)


def aligned(values: Any) -> Any:
    """A copy that begins at a multiple of 16 bytes, as TMA needs it."""
    space = np.zeros(values.nbytes + 16, np.uint8)
    found = space[-space.ctypes.data % 16 :][: values.nbytes].view(values.dtype).reshape(values.shape)
    found[:] = values
    return found


@cute.kernel
def through_shared_memory(
    load: cute.CopyAtom, a: cute.Tensor, store: cute.CopyAtom, b: cute.Tensor, how: cutlass.Constexpr
) -> None:
    t, _, _ = cute.arch.thread_idx()
    x, y, _ = cute.arch.block_idx()
    smem = SmemAllocator()
    tile = smem.allocate_tensor(Float16, cute.make_layout(TILE, stride=(TILE[1], 1)), 128)
    barrier = smem.allocate_array(cutlass.Int64)
    if t == 0:
        cute.arch.mbarrier_init(barrier, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    shared_along = None if how is None or how.get("cluster_shape") == (1, 1) else how["multicast_dim"]
    gA = cute.local_tile(a, TILE, (0 if shared_along == "N" else x, 0 if shared_along == "M" else y))
    gB = cute.local_tile(b, TILE, (x, y))
    if t == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(barrier, 2 * TILE[0] * TILE[1])
    block_copy(load, gA, cute.group_modes(tile, 0, 2), tma_bar_ptr=barrier, tma_multicast=how)
    cute.arch.mbarrier_wait(barrier, 0)
    block_copy(store, tile, gB)
    cute.arch.cp_async_bulk_commit_group()
    cute.arch.cp_async_bulk_wait_group(0)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def copy_tiles(a: cute.Tensor, b: cute.Tensor, cluster: cutlass.Constexpr, how: cutlass.Constexpr) -> None:
    layout = cute.make_layout(TILE, stride=(TILE[1], 1))
    load, tma_a = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, TILE)
    store, tma_b = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, layout, TILE)
    through_shared_memory(load, tma_a, store, tma_b, how).launch(
        grid=(2, 2, 1), block=(32, 1, 1), cluster=(*cluster, 1)
    )


def copied(how: Any, cluster: tuple[int, int]) -> tuple[Any, Any]:
    """What 2 x 2 blocks read, a tile each, and what they wrote."""
    a = aligned(np.arange(16 * 32, dtype=np.float16).reshape(16, 32))
    b = aligned(np.zeros((16, 32), np.float16))
    copy_tiles(a, b, cluster, how)
    return a, b


@pytest.mark.parametrize("how", [None, {"cluster_shape": (1, 1), "multicast_dim": "M"}])
def test_each_block_copies_its_tile(how: Any) -> None:
    a, b = copied(how, (1, 1))
    np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("cluster", [(1, 2), (2, 2)])
def test_blocks_along_n_share_the_tile_of_their_m(cluster: tuple[int, int]) -> None:
    a, b = copied({"cluster_shape": cluster, "multicast_dim": "M"}, cluster)
    np.testing.assert_array_equal(b, np.tile(a[:, :16], 2))


@pytest.mark.parametrize("cluster", [(2, 1), (2, 2)])
def test_blocks_along_m_share_the_tile_of_their_n(cluster: tuple[int, int]) -> None:
    a, b = copied({"cluster_shape": cluster, "multicast_dim": "N"}, cluster)
    np.testing.assert_array_equal(b, np.tile(a[:8], (2, 1)))


@pytest.mark.gpu
@pytest.mark.parametrize("dim", ["M", "N"])
def test_the_same_on_a_gpu(dim: str) -> None:
    import torch

    how = {"cluster_shape": (2, 2), "multicast_dim": dim}
    a = torch.arange(16 * 32, device="cuda").half().reshape(16, 32)
    b = torch.zeros_like(a)
    copy_tiles(a, b, (2, 2), how)
    assert torch.equal(b, a[:, :16].tile(1, 2) if dim == "M" else a[:8].tile(2, 1))


@pytest.mark.parametrize("how", [{"cluster_shape": (2, 1)}, {"cluster_shape": (2, 1), "multicast_dim": "K"}, {}])
def test_incomplete_multicast_is_refused(how: Any) -> None:
    with pytest.raises(ConstraintError, match="tma_multicast has cluster_shape, two ints"):
        copied({"multicast_dim": "K", **how}, (2, 1))


def test_other_tensors_and_stores_to_many_blocks_are_refused() -> None:
    @cute.kernel
    def kernel(store: cute.CopyAtom, b: cute.Tensor, how: cutlass.Constexpr) -> None:
        tile = SmemAllocator().allocate_tensor(Float16, cute.make_layout(TILE, stride=(TILE[1], 1)), 128)
        gB = cute.local_tile(b, TILE, (0, 0))
        block_copy(store, tile, tile if how is None else gB, tma_multicast=how)

    @cute.jit
    def host(b: cute.Tensor, how: cutlass.Constexpr) -> None:
        layout = cute.make_layout(TILE, stride=(TILE[1], 1))
        store, tma_b = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, layout, TILE)
        kernel(store, tma_b, how).launch(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))

    b = aligned(np.zeros((16, 32), np.float16))
    with pytest.raises(ConstraintError, match="one side must be a tile of a TMA tensor"):
        host(b, None)
    with pytest.raises(ConstraintError, match="tma_multicast is for loads"):
        host(b, {"cluster_shape": (2, 1), "multicast_dim": "N"})
