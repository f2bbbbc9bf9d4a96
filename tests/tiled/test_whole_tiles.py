"""A tile that does not divide a shared-memory tensor is refused while staging: its parts would leave the tensor."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.tiled.staging import run as run_body
from tests.tiled.staging import universal
from tilewright import cute, utils
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError


@cute.kernel
def partition(out: cute.Tensor, rows: cutlass.Constexpr, by: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    smem = utils.SmemAllocator().allocate_tensor(cutlass.Float16, cute.make_layout((rows, 16), stride=(16, 1)), 16)
    op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float16, num_bits_per_copy=128)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((16, 2), stride=(2, 1)), cute.make_layout((1, 8)))
    if cutlass.const_expr(by == "A"):
        part = cute.make_tiled_mma(op).get_slice(tidx).partition_A(smem)
    elif cutlass.const_expr(by == "S"):
        part = copy.get_slice(tidx).partition_S(smem)
        cute.copy(copy, part, cute.make_rmem_tensor_like(part))
    else:
        part = copy.get_slice(tidx).partition_D(smem)
        cute.copy(copy, cute.make_rmem_tensor_like(part), part)
    out[tidx] = cute.size(part)


@cute.jit
def run(out: cute.Tensor, rows: cutlass.Constexpr, by: cutlass.Constexpr):
    partition(out, rows, by).launch(grid=(1, 1, 1), block=(32, 1, 1))


@pytest.mark.parametrize("by", ["A", "S", "D"])
def test_a_tile_that_overhangs_shared_memory_is_refused(by: str) -> None:
    out: Any = np.zeros(32, np.int32)
    run(from_dlpack(out), 32, by)
    assert (out == 16).all()
    words = r"shared-memory tensor \(24,16\):\(16,1\) has 24 elements.*tiles of 16"
    with pytest.raises(ConstraintError, match=words):
        run(from_dlpack(out), 24, by)


def overhung(way: str, extent: int = 24, is_async: bool = False) -> np.ndarray:
    """A tile of 32 elements over ``extent``: what the tensor and the eight elements behind it hold afterwards."""

    def body(tidx: Any, x: Any, out: Any) -> None:
        smem = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(32), 16)
        smem[tidx] = cutlass.Float32(-1)
        cute.arch.sync_threads()
        some = cute.make_tensor(smem.iterator, cute.make_layout(extent))
        op = cute.nvgpu.cpasync.CopyG2SOp() if is_async else cute.nvgpu.CopyUniversalOp()
        atom = cute.make_copy_atom(op, cutlass.Float32, num_bits_per_copy=32)
        copy = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(1))
        thread = copy.get_slice(tidx)
        source, part = thread.partition_S(x), thread.partition_D(some)
        if way == "pred":
            pred = cute.make_rmem_tensor((1, cute.size(part.shape[1])), cutlass.Boolean)
            for m in cutlass.range_constexpr(cute.size(part.shape[1])):
                pred[0, m] = thread.partition_S(cute.make_identity_tensor(extent))[0, m] < extent
            cute.copy(copy, source, part, pred=pred)
        elif way == "copy":
            cute.copy(copy, source, part)
        elif way == "store":
            part[0] = x[tidx]
        elif way == "fill":
            part.fill(0)
        elif way == "slice":
            part[None, 0][0] = x[tidx]
        elif way == "vector":
            cute.autovec_copy(source, part)
        elif way == "recast":
            cute.recast_tensor(part, cutlass.Int32)[0] = 1
        elif way == "pointer":
            part.iterator.store(x[tidx])
        if is_async:
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        out[tidx] = smem[tidx]

    out = np.zeros(32, np.float32)
    run_body(body, np.arange(32, dtype=np.float32), out, threads=32)
    return out


@pytest.mark.parametrize("is_async", [False, True])
def test_a_copy_with_predicates_may_overhang(is_async: bool) -> None:
    """Behind the tensor nothing is copied; cp.async writes zeros, as on a GPU."""
    assert overhung("pred", is_async=is_async).tolist() == [*range(24), *[0 if is_async else -1] * 8]
    assert overhung("copy", 32, is_async).tolist() == list(range(32))


@pytest.mark.parametrize("way", ["copy", "store", "fill", "slice", "vector", "recast", "pointer"])
def test_only_whole_tile_accesses_skip_the_bound_check(way: str) -> None:
    with pytest.raises(ConstraintError, match=r"24:1 has 24 elements, which tiles of 32 do not divide: .*with pred="):
        overhung(way)


def test_extents_that_only_the_launch_knows_are_not_refused() -> None:
    """Nothing is known of them while staging."""

    def body(tidx: Any, x: Any, out: Any) -> None:
        memory = utils.SmemAllocator().allocate_array(cutlass.Float32, 64)
        some = cute.make_tensor(memory, cute.make_layout((x.shape[0], 4), stride=(4, 1)))
        copy = cute.make_tiled_copy_tv(
            universal(32, cutlass.Float32), cute.make_layout((4, 4)), cute.make_layout((1, 1))
        )
        out[tidx] = cute.size(copy.get_slice(tidx).partition_S(some))

    out = np.zeros(16, np.int32)
    run_body(body, np.zeros(8, np.float32), out, threads=16, dynamic=True)
    assert (out == 2).all()


@pytest.mark.parametrize("thread", [0, 1])
@pytest.mark.parametrize(("rows", "warps", "fits"), [(16, 1, True), (24, 1, False), (64, 4, True), (40, 4, False)])
def test_c_in_shared_memory_is_made_of_whole_tiles_for_every_thread(
    rows: int, warps: int, fits: bool, thread: int
) -> None:
    """A pair of blocks may give the first one its own rows alone; of threads none is special."""

    def body(tidx: Any, x: Any, out: Any) -> None:
        op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
        mma = cute.make_tiled_mma(op, (warps, 1, 1))
        memory = utils.SmemAllocator().allocate_array(cutlass.Float32, rows * 8)
        c = cute.make_tensor(memory, cute.make_layout((rows, 8), stride=(8, 1)))
        out[tidx] = cute.size(mma.get_slice(thread).partition_C(c))

    out = np.zeros(32, np.int32)
    with contextlib.nullcontext() if fits else pytest.raises(ConstraintError, match=f"{rows} elements, which tiles of"):
        run_body(body, np.zeros(8, np.float32), out, threads=32)
        assert (out == 4).all()


@pytest.mark.parametrize(("stride", "fits"), [((0, 1), True), ((128, 1), False)])
def test_a_pair_of_blocks_may_give_either_one_rows_that_are_all_the_same(stride: tuple[int, int], fits: bool) -> None:
    """A vector beside the accumulators: of 256 rows each block gives 128, of which all are one."""

    def body(tidx: Any, x: Any, out: Any) -> None:
        from tilewright.cute.nvgpu import OperandMajorMode as Major
        from tilewright.cute.nvgpu import tcgen05

        kinds = cutlass.BFloat16, cutlass.Float32, (256, 128, 16), tcgen05.CtaGroup.TWO, tcgen05.OperandSource.SMEM
        mma = cute.make_tiled_mma(tcgen05.MmaF16BF16Op(*kinds, Major.K, Major.K))
        memory = utils.SmemAllocator().allocate_array(cutlass.Float32, 128 * (128 if stride[0] else 1))
        c = cute.make_tensor(memory, cute.make_layout((128, 128), stride=stride))
        out[tidx] = cute.size(mma.get_slice(tidx % 2).partition_C(c))

    out = np.zeros(32, np.int32)
    with contextlib.nullcontext() if fits else pytest.raises(ConstraintError, match="128 elements, which tiles of 256"):
        run_body(body, np.zeros(8, np.float32), out, threads=32)
        assert (out == 128 * 128).all()


@pytest.mark.parametrize("used", ["", "load", "pointer"])
@pytest.mark.parametrize("dtype", [cutlass.Float8E4M3FN, cutlass.Float4E2M1FN])
def test_an_operand_that_is_partitioned_already_may_be_partitioned_for_its_shape_alone(dtype: Any, used: str) -> None:
    """cuDNN's grouped GEMMs do so; nothing reads the part, and what would read it is refused."""

    def body(tidx: Any, x: Any, out: Any) -> None:
        from tilewright.cute.nvgpu import OperandMajorMode as Major
        from tilewright.cute.nvgpu import tcgen05

        kinds = cutlass.Float8E4M3FN, cutlass.Float8E4M3FN, cutlass.Float32, (128, 128, 32), tcgen05.CtaGroup.ONE
        mma = cute.make_tiled_mma(tcgen05.MmaF8F6F4Op(*kinds, tcgen05.OperandSource.SMEM, Major.K, Major.K))
        memory = utils.SmemAllocator().allocate_array(dtype, 128 * 64)
        a = cute.make_tensor(memory, cute.make_layout(((128, 32), 1, 2), stride=((32, 1), 0, 128 * 32)))
        part = cute.filter_zeros(mma.get_slice(0).partition_A(a))
        if used == "load":
            out[tidx] = part[0].to(cutlass.Int32)
        elif used == "pointer":
            part.iterator.toint()

    refused = pytest.raises(ConstraintError, match="a part already, .*use it without partition_A")
    with refused if used else contextlib.nullcontext():
        run_body(body, np.zeros(8, np.float32), np.zeros(32, np.int32), threads=32)
