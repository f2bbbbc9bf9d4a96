"""A convolution on Hopper as a product of matrices: TMA's im2col copies bring the pixels of each place in the filter.

Images are (N, H, W, C), filters (filters, R, S, C). Row m of A is a pixel of the result, column k a place in the filter
and a channel; A is never in memory. One warp loads, a warpgroup multiplies."""

import argparse

import cutlass
import cutlass.cute as cute
import cutlass.experimental.cuda as cuda
import torch
from cutlass import utils
from cutlass.cute.nvgpu import OperandMajorMode, warpgroup
from cutlass.cute.runtime import from_dlpack
from cutlass.experimental import primitives as prims
from cutlass.utils import hopper_helpers

TILE_M, TILE_N, TILE_K = TILE = (64, 32, 64)
STAGES = 2
ROW = utils.LayoutEnum.ROW_MAJOR


@cute.jit
def wait(barrier, parity):
    while not prims.mbarrier_try_wait_parity(barrier, parity, time_limit=10000000):
        pass


@cute.kernel
def convolution_kernel(
    map_x: cutlass.GridConstant[cuda.TensorMap],
    map_w: cutlass.GridConstant[cuda.TensorMap],
    y: cute.Tensor,
    tiled_mma: cute.TiledMma,
    layout_a: cutlass.Constexpr,
    layout_b: cutlass.Constexpr,
    size: cutlass.Constexpr,
    padding: cutlass.Constexpr[int],
    step: cutlass.Constexpr[int],
    channels: cutlass.Constexpr[int],
    filter_size: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = utils.SmemAllocator()
    full, empty = smem.allocate_array(cutlass.Int64, STAGES), smem.allocate_array(cutlass.Int64, STAGES)
    s_a = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, swizzle=layout_a.inner)  # (TILE_M, TILE_K, STAGE)
    s_b = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, swizzle=layout_b.inner)  # (TILE_N, TILE_K, STAGE)
    if tidx == 0:
        for stage in cutlass.range_constexpr(STAGES):
            prims.mbarrier_init(full + stage, 1)
            prims.mbarrier_init(empty + stage, 128)
        prims.fence_mbarrier_init()
    cute.arch.sync_threads()

    rows, columns = size
    taps_r, taps_s = filter_size
    blocks = channels // TILE_K
    tiles = taps_r * taps_s * blocks
    if warp == 4:
        pixel = m * TILE_M
        image, rest = pixel // (rows * columns), pixel % (rows * columns)
        w0, h0 = rest % columns * step - padding, rest // columns * step - padding  # where the filter begins
        for k in cutlass.range(tiles):
            stage, parity = k % STAGES, (k // STAGES) & 1
            tap, block = k // blocks, k % blocks
            wait(empty + stage, parity ^ 1)
            if prims.elect_sync():
                prims.mbarrier_arrive_expect_tx(full + stage, 2 * TILE_K * (TILE_M + TILE_N))
                prims.cp_async_bulk_tensor_shared_cluster_global(
                    s_a[None, None, stage].iterator,
                    map_x.get_ptr(),
                    (block * TILE_K, w0, h0, image),
                    full + stage,
                    (tap % taps_s, tap // taps_s),
                    mode=prims.TMALoadMode.IM2COL,
                )
                prims.cp_async_bulk_tensor_shared_cluster_global(
                    s_b[None, None, stage].iterator, map_w.get_ptr(), (k * TILE_K, n * TILE_N), full + stage
                )
    if warp < 4:
        thread = tiled_mma.get_slice(tidx)
        part_a = tiled_mma.make_fragment_A(thread.partition_A(s_a))  # (1, MMA_M, MMA_K, STAGE)
        part_b = tiled_mma.make_fragment_B(thread.partition_B(s_b))
        out = thread.partition_C(cute.local_tile(y, (TILE_M, TILE_N), (m, n)))
        places = thread.partition_C(cute.local_tile(cute.make_identity_tensor(y.shape), (TILE_M, TILE_N), (m, n)))
        sums = tiled_mma.make_fragment_C(out)
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        for k in cutlass.range(tiles):
            stage, parity = k % STAGES, (k // STAGES) & 1
            wait(full + stage, parity)
            warpgroup.fence()
            for block in cutlass.range_constexpr(cute.size(part_a, mode=[2])):
                cute.gemm(tiled_mma, sums, part_a[None, None, block, stage], part_b[None, None, block, stage], sums)
                tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            prims.mbarrier_arrive(empty + stage)
        for i in cutlass.range_constexpr(cute.size(sums)):
            if cute.elem_less(places[i], y.shape):
                out[i] = sums[i]


@cute.jit
def convolution(
    x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, padding: cutlass.Constexpr[int], step: cutlass.Constexpr[int]
):
    """y (N * P * Q, filters) of x (N, H, W, C) and w (filters, R, S, C)."""
    _, height, width, channels = x.shape
    filters, taps_r, taps_s, _ = w.shape
    size = [(n + 2 * padding - taps) // step + 1 for n, taps in ((height, taps_r), (width, taps_s))]
    map_x = cuda.create_tensor_map_im2col(
        x,
        pixel_box_lower_corner=(-padding, -padding),
        pixel_box_upper_corner=(padding - (taps_s - 1), padding - (taps_r - 1)),
        element_strides=(step, step),
        channels_per_pixel=TILE_K,
        pixels_per_column=TILE_M,
        swizzle=cuda.TensorMapSwizzle.s128b,
    )
    matrix = cute.make_tensor(
        w.iterator, cute.make_layout((filters, taps_r * taps_s * channels), stride=(w.stride[0], 1))
    )
    map_w = cuda.create_tensor_map_tiled_from_view(
        matrix, box_dims=(TILE_N, TILE_K), stride_order=(1, 0), swizzle=cuda.TensorMapSwizzle.s128b
    )
    tiled_mma = hopper_helpers.make_trivial_tiled_mma(
        cutlass.Float16,
        cutlass.Float16,
        OperandMajorMode.K,
        OperandMajorMode.K,
        cutlass.Float32,
        atom_layout_mnk=(1, 1, 1),
        tiler_mn=(64, TILE_N),
    )
    layout_a = hopper_helpers.make_smem_layout_a(ROW, TILE, cutlass.Float16, STAGES)
    layout_b = hopper_helpers.make_smem_layout_b(ROW, TILE, cutlass.Float16, STAGES)
    convolution_kernel(
        map_x, map_w, y, tiled_mma, layout_a, layout_b, tuple(size), padding, step, channels, (taps_r, taps_s)
    ).launch(grid=(cute.ceil_div(y.shape[0], TILE_M), filters // TILE_N, 1), block=(160, 1, 1))


def run(images: int, height: int, width: int, channels: int, filters: int, taps: int, padding: int, step: int) -> None:
    torch.manual_seed(1)
    x = torch.randint(-2, 3, (images, height, width, channels), device="cuda").half()
    w = torch.randint(-2, 3, (filters, taps, taps, channels), device="cuda").half()
    expected = torch.nn.functional.conv2d(
        x.permute(0, 3, 1, 2).double().cpu(), w.permute(0, 3, 1, 2).double().cpu(), padding=padding, stride=step
    ).permute(0, 2, 3, 1)
    y = torch.zeros(expected[..., 0].numel(), filters, device="cuda")
    convolution(*(from_dlpack(z, assumed_align=16) for z in (x, w, y)), padding, step)
    torch.testing.assert_close(y.cpu().double(), expected.reshape(y.shape), atol=0, rtol=0)
    print(
        f"{images}x{height}x{width}x{channels}, {filters} filters {taps}x{taps}, padding {padding}, step {step}: right"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=3)
    arguments = parser.parse_args()
    run(arguments.images, 7, 10, 128, 32, 3, 1, 1)
    run(arguments.images, 9, 12, 64, 64, 2, 0, 2)
    print("PASS")
