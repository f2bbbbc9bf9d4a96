"""Numbers of 4 and 6 bits in kernels: without gaps in memory, shared memory and registers, with conversions.

Each program runs in the simulator here, and on a GPU where there is one; the packed bytes are made by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tilewright import (
    BFloat16,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float16,
    Float32,
    Int4,
    Int8,
    Int32,
    Uint4,
    Uint8,
    Uint32,
    cute,
    sim,
    utils,
)
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError, SimulationError, TilewrightError

NUMPY = {
    Float4E2M1FN: "float4_e2m1fn",
    Float6E2M3FN: "float6_e2m3fn",
    Float6E3M2FN: "float6_e3m2fn",
    Int4: "int4",
    Uint4: "uint4",
}
KINDS = pytest.mark.parametrize("kind", list(NUMPY), ids=str)
N = 32  # numbers of a thread


def packed(codes: np.ndarray, width: int) -> np.ndarray:
    """Codes (uint8) without gaps, the first in the low bits."""
    bits = np.unpackbits(codes.reshape(-1, 1), axis=1, count=width, bitorder="little")
    return np.packbits(bits.reshape(-1), bitorder="little")


def numbers(kind: Any, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(packed bytes, their numbers as float32)."""
    codes = np.random.default_rng(seed).integers(0, 1 << kind.width, count).astype(np.uint8)
    return packed(codes, kind.width), codes.view(getattr(ml_dtypes, NUMPY[kind])).astype(np.float32)


def rounded(x: np.ndarray, kind: Any) -> np.ndarray:
    """Packed bytes of float32 numbers, by ml_dtypes."""
    inside = np.nan_to_num(np.clip(x, kind.min, kind.max), nan=0 if kind.is_integer else kind.max)
    return packed(inside.astype(getattr(ml_dtypes, NUMPY[kind])).view(np.uint8), kind.width)


# -- the programs ------------------------------------------------------------------------------------------------------


@cute.kernel
def widen(x: cute.Tensor, out: cute.Tensor, kind: cutlass.Constexpr, to: cutlass.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    mine = cute.local_tile(cute.recast_tensor(x, kind), (N,), (t,))
    out[None, t].store(mine.load().to(to).to(Float32))


@cute.kernel
def narrow(x: cute.Tensor, out: cute.Tensor, kind: cutlass.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    mine = cute.local_tile(cute.recast_tensor(out, kind), (N,), (t,))
    mine.store(x[None, t].load().to(kind))


@cute.kernel
def anywhere(x: cute.Tensor, out: cute.Tensor, kind: cutlass.Constexpr) -> None:
    """Element 7 t + 3 of memory, and the sum of the first t elements: in a loop that carries a narrow number."""
    t, _, _ = cute.arch.thread_idx()
    narrow = cute.recast_tensor(x, kind)
    out[0, t] = narrow[7 * t + 3].to(Float32)
    total, largest = Float32(0), kind(-1.0 if kind.signed else 0.0)
    for i in range(t):
        total += Float32(narrow[i])
        if Float32(narrow[i]) > Float32(largest):
            largest = narrow[i]
    out[1, t] = total
    out[2, t] = Float32(largest) * 2


@cute.kernel
def registers(x: cute.Tensor, out: cute.Tensor, kind: cutlass.Constexpr) -> None:
    """Numbers rounded one by one into registers, in another order; then the registers as words."""
    t, _, _ = cute.arch.thread_idx()
    held = cute.make_rmem_tensor(cute.make_layout((4, 4), stride=(4, 1)), kind)
    for i in cutlass.range_constexpr(16):
        held[i] = x[i, t].to(kind)
    held[1, 2] = (held[2, 1].to(Float16) * 2).to(kind)
    words = cute.recast_tensor(cute.make_tensor(held.iterator, cute.make_layout(16)), Uint32)
    cute.autovec_copy(words, out[None, t])


@cute.kernel
def turned(x: cute.Tensor, out: cute.Tensor, swizzled: cutlass.Constexpr) -> None:
    """A 64 x 64 tile of 4-bit numbers goes through shared memory; rows come out by other threads, as bytes."""
    t, _, _ = cute.arch.thread_idx()
    layout: Any = cute.make_layout((64, 64), stride=(64, 1))
    if cutlass.const_expr(swizzled):
        layout = cute.make_composed_layout(cute.make_swizzle(1, 5, 3), 0, layout)
    tile = utils.SmemAllocator().allocate_tensor(Float4E2M1FN, layout, 128)
    source = cute.recast_tensor(x, Float4E2M1FN)
    op = cute.nvgpu.cpasync.CopyG2SOp() if cutlass.const_expr(not swizzled) else cute.nvgpu.CopyUniversalOp()
    atom = cute.make_copy_atom(op, Float4E2M1FN, num_bits_per_copy=128)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 2), stride=(2, 1)), cute.make_layout((1, 32)))
    mine = tiled.get_slice(t)
    src, dst = mine.partition_S(source), mine.partition_D(tile)
    cute.copy(tiled, src, dst)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    row = tile[63 - t, None]
    held = cute.make_rmem_tensor(64, Float4E2M1FN)
    cute.autovec_copy(row, held)
    cute.recast_tensor(out, Float4E2M1FN)[t, None].store(held.load())


@cute.jit
def launch(
    x: cute.Tensor, out: cute.Tensor, kernel: cutlass.Constexpr, threads: cutlass.Constexpr, *statics: cutlass.Constexpr
) -> None:
    kernel(x, out, *statics).launch(grid=(1, 1, 1), block=(threads, 1, 1))


# -- on both machines --------------------------------------------------------------------------------------------------


def simulated(program: Callable[..., Any], arrays: list[np.ndarray], *rest: Any) -> None:
    program(*[from_dlpack(x, assumed_align=16) for x in arrays], *rest)


def on_gpu(program: Callable[..., Any], arrays: list[np.ndarray], *rest: Any) -> None:
    torch = pytest.importorskip("torch")
    there = [
        torch.as_strided(
            torch.from_numpy(np.ascontiguousarray(x.T).reshape(-1)).cuda(),
            x.shape,
            [s // x.itemsize for s in x.strides],
        )
        if x.flags.f_contiguous and x.ndim > 1
        else torch.from_numpy(x).cuda()
        for x in arrays
    ]
    program(*[from_dlpack(x, assumed_align=16) for x in there], *rest)
    for x, y in zip(arrays, there, strict=True):
        x[...] = y.cpu().numpy()


MACHINES = pytest.mark.parametrize("run", [simulated, pytest.param(on_gpu, marks=pytest.mark.gpu)])


def fresh(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """An aligned array, column-major."""
    return np.zeros(shape, dtype, order="F")


@MACHINES
@KINDS
@pytest.mark.parametrize("to", [Float32, Float16, BFloat16, Int32, Int8])
def test_every_number_widens(run: Any, kind: Any, to: Any) -> None:
    codes = np.resize(np.arange(1 << kind.width, dtype=np.uint8), 32 * N)
    expected = codes.view(getattr(ml_dtypes, NUMPY[kind])).astype(np.float32)
    out = fresh((N, 32))
    run(launch, [packed(codes, kind.width), out], widen, 32, kind, to)
    want = np.trunc(expected) if to.is_integer else expected
    np.testing.assert_array_equal(out.T.reshape(-1), want)


@MACHINES
@KINDS
def test_numbers_round_to_the_nearest_even_and_saturate(run: Any, kind: Any) -> None:
    x = fresh((N, 32))
    flat = np.random.default_rng(1).normal(0, kind.max / 2, 32 * N).astype(np.float32)
    flat[:13] = [np.inf, -np.inf, np.nan, 1e30, -1e-30, 0.0, -0.0, 0.25, 0.75, 1.25, 2.5, -5.0, 0.0625]
    steps = np.linspace(-kind.max, kind.max, 400, dtype=np.float32)  # ties among them
    flat[13:413] = steps
    x[...] = flat.reshape(32, N).T
    out = np.zeros(32 * N * kind.width // 8, np.uint8)
    run(launch, [x, out], narrow, 32, kind)
    np.testing.assert_array_equal(out, rounded(flat, kind))


@MACHINES
@KINDS
def test_single_elements_at_run_time_places(run: Any, kind: Any) -> None:
    given, values = numbers(kind, 256)
    out = np.zeros((3, 32), np.float32)
    run(launch, [given, out], anywhere, 32, kind)
    t = np.arange(32)
    np.testing.assert_array_equal(out[0], values[7 * t + 3])
    np.testing.assert_array_equal(out[1], [values[:i].sum() for i in t])
    np.testing.assert_array_equal(out[2], [2 * max([-1.0 if kind.signed else 0.0, *values[:i]]) for i in t])


@MACHINES
@KINDS
def test_registers_hold_them_without_gaps(run: Any, kind: Any) -> None:
    x = fresh((16, 32))
    x[...] = np.random.default_rng(2).integers(-3, 4, (16, 32)) / 2
    out = fresh((16 * kind.width // 32, 32), np.uint32)
    run(launch, [x, out], registers, 32, kind)
    held = x.T.reshape(32, 4, 4).transpose(0, 2, 1).copy()  # [thread, row, column]
    held = np.trunc(held) if kind.is_integer else held
    held[:, 1, 2] = 2 * held[:, 2, 1]
    want = rounded(held.reshape(-1), kind).view(np.uint32).reshape(32, -1)
    np.testing.assert_array_equal(out.T, want)


@cute.kernel
def integers(x: cute.Tensor, out: cute.Tensor, kind: cutlass.Constexpr) -> None:
    """Whole numbers of 32 bits become integers of 4 bits by their low bits, and compute in 32 bits."""
    t, _, _ = cute.arch.thread_idx()
    small = x[None, t].load().to(kind)
    out[None, t].store(small.to(Int32) * 100 + (small + small))


@MACHINES
@pytest.mark.parametrize("kind", [Int4, Uint4], ids=str)
def test_integers_wrap_to_four_bits(run: Any, kind: Any) -> None:
    x = fresh((N, 32), np.int32)
    x[...] = np.random.default_rng(4).integers(-(1 << 31), 1 << 31, (N, 32))
    out = fresh((N, 32), np.int32)
    run(launch, [x, out], integers, 32, kind)
    low = x & 15
    np.testing.assert_array_equal(out, 102 * (np.where(low > 7, low - 16, low) if kind is Int4 else low))


@MACHINES
@pytest.mark.parametrize("swizzled", [False, True])
def test_copies_through_shared_memory(run: Any, swizzled: bool) -> None:
    x = np.random.default_rng(3).integers(0, 256, (64, 32)).astype(np.uint8)
    out = np.zeros_like(x)
    run(launch, [x, out], turned, 64, swizzled)
    np.testing.assert_array_equal(out, x[::-1])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_machine_code_spills_nothing(arch: str) -> None:
    for kind in [*NUMPY][arch == "sm_80" :: 2]:
        bytes_, wide, words = np.zeros(32 * N * kind.width // 8, np.uint8), fresh((N, 32)), fresh((16, 32), np.uint32)
        for arrays, *rest in (
            ([bytes_, wide], widen, 32, kind, Float32),
            ([wide, bytes_], narrow, 32, kind),
            ([bytes_, np.zeros((3, 32), np.float32)], anywhere, 32, kind),
            ([fresh((16, 32)), words[: kind.width // 2]], registers, 32, kind),
            ([np.zeros((64, 32), np.uint8), np.zeros((64, 32), np.uint8)], turned, 64, True),
        ):
            staged = cute.compile(
                launch,
                *[from_dlpack(x) if i else from_dlpack(x, assumed_align=16) for i, x in enumerate(arrays)],
                *rest,
            )
            assert cutlass.cuda.compile(staged.kernels[0], arch).spills == 0


# -- tensors of frameworks ---------------------------------------------------------------------------------------------


@cute.kernel
def _rows(x: cute.Tensor, out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    for j in range(cute.size(x, mode=[1]) // 8):
        part = cute.local_tile(x, (1, 8), (t, j))
        cute.local_tile(out, (1, 8), (t, j)).store(part.load().to(Float32))


@cute.jit
def rows(x: cute.Tensor, out: cute.Tensor) -> None:
    _rows(x, out).launch(grid=(1, 1, 1), block=(4, 1, 1))


def test_pytorchs_pairs_are_tensors_of_single_numbers() -> None:
    torch = pytest.importorskip("torch")
    given, values = numbers(Float4E2M1FN, 4 * 16)
    pairs = torch.from_numpy(given.reshape(4, 8)).view(torch.float4_e2m1fn_x2)
    x = from_dlpack(pairs)
    assert (x.shape, x.stride, x.element_type) == ((4, 16), (16, 1), Float4E2M1FN)
    turned = from_dlpack(torch.zeros(8, 4, dtype=torch.uint8).t().view(torch.float4_e2m1fn_x2))
    assert (turned.shape, turned.stride) == ((4, 8), (8, 1)) or (turned.shape, turned.stride) == ((8, 8), (1, 8))
    assert str(from_dlpack(pairs).mark_layout_dynamic().layout) == "(?,?{div=2}):(?{div=2},1)"
    for tensor in (x, from_dlpack(pairs).mark_layout_dynamic(), pairs):
        out = torch.zeros(4, 16)
        rows(tensor, from_dlpack(out))
        assert out.tolist() == values.reshape(4, 16).tolist()
    with pytest.raises(ArgumentError, match="without gaps: look at the bytes"):
        x.numpy()
    with pytest.raises(ArgumentError, match="none has it"):
        from_dlpack(pairs[:, ::2])


@KINDS
def test_numpy_arrays_of_one_number_a_byte_are_refused(kind: Any) -> None:
    unpacked = np.zeros(8, getattr(ml_dtypes, NUMPY[kind]))
    with pytest.raises(ArgumentError, match=rf"pass the packed bytes \(uint8\).*recast_tensor\(x, {kind}\)"):
        from_dlpack(unpacked)


def test_packed_pointers_and_fake_tensors() -> None:
    given, values = numbers(Float4E2M1FN, 64)

    @cute.kernel
    def kernel(p: cute.Pointer, out: cute.Tensor) -> None:
        out.store(cute.make_tensor(p + 2, cute.make_layout(62)).load().to(Float32))

    @cute.jit
    def host(p: cute.Pointer, out: cute.Tensor) -> None:
        kernel(p, out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    pointer = cute.runtime.make_ptr(Float4E2M1FN, given.ctypes.data, cute.AddressSpace.gmem)
    assert str(pointer) == "ptr<f4E2M1FN, gmem, align<1>>" and (pointer + 2).toint() == given.ctypes.data + 1
    out = np.zeros(62, np.float32)
    host(pointer, from_dlpack(out))
    np.testing.assert_array_equal(out, values[2:])
    fake = cute.runtime.make_fake_compact_tensor(Float4E2M1FN, (8, 32), stride_order=(1, 0), assumed_align=16)
    assert cute.size_in_bytes(fake.element_type, fake.layout) == 128
    with pytest.raises(ArgumentError, match="element 1 of Float4E2M1FN begins inside a byte"):
        (pointer + 1).toint()


def test_structs_and_numbers_as_arguments() -> None:
    @cute.struct
    class Storage:
        small: cute.struct.MemRange[Float6E3M2FN, 8]
        single: cute.struct.MemRange[Float4E2M1FN, 2]

    assert Storage.size_in_bytes() == 7

    @cute.kernel
    def kernel(x: Float6E3M2FN, y: Float4E2M1FN, out: cute.Tensor) -> None:
        storage = utils.SmemAllocator().allocate(Storage)
        storage.small.get_tensor(cute.make_layout(8)).fill(x)
        storage.single.get_tensor(cute.make_layout(2)).fill(y)
        out[0] = storage.small[5].to(Float32)
        out[1] = storage.single[1].to(Float32)
        cute.printf("{} {}", x, y)

    @cute.jit
    def host(x: Float6E3M2FN, y: Float4E2M1FN, out: cute.Tensor) -> None:
        kernel(x, y, out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(2, np.float32)
    host(Float6E3M2FN(11.0), Float4E2M1FN(1.4), from_dlpack(out))
    assert out.tolist() == [12.0, 1.5]
    staged = cute.compile(host, Float6E3M2FN(1), Float4E2M1FN(1), from_dlpack(out))
    assert cutlass.cuda.compile(staged.kernels[0], "sm_90a").spills == 0


# -- what is refused ---------------------------------------------------------------------------------------------------


def refused(body: Callable[[Any], None], text: str) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        body(cute.recast_tensor(x, Float4E2M1FN))

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with pytest.raises(TilewrightError, match=text):
        host(from_dlpack(np.zeros(64, np.uint8), assumed_align=16))


def test_writes_of_parts_of_a_byte_are_refused() -> None:
    def one(x: Any) -> None:
        x[3] = 1.0

    def strided(x: Any) -> None:
        cute.make_tensor(x.iterator, cute.make_layout(4, stride=2)).fill(1.0)

    def odd(x: Any) -> None:
        cute.make_tensor(x.iterator + cute.arch.thread_idx()[0], cute.make_layout(4)).fill(1.0)

    def copied(x: Any) -> None:
        every_other = cute.make_tensor(x.iterator, cute.make_layout(4, stride=2))
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float4E2M1FN, num_bits_per_copy=8)
        cute.copy(atom, every_other, cute.make_rmem_tensor(4, Float4E2M1FN))

    for body in (one, strided, odd):
        refused(body, "share 1 byte, and this store is not known to write all of them")
    refused(copied, "a thread's elements of 4 bits are not side by side")


def test_arrays_that_keep_a_number_in_a_byte() -> None:
    with pytest.raises(ArgumentError, match=r"keeps one number of 4 bits in a byte.*recast_tensor\(x, Float4E2M1FN\)"):
        from_dlpack(np.zeros(8, ml_dtypes.float4_e2m1fn))


def test_swizzles_that_break_up_bytes() -> None:
    layout = cute.make_composed_layout(cute.make_swizzle(1, 0, 3), 0, cute.make_layout(64))
    refused(lambda x: cute.make_tensor(x.iterator, layout), "breaks up bytes")

    @cute.jit
    def host(x: cute.Tensor) -> None:
        cute.make_tensor(cute.recast_tensor(x, Float6E2M3FN).iterator, layout)

    with pytest.raises(ConstraintError, match="elements of 6 bits breaks up bytes"):
        host(from_dlpack(np.zeros(48, np.uint8), assumed_align=16))


def test_a_static_number_converts_as_a_run_time_one() -> None:
    for kind in NUMPY:
        for x in np.linspace(-30, 30, 241):
            assert kind(float(x)).value == float(np.float32(rounded_value(float(x), kind)))
        assert (
            cutlass.dtype(str(kind)) is kind
            and kind.max == -kind.min - (kind is Int4) + 15 * (kind is Uint4)
            and not hasattr(kind, "nan")
        )
    assert Uint8(3) + 1 == 4


def rounded_value(x: float, kind: Any) -> float:
    return float(np.clip(np.float32(x), kind.min, kind.max).astype(getattr(ml_dtypes, NUMPY[kind])))


@cute.kernel
def _bulk(x: cute.Tensor, out: cute.Tensor) -> None:
    """64 numbers (32 bytes) by one bulk copy; what lies behind them in shared memory stays as it was."""
    smem = utils.SmemAllocator()
    tile, behind = smem.allocate_array(Float4E2M1FN, 64, 128), smem.allocate_array(Uint8, 32, 16)
    bar = smem.allocate_array(cutlass.Int64, 1)
    t, _, _ = cute.arch.thread_idx()
    behind[t] = 7
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    source = cute.recast_tensor(x, Float4E2M1FN)
    if t == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 32)
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkG2SOp(), Float4E2M1FN)
        cute.copy(atom, source, cute.make_tensor(tile, cute.make_layout(64)), mbar_ptr=bar)
    cute.arch.mbarrier_wait(bar, 0)
    out[0, t], out[1, t] = Float32(tile[2 * t]), Float32(behind[t])


@cute.jit
def bulk(x: cute.Tensor, out: cute.Tensor) -> None:
    _bulk(x, out).launch(grid=(1, 1, 1), block=(32, 1, 1))


@MACHINES
def test_bulk_copies_count_bytes(run: Any) -> None:
    given, values = numbers(Float4E2M1FN, 64, seed=5)
    out = np.zeros((2, 32), np.float32)
    run(bulk, [given, out])
    np.testing.assert_array_equal(out, [values[::2], np.full(32, 7)])


def test_a_run_time_index_into_a_loaded_vector_and_its_text(capfd: pytest.CaptureFixture[str]) -> None:
    given, values = numbers(Float6E3M2FN, 8)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        narrow = cute.recast_tensor(x, Float6E3M2FN)
        out[t] = Float32(narrow.load()[t])
        if t == 0:
            cute.print_tensor(narrow, verbose=True)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor) -> None:
        kernel(x, out).launch(grid=(1, 1, 1), block=(8, 1, 1))

    out = np.zeros(8, np.float32)
    host(from_dlpack(given), from_dlpack(out))
    np.testing.assert_array_equal(out, values)
    text = capfd.readouterr().out
    assert "f6E3M2FN, gmem" in text and f"{values[5]:.6f}(0x03)" in text  # bit 30 lies in byte 3


@KINDS
def test_the_checks_find_nothing_in_right_programs(kind: Any) -> None:
    with sim.options(check="all"):
        test_every_number_widens(simulated, kind, Float32)
        if not kind.is_integer:  # a float that an integer does not hold is a finding
            test_numbers_round_to_the_nearest_even_and_saturate(simulated, kind)
        test_single_elements_at_run_time_places(simulated, kind)
        if kind is not Uint4:  # the numbers of that test are signed
            test_registers_hold_them_without_gaps(simulated, kind)
        if kind is Float4E2M1FN:
            test_copies_through_shared_memory(simulated, True)
            test_bulk_copies_count_bytes(simulated)


def test_the_checks_find_unwritten_bytes() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        tile = utils.SmemAllocator().allocate_tensor(Float4E2M1FN, cute.make_layout(64))
        t, _, _ = cute.arch.thread_idx()
        if t == 0:
            cute.local_tile(tile, (32,), (0,)).fill(1.0)
        cute.arch.sync_threads()
        out[t] = Float32(tile[2 * t])

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with sim.options(check="all"), pytest.raises(SimulationError, match="uninitialised"):
        host(from_dlpack(np.zeros(32, np.float32)))
