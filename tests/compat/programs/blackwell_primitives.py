"""A GEMM for sm_100 of single instructions (``cutlass.experimental.primitives``): tensor maps, mbarriers, matrix and
instruction descriptors, tensor memory."""

import argparse

import cutlass
import cutlass.cute as cute
import cutlass.experimental.cuda as cuda
import torch
from cutlass.cute.runtime import from_dlpack
from cutlass.experimental import primitives as prims

TILE_M, TILE_N, TILE_K, STAGES = 128, 64, 64, 2
A_STAGE, B_STAGE = TILE_M * TILE_K, TILE_N * TILE_K


@cute.jit
def wait(barrier, parity):
    while not prims.mbarrier_try_wait_parity(barrier, parity, time_limit=10000000):
        pass


@cute.kernel
def gemm_kernel(
    map_a: cutlass.GridConstant[cuda.TensorMap],
    map_b: cutlass.GridConstant[cuda.TensorMap],
    d: cute.Tensor,
    k_tiles: cutlass.Int32,
    PAIR: cutlass.Constexpr[bool],
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, bidy, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    group = prims.CTAGroup.CTA_2 if cutlass.const_expr(PAIR) else prims.CTAGroup.CTA_1
    blocks = 2 if cutlass.const_expr(PAIR) else 1
    rank = cute.arch.block_idx_in_cluster() if cutlass.const_expr(PAIR) else cutlass.Int32(0)

    a_smem = cutlass.Array(cutlass.Float16, STAGES * A_STAGE, space=cutlass.AddressSpace.smem, alignment=1024)
    b_smem = cutlass.Array(cutlass.Float16, STAGES * B_STAGE, space=cutlass.AddressSpace.smem, alignment=1024)
    full = cutlass.Array(cutlass.Int64, STAGES, space=cutlass.AddressSpace.smem, alignment=8)
    empty = cutlass.Array(cutlass.Int64, STAGES, space=cutlass.AddressSpace.smem, alignment=8)
    done = cutlass.Array(cutlass.Int64, 1, space=cutlass.AddressSpace.smem, alignment=8)
    slot = cutlass.Array(cutlass.Int32, 1, space=cutlass.AddressSpace.smem, alignment=4)

    if warp == 0:
        if prims.elect_sync():
            prims.prefetch_tensormap(map_a.get_ptr())
            for stage in cutlass.range_constexpr(STAGES):
                prims.mbarrier_init(full.subview(stage), 1)
                prims.mbarrier_init(empty.subview(stage), 1)
            prims.mbarrier_init(done, 1)
        prims.tcgen05_alloc(slot, blocks * TILE_N, group=group)
        prims.tcgen05_relinquish_alloc_permit(group=group)
    prims.fence_mbarrier_init()
    if cutlass.const_expr(PAIR):
        prims.barrier_cluster_arrive_relaxed()
        prims.barrier_cluster_wait()
    prims.barrier_cta_sync(0)
    base = slot.load()

    if warp == 1:
        for k in cutlass.range(k_tiles):
            stage, parity = k % STAGES, (k // STAGES) & 1
            wait(empty.subview(stage), parity ^ 1)
            if prims.elect_sync():
                if rank == 0:
                    prims.mbarrier_arrive_expect_tx(full.subview(stage), blocks * 2 * (A_STAGE + B_STAGE))
                for buffer, tensor_map, row in (
                    (a_smem.subview(stage * A_STAGE), map_a, bidx * TILE_M),
                    (b_smem.subview(stage * B_STAGE), map_b, (bidy * blocks + rank) * TILE_N),
                ):
                    if cutlass.const_expr(PAIR):
                        prims.cp_async_bulk_tensor_shared_cluster_global(
                            buffer, tensor_map.get_ptr(), (k * TILE_K, row), full.subview(stage), [], group=group
                        )
                    else:
                        prims.cp_async_bulk_tensor_shared_cta_global(
                            buffer, tensor_map.get_ptr(), (k * TILE_K, row), full.subview(stage)
                        )
    if warp == 2 and rank == 0:
        idesc = prims.Tcgen05InstrDesc.build(
            c_dtype=cutlass.Float32, a_dtype=cutlass.Float16, b_dtype=cutlass.Float16, m_dim=blocks * TILE_M,
            n_dim=blocks * TILE_N,
        )
        how = {"leading_byte_offset": 16, "stride_byte_offset": 1024, "layout": prims.Tcgen05SmemSwizzle.SWIZZLE_128B}
        desc_a = prims.Tcgen05SmemDesc.build(a_smem, **how)
        desc_b = prims.Tcgen05SmemDesc.build(b_smem, **how)
        sums = prims.make_tmem_ptr(base, cutlass.Float32)
        accumulate = cutlass.Boolean(False)
        for k in cutlass.range(k_tiles):
            stage, parity = k % STAGES, (k // STAGES) & 1
            wait(full.subview(stage), parity)
            prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
            for step in cutlass.range_constexpr(TILE_K // 16):
                if prims.elect_sync():
                    prims.tcgen05_mma(
                        prims.Tcgen05MMAKind.F16, group, sums,
                        desc_a.advance_start_address(stage * (2 * A_STAGE) + 32 * step),
                        desc_b + (stage * (2 * B_STAGE // 16) + 2 * step), idesc, accumulate,
                    )
                accumulate = cutlass.Boolean(True)
            if prims.elect_sync():
                if cutlass.const_expr(PAIR):
                    prims.tcgen05_commit(empty.subview(stage), group=group, multicast_mask=3)
                else:
                    prims.tcgen05_commit(empty.subview(stage), group=group)
        if prims.elect_sync():
            if cutlass.const_expr(PAIR):
                prims.tcgen05_commit(done, group=group, multicast_mask=3)
            else:
                prims.tcgen05_commit(done, group=group)

    wait(done, 0)
    prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
    out = cutlass.make_array_view(d)
    row = bidx * TILE_M + tidx
    lanes = prims.TmemAddr.from_row_col(warp * 32, 0)
    for part in cutlass.range_constexpr(blocks * TILE_N // 32):
        place = prims.make_tmem_ptr(base + lanes + part * 32, cutlass.Float32)
        values = prims.tcgen05_ld("32x32b", place, num=32)
        prims.tcgen05_wait(kind=prims.Tcgen05Wait.LOAD)
        for i in cutlass.range_constexpr(32):
            out[row, bidy * (blocks * TILE_N) + part * 32 + i] = values[i]
    prims.tcgen05_fence(prims.Tcgen05Fence.BEFORE_THREAD_SYNC)
    if cutlass.const_expr(PAIR):
        prims.barrier_cluster_arrive()
        prims.barrier_cluster_wait()
    prims.barrier_cta_sync(0)
    if warp == 0:
        prims.tcgen05_dealloc(prims.make_tmem_ptr(base, cutlass.Float32), blocks * TILE_N, group=group)


@cute.jit
def gemm(a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, PAIR: cutlass.Constexpr[bool]):
    how = {"stride_order": (1, 0), "swizzle": cuda.TensorMapSwizzle.s128b}
    map_a = cuda.create_tensor_map_tiled_from_view(a, box_dims=(TILE_M, TILE_K), **how)
    map_b = cuda.create_tensor_map_tiled(
        global_address=b.iterator.toint(), dtype=b.element_type, global_dims=(b.shape[1], b.shape[0]),
        global_strides=(b.stride[0] * b.element_type.width // 128,), box_dims=(TILE_K, TILE_N),
        swizzle=cuda.TensorMapSwizzle.s128b, l2_promotion=cuda.TensorMapL2Promotion.l2_128b,
    )
    blocks = 2 if cutlass.const_expr(PAIR) else 1
    gemm_kernel(map_a, map_b, d, cute.size(a, mode=[1]) // TILE_K, PAIR).launch(
        grid=(cute.size(a, mode=[0]) // TILE_M, cute.size(b, mode=[0]) // (blocks * TILE_N), 1), block=(128, 1, 1),
        cluster=(blocks, 1, 1),
    )


def run(m: int, n: int, k: int, pair: bool) -> None:
    torch.manual_seed(1)
    a, b = (torch.randint(-3, 4, (rows, k), device="cuda").half() for rows in (m, n))
    d = torch.zeros(m, n, device="cuda")
    gemm(*(from_dlpack(x, assumed_align=16) for x in (a, b, d)), pair)
    torch.testing.assert_close(d, a.float() @ b.float().T, atol=0, rtol=0)
    print(f"{m}x{n}x{k} pair={pair}: PASS")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnk", type=lambda text: [int(x) for x in text.split(",")], default=[256, 128, 192])
    arguments = parser.parse_args()
    for pair in (False, True):
        run(*arguments.mnk, pair)
