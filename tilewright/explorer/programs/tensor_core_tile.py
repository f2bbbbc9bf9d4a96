from tilewright import Float16, Float32, cute
from tilewright.cute.nvgpu import warp


@cute.kernel
def tile_product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
    thread, _, _ = cute.arch.thread_idx()
    op = warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)))
    mine = mma.get_slice(thread)
    part_a, part_b, part_c = mine.partition_A(a), mine.partition_B(b), mine.partition_C(c)
    registers_a, registers_b = mine.make_fragment_A(part_a), mine.make_fragment_B(part_b)
    sums = mine.make_fragment_C(part_c)
    cute.autovec_copy(part_a, registers_a)
    cute.autovec_copy(part_b, registers_b)
    sums.fill(0.0)
    cute.gemm(mma, sums, registers_a, registers_b, sums)
    cute.autovec_copy(sums, part_c)


@cute.jit
def run(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
    tile_product(a, b, c).launch(grid=(1, 1, 1), block=(128, 1, 1))


a = cute.runtime.make_fake_compact_tensor(Float16, (32, 16), stride_order=(1, 0))
b = cute.runtime.make_fake_compact_tensor(Float16, (16, 16), stride_order=(1, 0))
c = cute.runtime.make_fake_compact_tensor(Float32, (32, 16), stride_order=(1, 0))
compiled = cute.compile(run, a, b, c)
