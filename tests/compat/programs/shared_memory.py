"""Structs, arrays and tensors of shared memory; inline PTX; printing from the host and from kernels."""

import cutlass
import cutlass.cute as cute
import torch
from cutlass._mlir.dialects import llvm
from cutlass.cute.runtime import from_dlpack
from cutlass.cutlass_dsl import T, dsl_user_op


@cute.struct
class Pair:
    real: cutlass.Float32
    imag: cutlass.Float32


@cute.struct
class Storage:
    mbar: cute.struct.MemRange[cutlass.Int64, 2]
    pairs: Pair
    count: cutlass.Int32
    tile: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, 64], 1024]


@dsl_user_op
def fma(a: cutlass.Float32, b: cutlass.Float32, c: cutlass.Float32, *, loc=None, ip=None) -> cutlass.Float32:
    return cutlass.Float32(
        llvm.inline_asm(
            T.f32(), [a.ir_value(loc=loc, ip=ip), b.ir_value(loc=loc, ip=ip), c.ir_value(loc=loc, ip=ip)],
            "fma.rn.f32 $0, $1, $2, $3;", "=f,f,f,f", has_side_effects=False, is_align_stack=False,
            asm_dialect=llvm.AsmDialect.AD_ATT,
        )
    )


@cute.kernel
def kernel(out: cute.Tensor, factor: cutlass.Float32):
    tidx, _, _ = cute.arch.thread_idx()
    allocator = cutlass.utils.SmemAllocator()
    storage = allocator.allocate(Storage)
    extra = allocator.allocate_array(element_type=cutlass.Int32, num_elems=4)
    block = allocator.allocate_tensor(cutlass.Float16, cute.make_layout((8, 4)), byte_alignment=16)
    tile = storage.tile.get_tensor(cute.make_layout((8, 8), stride=(8, 1)))
    if tidx == 0:
        storage.pairs.real = factor
        storage.pairs.imag = 0.5
        storage.count = 64
        extra[0] = 7
        block.fill(0)
    cute.arch.sync_threads()
    tile[tidx // 8, tidx % 8] = fma(storage.pairs.real, cutlass.Float32(tidx), storage.pairs.imag)
    cute.arch.sync_threads()
    out[tidx] = tile[tidx % 8, tidx // 8] + cutlass.Float32(extra[0]) + cutlass.Float32(block[0, 0])
    if tidx == 0:
        cute.printf("count {} factor {} tile {}", storage.count, factor, tile[1, 1])


@cute.jit
def host(out: cute.Tensor, factor: cutlass.Float32):
    print("storage bytes:", Storage.size_in_bytes())
    cute.printf("host factor {}", factor)
    kernel(out, factor).launch(grid=(1, 1, 1), block=(64, 1, 1), smem=Storage.size_in_bytes() + 1024)


if __name__ == "__main__":
    x = torch.zeros(64, device="cuda")
    host(from_dlpack(x), 2.0)
    torch.cuda.synchronize()
    i = torch.arange(64.0)
    torch.testing.assert_close(x.cpu(), 2 * (i % 8 * 8 + i // 8) + 0.5 + 7)
    print("PASS")
