"""The data half of the language on a GPU: the same kernels as in the simulator's tests, on CUDA tensors."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute import arch, testing
from tilewright.cute.runtime import from_dlpack

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")


def launch(body, *tensors, block=32, grid=1):
    @cute.kernel
    def kernel(given: list):
        t, _, _ = arch.thread_idx()
        body(t, *given)

    @cute.jit
    def host(given: list):
        kernel(given).launch(grid=(grid, 1, 1), block=(block, 1, 1))

    host([from_dlpack(x, assumed_align=16) for x in tensors])
    torch.cuda.synchronize()


def on_gpu(array) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array)).cuda()


def test_elementary_functions() -> None:
    names = ("exp", "exp2", "log", "sin", "tanh", "sqrt", "rsqrt", "erf", "floor", "round")

    def body(t, x, out):
        for i in range(len(names)):
            out[i, t, None].store(getattr(cute.math, names[i])(x[t, None].load()))

    x = torch.rand(32, 8, device="cuda") + 0.1
    out = torch.zeros(len(names), 32, 8, device="cuda")
    launch(body, x, out)
    for i, name in enumerate(names):
        want = torch.special.erf(x) if name == "erf" else getattr(torch, name)(x)
        torch.testing.assert_close(out[i], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "int8", "float8_e4m3fn", "float8_e5m2"])
def test_wide_loads_conversions_and_stores(dtype) -> None:
    kind = getattr(torch, dtype)
    x = torch.randint(-8, 8, (64, 24), device="cuda").float().to(kind)
    out, wide = torch.zeros_like(x), torch.zeros(64, 24, device="cuda")

    def body(t, x, out, wide):
        values = x[t, None].load()
        wide[t, None].store(values.to(cutlass.Float32) * 2)
        out[t, None].store((values.to(cutlass.Float32) + 1).to(out.element_type))

    launch(body, x, out, wide, block=64)
    torch.testing.assert_close(wide, x.float() * 2)
    torch.testing.assert_close(out.float(), (x.float() + 1).to(kind).float())


def test_swizzled_transpose() -> None:
    def body(t, a, c):
        layout = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((64, 64), stride=(64, 1)))
        tile = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float16, layout, 16)
        tile[t, None].store(a[t, None].load())
        arch.sync_threads()
        c[t, None].store(tile[None, t].load())

    a = torch.rand(64, 64, device="cuda").half()
    c = torch.zeros_like(a)
    launch(body, a, c, block=64)
    assert torch.equal(c, a.T)


def test_reductions_and_broadcasts() -> None:
    def body(t, x, out):
        values = x[t, None, None].load()
        rows = values.reduce(cute.ReductionOp.MAX, float("-inf"), (None, 1))
        shifted = values - rows
        out[t, None, None].store(cute.where(shifted < -4, 0.0, shifted))

    x = torch.randint(-8, 8, (32, 4, 6), device="cuda").float()
    out = torch.zeros_like(x)
    launch(body, x, out)
    want = x - x.amax(2, keepdim=True)
    assert torch.equal(out, torch.where(want < -4, 0.0, want))


def test_warps_atomics_and_bits() -> None:
    def body(t, out, sums, total):
        out[0, t] = arch.shuffle_sync_bfly(t, 5)
        out[1, t] = arch.vote_ballot_sync(t % 3 == 0)
        out[2, t] = arch.popc(t)
        out[3, t] = arch.prmt(t + 0x01020380, 0x0A0B0C0D, 0x7081)
        out[4, t] = arch.make_warp_uniform(arch.warp_idx() + 7)
        sums[t] = arch.warp_reduction_sum(cutlass.Float64(t))
        arch.atomic_add(total.iterator, cutlass.Float32(0.5))
        arch.atomic_max(out.iterator + 5 * 32, t)
        with arch.elect_one():
            out[5, 1] = 11

    out = torch.zeros(6, 32, dtype=torch.int32, device="cuda")
    sums, total = torch.zeros(32, dtype=torch.float64, device="cuda"), torch.zeros(4, device="cuda")
    launch(body, out, sums, total)
    t = np.arange(32)
    low = (0x80 + t) & 0xFF
    want = [
        t ^ 5,
        [sum(1 << i for i in range(0, 32, 3))] * 32,
        [int(i).bit_count() for i in t],
        (0x0A00FF03 + (low << 16)).astype(np.int32),
        [7] * 32,
        [31, 11] + [0] * 30,
    ]
    np.testing.assert_array_equal(out.cpu().numpy(), np.array(want, np.int32))
    assert sums.tolist() == [496.0] * 32 and total[0].item() == 16


def test_struct_registers_and_recast() -> None:
    @cute.struct
    class Storage:
        flag: cutlass.Int32
        data: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, 256], 16]

    def body(t, out):
        storage = cutlass.utils.SmemAllocator().allocate(Storage)
        data = storage.data.get_tensor(cute.make_layout((32, 8), stride=(8, 1)))
        registers = cute.make_rmem_tensor((8,), cutlass.Float16)
        for i in range(8):
            registers[i] = cutlass.Float16(t * 8 + i)
        data[t, None].store(registers.load())
        arch.sync_threads()
        words = cute.recast_tensor(data, cutlass.Uint32)
        target = cute.recast_tensor(out, cutlass.Uint32)
        target[t, None].store(words[31 - t, None].load())

    out = torch.zeros(32, 8, dtype=torch.float16, device="cuda")
    launch(body, out)
    assert torch.equal(out.flip(0).flatten(), torch.arange(256, device="cuda").half())


def test_dynamic_layouts() -> None:
    @cute.kernel
    def kernel(a: cute.Tensor, c: cute.Tensor):
        t, _, _ = arch.thread_idx()
        b, _, _ = arch.block_idx()
        i = b * 128 + t
        if i < cute.size(a):
            c[i] = a[i] * 2

    @cute.jit
    def host(a: cute.Tensor, c: cute.Tensor):
        kernel(a, c).launch(grid=(cute.ceil_div(cute.size(a), 128), 1, 1), block=(128, 1, 1))

    for shape in ((33, 70), (5, 1000)):
        a = torch.rand(shape, device="cuda")
        c = torch.zeros_like(a)
        host(from_dlpack(a).mark_layout_dynamic(), from_dlpack(c).mark_layout_dynamic())
        torch.cuda.synchronize()
        assert torch.equal(c, a * 2)


def test_benchmark_with_events_and_graphs() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor):
        t, _, _ = arch.thread_idx()
        x[t] = x[t] + 1

    @cute.jit
    def host(x: cute.Tensor, stream: object):
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)

    x = torch.zeros(32, device="cuda")
    stream = torch.cuda.Stream()
    arguments = testing.JitArguments(from_dlpack(x), stream)
    for graphs in (False, True):
        took = testing.benchmark(
            host, warmup_iterations=2, iterations=20, stream=stream, kernel_arguments=arguments, use_cuda_graphs=graphs
        )
        assert 0 < took < 1e4
    stream.synchronize()
    assert x[0].item() == 22 + 1 + 22


def test_hardware_info() -> None:
    info = cutlass.utils.HardwareInfo()
    assert info.is_present
    assert info.get_device_multiprocessor_count() == torch.cuda.get_device_properties(0).multi_processor_count


def test_swizzled_tensors_move_in_loops() -> None:
    @cute.jit
    def body(t, out):
        stages = cute.tile_to_shape(cute.make_layout((8, 32), stride=(32, 1)), (8, 32, 3), order=(0, 1, 2))
        ring = cutlass.utils.SmemAllocator().allocate_tensor(
            cutlass.Float16, stages, 16, swizzle=cute.make_swizzle(2, 4, 3)
        )
        for stage in cutlass.range_constexpr(3):
            for i in cutlass.range_constexpr(4):
                cute.zipped_divide(ring[t, None, stage], (8,))[None, i].fill(cutlass.Float16(stage * 10 + i) + t)
        arch.sync_threads()
        stage = 0
        row = ring[t, None, stage]
        total = cutlass.Float32(0)
        for _ in range(6):
            chunk = row.iterator
            for _ in range(4):
                values = cute.make_tensor(chunk, cute.make_layout(8)).load().to(cutlass.Float32)
                total += values.reduce(cute.ReductionOp.ADD, 0.0, 0)
                chunk = chunk + 8
            stage = 0 if stage == 2 else stage + 1
            row = ring[t, None, stage]
        out[t] = total

    out = torch.zeros(8, device="cuda")
    launch(body, out, block=8)
    want = [2 * sum(8 * (stage * 10 + i + t) for stage in range(3) for i in range(4)) for t in range(8)]
    assert out.tolist() == want
