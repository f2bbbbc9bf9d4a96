"""Single documented names of ``cute.arch`` and of numbers, each by what it does, on both machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.machines import MACHINES, OnMachine
from tilewright import Float32, Int32, Int64, Int128, Uint32, Uint64, Uint128, cute, sim, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, TilewrightError
from tilewright.testing import per_thread

arch = cute.arch
FLOATS = np.array([-3.5, 2.25, -0.0, 0.0, 7.0, -7.0, 1e-30, -1e30, 1e30, -1e-30] + [0.5] * 22, np.float32)


@cute.kernel
def _extremes(x: cute.Tensor, places: cute.Tensor, out: cute.Tensor, words: cute.Tensor) -> None:
    t, _, _ = arch.thread_idx()
    for i in cutlass.range_constexpr(3):
        arch.atomic_fmax(places.iterator + 2 * i, x[t])
        arch.atomic_fmin(places.iterator + (2 * i + 1), x[t])
    out[0, t] = arch.warp_redux_sync(x[t], "fmax")
    out[1, t] = arch.warp_redux_sync(x[t], "fmin")
    words[0, t] = arch.warp_redux_sync(Int32(t) - 20, "min")
    words[1, t] = Int32(arch.warp_redux_sync(Uint32(1) << Uint32(t % 5), "or"))
    arch.nanosleep(20)
    words[2, t] = arch.warp_redux_sync(t, "add")


@cute.jit
def extremes(x: cute.Tensor, places: cute.Tensor, out: cute.Tensor, words: cute.Tensor) -> None:
    _extremes(x, places, out, words).launch(grid=(1, 1, 1), block=(32, 1, 1))


def fresh() -> list[np.ndarray]:
    return [
        FLOATS,
        np.array([-5, 5, 0, 0, -1e35, 1e35], np.float32),
        np.zeros((2, 32), np.float32),
        np.zeros((3, 32), np.int32),
    ]


def check(places: Any, out: Any, words: Any) -> None:
    largest, least = float(FLOATS.max()), float(FLOATS.min())
    assert np.asarray(places).tolist() == [largest, least] * 3
    assert (np.asarray(out) == [[np.float32(largest)], [np.float32(least)]]).all()
    assert (np.asarray(words) == [[-20], [31], [496]]).all()


def test_extremes_of_floats_and_reductions_of_a_warp() -> None:
    arrays = fresh()
    extremes(*map(from_dlpack, arrays))
    check(*arrays[1:])


@pytest.mark.gpu
def test_extremes_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    arrays = [torch.from_numpy(x).cuda() for x in fresh()]
    extremes(*map(from_dlpack, arrays))
    check(*[x.cpu().numpy() for x in arrays[1:]])


@cute.kernel
def _extremes_of_some(x: cute.Tensor, out: cute.Tensor) -> None:
    t, _, _ = arch.thread_idx()
    mask = Uint32(0xFFFF0000)
    if t < 16:
        mask = Uint32(0x0000FFFF)
    out[0, t] = arch.warp_redux_sync(x[t], "fmax", mask)
    out[1, t] = arch.warp_redux_sync(x[t], "fmin", mask, abs=True)
    out[2, t] = arch.warp_redux_sync(x[t], "fmin", mask, nan=True)
    out[3, t] = Float32(arch.warp_redux_sync(t, "add", mask))


@cute.jit
def extremes_of_some(x: cute.Tensor, out: cute.Tensor) -> None:
    _extremes_of_some(x, out).launch(grid=(1, 1, 1), block=(32, 1, 1))


def some() -> list[np.ndarray]:
    x = np.roll(FLOATS, 12)
    x[:16] = np.nan
    return [x, np.zeros((4, 32), np.float32)]


def check_some(out: Any) -> None:
    halves = some()[0].reshape(2, 16)
    largest, least = np.nanmax(halves[1]), np.nanmin(np.abs(halves[1]))
    wanted = [[np.nan, largest], [np.nan, least], halves.min(1), [120, 376]]
    np.testing.assert_array_equal(np.asarray(out), np.repeat(np.array(wanted), 16, 1))


def test_extremes_of_some_lanes() -> None:
    arrays = some()
    extremes_of_some(*map(from_dlpack, arrays))
    check_some(arrays[1])


@pytest.mark.gpu
def test_extremes_of_some_lanes_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    arrays = [torch.from_numpy(x).cuda() for x in some()]
    extremes_of_some(*map(from_dlpack, arrays))
    check_some(arrays[1].cpu().numpy())


def test_their_machine_code() -> None:
    artifact = cutlass.cuda.compile(cute.compile(extremes, *map(from_dlpack, fresh())).kernels[0], "sm_90a")
    assert artifact.spills == 0
    assert "redux.sync" in artifact.ptx and "nanosleep" in artifact.ptx and ".cas." not in artifact.ptx


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (lambda x: arch.atomic_fmax(cute.recast_tensor(x, Int32).iterator, 1), "takes a pointer to Float32"),
        (lambda x: arch.warp_redux_sync(Int64(1), "add"), "takes Int32 or Uint32, not Int64"),
        (lambda x: arch.warp_redux_sync(Int32(1), "fmax", 3), "fmax takes Float32, not Int32"),
        (lambda x: arch.warp_redux_sync(Int32(1), "max", abs=True), "abs and nan belong to fmin and fmax, not to max"),
        (lambda x: arch.warp_redux_sync(Int32(1), "mul"), "no redux.sync.mul"),
        (lambda x: arch.nanosleep(2_000_000), "sleeps 1000000 ns at most"),
        (lambda x: arch.shuffle_sync(Int128(x[0]), 3), "takes no numbers of 128 bits: give it the halves"),
        (lambda x: cute.printf("{}", Int128(x[0])), "no format for 128 bits"),
        (lambda x: cute.full(4, Int128(1), Int128), "128 bits"),
        (lambda x: cute.make_rmem_tensor(2, Uint128), "128 bits"),
        (lambda x: cute.recast_tensor(x, Int128), "128 bits"),
    ],
)
def test_arch_functions_refuse_wrong_arguments(body: Any, text: str) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        body(x)

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with pytest.raises(TilewrightError, match=text):
        host(from_dlpack(np.zeros(32, np.float32), assumed_align=16))


def test_integers_of_128_bits_on_the_host() -> None:
    assert (Int128.width, Uint128.max, Int128.min) == (128, 2**128 - 1, -(2**127)) and Int128.is_integer
    for a in (0, 1, -1, 2**127 - 1, -(2**127), 12345678901234567890123456789):
        for b in (1, -3, 2**64, 987654321987654321):
            x, y = Int128(a), Int128(b)
            found = [n.value for n in (x + y, x * y, x - y, x // y)]
            assert found == [(n + 2**127) % 2**128 - 2**127 for n in (a + b, a * b, a - b, a // b)]
            assert ((x % y).value, bool(x < y)) == (a % b, a < b)
    assert Uint128(Int32(-1)).value == 2**128 - 1 and Int32(Int128(2**32 + 5)).value == 5
    assert Int128(-2.9).value == -2 and Int128(1e60).value == 2**127 - 1 and Float32(Int128(3)).value == 3.0
    assert cute.size_in_bytes(Int128, cute.make_layout(3)) == 48


def test_masks_of_run_time_modes() -> None:
    x = np.zeros((4, 8), np.float32)
    assert (from_dlpack(x).dynamic_shapes_mask, from_dlpack(x).dynamic_strides_mask) == ((0, 0), (0, 0))
    marked = from_dlpack(x).mark_layout_dynamic()
    assert (marked.dynamic_shapes_mask, marked.dynamic_strides_mask) == ((1, 1), (1, 0))
    compact = from_dlpack(x).mark_compact_shape_dynamic(1)
    assert (compact.dynamic_shapes_mask, compact.dynamic_strides_mask) == ((0, 1), (1, 0))


def test_older_modules() -> None:
    assert arch.smem.map_dsmem_ptr is arch.map_dsmem_ptr
    assert utils.static_persistent_tile_scheduler.WorkTileInfo is utils.WorkTileInfo


@MACHINES
def test_vectors_of_narrow_integers_as_floats(machine: OnMachine) -> None:
    """Every Int8, and Int4 in their natural order and shuffled."""
    wide = cute.arch.cvt_i8_bf16_intrinsic, cute.arch.cvt_i8x4_to_bf16x4, cute.arch.cvt_i8x4_to_f32x4

    @cute.kernel
    def kernel(x: cute.Tensor, packed: cute.Tensor, out: cute.Tensor, nibbles: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        part = cute.make_rmem_tensor(4, cutlass.Int8)
        cute.autovec_copy(cute.local_tile(x, (4,), (t,)), part)
        vector = part.load().ir_value()
        for i, how in enumerate(wide):
            of, kind = (vector, 4) if i == 0 else (vector,), cutlass.Float32 if i == 2 else cutlass.BFloat16
            got = cute.TensorSSA(how(*of), 4, kind)
            for j in range(4):
                out[i, 4 * t + j] = got[j].to(cutlass.Float32)
        pair = cute.make_rmem_tensor(2, cutlass.Int8)
        pair[0], pair[1] = part[2], part[3]
        of_pair = cute.TensorSSA(cute.arch.cvt_i8x2_to_f32x2(pair.load().ir_value()), 2, cutlass.Float32)
        again = cute.TensorSSA(cute.arch.cvt_f32x2_bf16x2(of_pair.ir_value()), 2, cutlass.BFloat16)
        direct = cute.TensorSSA(cute.arch.cvt_i8x2_to_bf16x2(pair.load().ir_value()), 2, cutlass.BFloat16)
        out[3, 4 * t], out[3, 4 * t + 1] = again[0].to(cutlass.Float32), direct[1].to(cutlass.Float32)
        out[3, 4 * t + 2] = cute.arch.cvt_i8_bf16(part[1]).to(cutlass.Float32)
        for row, (count, shuffled) in enumerate(((16, False), (16, True), (14, True))):
            narrow = cute.make_rmem_tensor(count, cutlass.Int4)
            cute.autovec_copy(cute.make_tensor(packed.iterator, count), narrow)
            four = cute.arch.cvt_i4_bf16_intrinsic(narrow.load().ir_value(), count, with_shuffle=shuffled)
            for j in range(count):
                nibbles[row, j] = cute.TensorSSA(four, count, cutlass.BFloat16)[j].to(cutlass.Float32)

    @cute.jit
    def host(x: cute.Tensor, packed: cute.Tensor, out: cute.Tensor, nibbles: cute.Tensor) -> None:
        kernel(x, cute.recast_tensor(packed, cutlass.Int4), out, nibbles).launch(grid=(1, 1, 1), block=(64, 1, 1))

    x, packed = np.arange(-128, 128).astype(np.int8), (np.arange(8) * 0x22 + 0x10).astype(np.uint8)
    out, nibbles = np.zeros((4, 256), np.float32), np.zeros((3, 16), np.float32)
    machine.run(host, x, packed, out, nibbles, assumed_align=16)
    np.testing.assert_array_equal(out[:3], np.tile(x.astype(np.float32), (3, 1)))
    fours = x.astype(np.float32).reshape(64, 4)
    np.testing.assert_array_equal(out[3].reshape(64, 4)[:, :3], fours[:, [2, 3, 1]])
    signed = [n if n < 8 else n - 16 for n in range(16)]
    natural = [signed[i] for i in (0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15)]
    assert nibbles[0].tolist() == signed and nibbles[1].tolist() == natural
    assert nibbles[2].tolist() == [*natural[:12], 12 - 16, 13 - 16, 0, 0]


def test_vectors_of_another_type_are_refused() -> None:
    with pytest.raises(ConstraintError, match=r"cvt_i8x4_to_f32x4: .* is not a vector of 4 Int8; give tensor\.load"):
        per_thread(lambda t: cute.arch.cvt_i8x4_to_f32x4(cute.make_rmem_tensor(4, cutlass.Int32).load()), 1)


def test_extremes_with_signs_and_nan() -> None:
    nan = float("nan")
    pairs = [(-3.0, 2.0), (3.0, -4.0), (nan, 1.0), (1e-40, 0.0)]

    def each(function: Any, **how: Any) -> list[float]:
        return [
            per_thread(lambda t, p=p: function(Float32(p[0]) + 0 * t, p[1], **how), 1, dtype=Float32)[0] for p in pairs
        ]

    assert each(arch.fmax, abs=True)[:2] == [-3.0, -4.0] and each(arch.fmin, abs=True)[:2] == [-2.0, -3.0]
    assert np.isnan(each(arch.fmax, nan=True)[2]) and np.isnan(each(arch.fmin, nan=True)[2])
    assert each(arch.fmax)[2:] == [1.0, np.float32(1e-40)] and each(arch.fmax, ftz=True)[3] == 0.0
    with pytest.raises(ConstraintError, match="belong to Float32"):
        per_thread(lambda t: arch.fmax(cutlass.Float16(1), cutlass.Float16(2), nan=True), 1)


def test_reductions_by_names_of_either_kind() -> None:
    assert per_thread(lambda t: arch.warp_redux_sync(Float32(t), "max"), dtype=Float32)[0] == 31.0
    assert per_thread(lambda t: arch.warp_redux_sync(Uint32(t) + 5, "umin"))[0] == 5


def test_integers_of_other_types_are_refused() -> None:
    for call, why in (
        (lambda t: arch.clz(Float32(t)), "clz takes an integer of 32 or 64 bits, not Float32"),
        (lambda t: arch.mul24(Uint32(t), Int32(t)), "mul24 takes 32-bit integers of one type, not Uint32, Int32"),
        (lambda t: arch.shf(t, t, 1, kind="up"), "kind is one of l, r, clamp_left, clamp_right"),
        (lambda t: arch.match_sync(1, t, kind="none"), "kind is 'any' or 'all'"),
    ):
        with pytest.raises(ConstraintError, match=why):
            per_thread(call, 1)
    assert per_thread(lambda t: arch.clz(Int64(1) << t), 3) == [63, 62, 61]


def test_numbers_for_another_block_need_their_alignment() -> None:
    def stored(t: Any) -> None:
        buffer, bar = arch.alloc_smem(Int32, 8), arch.alloc_smem(Int64, 1, 8)
        arch.store_async_dsmem(buffer + 1, (t, t), bar, 0)

    with pytest.raises(ConstraintError, match="2 numbers go to a multiple of 8 bytes"):
        per_thread(stored, 1)
    with pytest.raises(ConstraintError, match="1, 2 or 4 numbers"):
        per_thread(lambda t: arch.store_async_dsmem(arch.alloc_smem(Int32, 8), (t, t, t), None, 0), 1)


@MACHINES
@pytest.mark.parametrize("kind", [Int64, Uint64])
def test_upper_halves_of_products_of_64_bits(machine: OnMachine, kind: Any) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor) -> None:
        t, _, _ = arch.thread_idx()
        out[t] = arch.mul_hi(x[t], y[t])

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor) -> None:
        kernel(x, y, out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    dtype = np.dtype(np.int64 if kind is Int64 else np.uint64)
    x, y = np.random.default_rng(7).integers(0, 1 << 64, (2, 64), np.uint64).view(dtype)
    ends = [0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min]
    x[:16], y[:16] = np.repeat(np.array(ends, dtype), 4), np.tile(np.array(ends, dtype), 4)
    out = np.zeros(64, dtype)
    machine.run(host, x, y, out)
    assert out.tolist() == [int(a) * int(b) >> 64 for a, b in zip(x, y, strict=True)]


def test_registers_of_a_launch() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        block, _, _ = arch.block_idx()
        arch.alloc_smem(Int32, 40)
        out[block, 0], out[block, 1] = arch.total_smem_size(), arch.aggr_smem_size()
        out[block, 2], out[block, 3] = arch.nsmid() - arch.smid(), arch.nwarpid()
        out[block, 4] = arch.gridid().to(Int32)

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=(3, 1, 1), block=(1, 1, 1))

    first, second = np.zeros((2, 3, 5), np.int32)
    with sim.options(arch="sm_89"):
        host(first)
    host(second)
    assert first[:, :4].tolist() == [[256, 1280, 3 - i, 48] for i in range(3)] and second[0, 3] == 64
    assert (first[:, 4] == first[0, 4]).all() and (second[:, 4] == second[0, 4]).all()
    assert first[0, 4] < second[0, 4]
    program = cute.compile(host, first)
    assert cutlass.cuda.compile(program.kernels[0], "sm_90a").spills == 0
