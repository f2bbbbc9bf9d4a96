from tilewright import Float32, cute

TILE = 32


@cute.kernel
def transpose(source: cute.Tensor, target: cute.Tensor) -> None:
    thread, _, _ = cute.arch.thread_idx()
    block_m, block_n, _ = cute.arch.block_idx()
    # Rows are written and columns are read without bank conflicts: the bits of the row change those of the column.
    tile_layout = cute.make_composed_layout(
        cute.make_swizzle(5, 0, 5), 0, cute.make_layout((TILE, TILE), stride=(TILE, 1))
    )
    smem = cute.arch.alloc_smem(Float32, TILE * TILE)
    tile = cute.make_tensor(smem, tile_layout)
    here = cute.local_tile(source, (TILE, TILE), (block_m, block_n))
    there = cute.local_tile(target, (TILE, TILE), (block_n, block_m))
    lane, warp = thread % 32, thread // 32
    for step in range(4):
        row = warp + 8 * step
        tile[row, lane] = here[row, lane]
    cute.arch.sync_threads()
    for step in range(4):
        row = warp + 8 * step
        there[row, lane] = tile[lane, row]


@cute.jit
def run(source: cute.Tensor, target: cute.Tensor) -> None:
    m, n = source.shape
    transpose(source, target).launch(grid=(m // TILE, n // TILE, 1), block=(256, 1, 1))


matrix = cute.runtime.make_fake_compact_tensor(Float32, (1024, 1024), stride_order=(1, 0))
compiled = cute.compile(run, matrix, matrix)
