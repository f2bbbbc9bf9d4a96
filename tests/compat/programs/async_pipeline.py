"""Warps that make and warps that use: one stage, a ring of stages, states by hand, and a ring filled by cp.async."""

import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils
import torch
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def one_stage(res: cute.Tensor):
    warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())

    @cute.struct
    class SharedStorage:
        barriers: cute.struct.MemRange[cutlass.Int64, 1 * 2]
        staging_buffer: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, 1], 1024]

    storage = cutlass.utils.SmemAllocator().allocate(SharedStorage, 64)
    staging = storage.staging_buffer.get_tensor(cute.make_layout(1))
    staging.fill(0)
    cute.arch.sync_threads()

    mainloop_pipe = pipeline.PipelineAsync.create(
        num_stages=1,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32),
        barrier_storage=storage.barriers.data_ptr(),
    )
    producer, consumer = mainloop_pipe.make_participants()
    if warp_idx == 0:
        for i in cutlass.range(cute.size(res)):
            handle = producer.acquire_and_advance()
            with cute.arch.elect_one():
                staging[handle.index] = 1.0 * i
            cute.arch.sync_warp()
            handle.commit()
        producer.tail()
    if warp_idx == 1:
        for i in cutlass.range(cute.size(res)):
            handle = consumer.wait_and_advance()
            read = staging[handle.index]
            handle.release()
            res[i] = read


@cute.kernel
def ring(res: cute.Tensor, stages: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    lane = cute.arch.lane_idx()

    @cute.struct
    class SharedStorage:
        mbar_ptr: cute.struct.MemRange[cutlass.Int64, stages * 2]
        buffer: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, stages * 32], 1024]

    storage = cutlass.utils.SmemAllocator().allocate(SharedStorage)
    buffer = storage.buffer.get_tensor(cute.make_layout((32, stages)))
    pipe = pipeline.PipelineAsync.create(
        barrier_storage=storage.mbar_ptr.data_ptr(),
        num_stages=stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 64),
    )
    tiles = res.shape[1]
    if warp_idx == 0:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, stages)
        for i in range(tiles):
            pipe.producer_acquire(state)
            buffer[lane, state.index] = cutlass.Float32(lane * i)
            pipe.producer_commit(state)
            state.advance()
        pipe.producer_tail(state)
    else:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, stages)
        for i in cutlass.range(tiles, unroll=1):
            token = pipe.consumer_try_wait(state)
            pipe.consumer_wait(state, token)
            number = buffer[lane, state.index]
            pipe.consumer_release(state)
            state.advance()
            res[tidx - 32, i] = number + warp_idx


@cute.kernel
def copies(src: cute.Tensor, dst: cute.Tensor, tiled_copy: cute.TiledCopy, stages: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    tile = cute.size(tiled_copy.layout_tv_tiled)
    gSrc = cute.zipped_divide(src[bidx, None], (tile,))  # (tile, tiles)
    gDst = cute.zipped_divide(dst[bidx, None], (tile,))
    smem = cutlass.utils.SmemAllocator()
    sBuf = smem.allocate_tensor(src.element_type, cute.make_layout((tile, stages)), 128)
    thr = tiled_copy.get_slice(tidx)
    tiles = cute.size(gSrc, mode=[1])
    for k in cutlass.range_constexpr(stages - 1):
        if k < tiles:
            cute.copy(tiled_copy, thr.partition_S(gSrc[None, k]), thr.partition_D(sBuf[None, k]))
        cute.arch.cp_async_commit_group()
    for k in range(tiles):
        cute.arch.cp_async_wait_group(stages - 2)
        cute.arch.sync_threads()
        following = k + stages - 1
        if following < tiles:
            cute.copy(tiled_copy, thr.partition_S(gSrc[None, following]), thr.partition_D(sBuf[None, following % stages]))
        cute.arch.cp_async_commit_group()
        mine = sBuf[None, k % stages]
        for j in cutlass.range_constexpr(4):
            gDst[tidx * 4 + j, k] = mine[tile - 1 - (tidx * 4 + j)]


@cute.jit
def run_one(res: cute.Tensor):
    one_stage(res).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.jit
def run_ring(res: cute.Tensor, stages: cutlass.Constexpr[int] = 3):
    ring(res, stages).launch(grid=(1, 1, 1), block=(96, 1, 1))


@cute.jit
def run_copies(src: cute.Tensor, dst: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), src.element_type, num_bits_per_copy=128)
    tiled_copy = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(4))
    copies(src, dst, tiled_copy, 3).launch(grid=(src.shape[0], 1, 1), block=(32, 1, 1))


def main():
    res = torch.zeros((8,), device="cuda")
    run_one(from_dlpack(res))
    torch.testing.assert_close(res, torch.arange(8.0, device="cuda"))

    res = torch.zeros((64, 7), device="cuda")
    cute.compile(run_ring, from_dlpack(res), 2)(from_dlpack(res))
    lanes = torch.arange(64, device="cuda")
    want = (lanes % 32)[:, None] * torch.arange(7, device="cuda")[None] + (1 + lanes // 32)[:, None]
    torch.testing.assert_close(res, want.float())

    src = torch.randn(3, 128 * 5, device="cuda")
    dst = torch.zeros_like(src)
    packed = [from_dlpack(t, assumed_align=16).mark_compact_shape_dynamic(1, divisibility=128) for t in (src, dst)]
    run_copies(*packed)
    torch.testing.assert_close(dst, src.reshape(3, 5, 128).flip(2).reshape(3, -1))
    print("PASS")


if __name__ == "__main__":
    main()
