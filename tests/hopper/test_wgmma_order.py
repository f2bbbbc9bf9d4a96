"""wgmma is asynchronous: what comes between issue and wait shows; and what is refused, at staging or at run time."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.hopper.warpgroup_programs import OneGemm, Streamed
from tilewright import cute, sim, utils
from tilewright.atoms.names import mma_by_name
from tilewright.cuda import machine
from tilewright.cute.nvgpu import OperandMajorMode, warp, warpgroup
from tilewright.cute.nvgpu.warpgroup import Field, OperandSource, SmemLayoutAtomKind
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, SimulationError, TilewrightError
from tilewright.lang.staging.ranges import HintWarning
from tilewright.utils import hopper_helpers

K, MN = OperandMajorMode.K, OperandMajorMode.MN
RNG = np.random.default_rng(4)
M, N, DEPTH = 64, 32, 64


def atom(source: OperandSource = OperandSource.SMEM) -> Any:
    f16, f32 = cutlass.Float16, cutlass.Float32
    return cute.make_tiled_mma(warpgroup.MmaF16BF16Op(f16, f32, (64, N, 16), source, K, K))


def multiply(mma: Any, acc: Any, a: Any, b: Any) -> None:
    """All K blocks as one group."""
    warpgroup.fence()
    for k in range(cute.size(a, mode=[2])):
        cute.gemm(mma, acc, a[None, None, k], b[None, None, k], acc)
        mma.set(Field.ACCUMULATE, True)
    warpgroup.commit_group()


class Operands:
    """What the tests' bodies get: shared tensors with A and B in them, their fragments, accumulators, C."""

    def __init__(self, mma: Any, tidx: Any, gA: Any, gB: Any, gC: Any) -> None:
        self.mma, self.tidx = mma, tidx
        kind = warpgroup.make_smem_layout_atom(SmemLayoutAtomKind.K_SW128, cutlass.Float16)
        self.shared = []
        for x in (gA, gB):
            layout = cute.tile_to_shape(kind, x.shape, (0, 1))
            sX = utils.SmemAllocator().allocate_tensor(cutlass.Float16, layout.outer, 1024, swizzle=layout.inner)
            for i in range(cute.size(x) // 128):
                sX[tidx + 128 * i] = x[tidx + 128 * i]
            self.shared.append(sX)
        cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        thread = mma.get_slice(tidx)
        self.a_part = thread.partition_A(self.shared[0])
        self.a, self.b = mma.make_fragment_A(self.a_part), mma.make_fragment_B(thread.partition_B(self.shared[1]))
        self.c = thread.partition_C(gC)
        self.acc = mma.make_fragment_C(self.c)
        mma.set(Field.ACCUMULATE, False)

    def clear(self, which: int) -> None:
        for i in range(cute.size(self.shared[which]) // 128):
            self.shared[which][self.tidx + 128 * i] = cutlass.Float16(0)


def run(body: Any, source: OperandSource = OperandSource.SMEM, threads: int = 128) -> tuple[np.ndarray, np.ndarray]:
    """C as ``body(operands)`` leaves it, and A B^T."""

    @cute.kernel
    def kernel(gA: cute.Tensor, gB: cute.Tensor, gC: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        body(Operands(atom(source), tidx, gA, gB, gC))

    @cute.jit
    def host(gA: cute.Tensor, gB: cute.Tensor, gC: cute.Tensor):
        kernel(gA, gB, gC).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    a, b = (RNG.integers(1, 4, shape).astype(np.float16) for shape in ((M, DEPTH), (N, DEPTH)))
    c = np.full((M, N), -1, np.float32)
    host(*[from_dlpack(x, assumed_align=16) for x in (a, b, c)])
    return c, a.astype(np.float32) @ b.astype(np.float32).T


def test_the_clean_program() -> None:
    def body(x: Operands) -> None:
        multiply(x.mma, x.acc, x.a, x.b)
        warpgroup.wait_group(0)
        cute.arch.sync_threads()  # each warp waits for its own rows only
        x.clear(1)
        cute.autovec_copy(x.acc, x.c)

    got, want = run(body)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("which", [0, 1])
def test_shared_memory_that_is_overwritten_too_early(which: int) -> None:
    def body(x: Operands) -> None:
        multiply(x.mma, x.acc, x.a, x.b)
        x.clear(which)
        cute.arch.sync_threads()
        warpgroup.wait_group(0)
        cute.autovec_copy(x.acc, x.c)

    with sim.options(check="none"):  # which would call it a race
        got, _ = run(body)
    assert (got == 0).all()


@pytest.mark.tilewright_check("none")  # registers are touched too early on purpose
def test_accumulators_that_are_read_too_early_are_poison() -> None:
    def body(x: Operands) -> None:
        x.acc.fill(7)
        multiply(x.mma, x.acc, x.a, x.b)
        cute.autovec_copy(x.acc, x.c)
        warpgroup.wait_group(0)

    got, _ = run(body)
    assert np.isnan(got).all()


@pytest.mark.tilewright_check("none")  # registers are touched too early on purpose
def test_a_missing_commit_leaves_the_instruction_in_flight() -> None:
    def body(x: Operands) -> None:
        x.acc.fill(7)
        warpgroup.fence()
        cute.gemm(x.mma, x.acc, x.a, x.b, x.acc)
        warpgroup.wait_group(0)
        cute.autovec_copy(x.acc, x.c)

    got, _ = run(body)
    assert np.isnan(got).all()


@pytest.mark.parametrize("pending", [0, 1])
def test_a_wait_leaves_the_newest_groups_in_flight(pending: int) -> None:
    """And with them the accumulators of older groups that they go on with."""

    def body(x: Operands) -> None:
        first, second = x.mma.make_fragment_C(x.c), x.mma.make_fragment_C(x.c)
        multiply(x.mma, first, x.a, x.b)
        x.mma.set(Field.ACCUMULATE, False)
        multiply(x.mma, second, x.a, x.b)
        multiply(x.mma, second, x.a, x.b)
        warpgroup.wait_group(2 * pending)
        x.acc.store(first.load() + second.load() if pending == 0 else first.load())
        cute.autovec_copy(x.acc, x.c)
        warpgroup.wait_group(0)

    got, want = run(body)
    np.testing.assert_array_equal(got, want * (3 - 2 * pending))


@pytest.mark.tilewright_check("none")  # registers are touched too early on purpose
def test_accumulators_of_a_finished_group_that_a_later_one_goes_on_with() -> None:
    def body(x: Operands) -> None:
        multiply(x.mma, x.acc, x.a, x.b)
        multiply(x.mma, x.acc, x.a, x.b)
        warpgroup.wait_group(1)
        cute.autovec_copy(x.acc, x.c)
        warpgroup.wait_group(0)

    got, _ = run(body)
    assert np.isnan(got).all()


@pytest.mark.tilewright_check("none")  # registers are touched too early on purpose
@pytest.mark.parametrize("early", [False, True])
def test_registers_of_a_belong_to_the_instruction_until_the_wait(early: bool) -> None:
    def body(x: Operands) -> None:
        cute.autovec_copy(x.a_part, x.a)
        multiply(x.mma, x.acc, x.a, x.b)
        if early:
            x.a.fill(0)
        warpgroup.wait_group(0)
        x.a.fill(0)
        cute.autovec_copy(x.acc, x.c)

    got, want = run(body, OperandSource.RMEM)
    np.testing.assert_array_equal(got, 0 * want if early else want)


@pytest.mark.parametrize("accumulate", [False, True])
def test_a_field_of_a_run_time_value(accumulate: bool) -> None:
    def body(x: Operands) -> None:
        x.acc.fill(100)
        x.mma.set(Field.ACCUMULATE, (x.tidx < 1000) == accumulate)
        warpgroup.fence()
        cute.gemm(x.mma, x.acc, x.a, x.b, x.acc)  # all K blocks: the field is the first one's
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(x.acc, x.c)

    got, want = run(body)
    np.testing.assert_array_equal(got, want + 100 * accumulate)


def test_an_atom_accumulates_unless_it_is_told_otherwise_and_kernels_have_their_own() -> None:
    mma = atom()
    assert mma.get(Field.ACCUMULATE) is True
    mine = mma.__new_from_mlir_values__([])
    mine.set(Field.ACCUMULATE, False)
    assert mma.get(Field.ACCUMULATE) is True and mine.get(Field.ACCUMULATE) is False
    assert mine == mma


# -- what is refused ---------------------------------------------------------------------------------------------------


def refused(body: Any, match: str, source: OperandSource = OperandSource.SMEM) -> str:
    with pytest.raises(TilewrightError, match=match) as caught:
        run(body, source)
    assert "test_wgmma_order.py" in str(caught.value)
    return str(caught.value)


def shared(layout: Any, swizzle: Any = None, align: int = 1024, dtype: Any = cutlass.Float16) -> Any:
    return utils.SmemAllocator().allocate_tensor(dtype, layout, align, swizzle=swizzle)


def test_a_layout_that_is_no_canonical_one() -> None:
    def body(x: Operands) -> None:
        padded = shared(cute.make_layout((M, DEPTH), stride=(DEPTH + 8, 1)))
        x.mma.make_fragment_A(x.mma.get_slice(x.tidx).partition_A(padded))

    assert "K_SW128" in refused(body, "canonical layout.*not")


@pytest.mark.parametrize(
    "modes",
    [
        ((M, 16), 1),  # (V, RestM) without RestK
        ((M, 8), 1, 1),  # fewer values than one instruction reads
        (M * 16, 1, 1),  # values that are not rows and columns
        ((M, 4, 4), 1, 1),
    ],
)
def test_a_partition_has_the_values_of_an_instruction_by_rows_and_columns(modes: Any) -> None:
    def body(x: Operands) -> None:
        x.mma.make_fragment_A(cute.make_tensor(x.shared[0].iterator, cute.make_layout(modes)))

    refused(body, "takes a partition .V,Rest,Rest. with .64, 16. values in V, not")


def test_a_whole_layout_whose_swizzle_counts_bytes() -> None:
    def body(x: Operands) -> None:
        kind = warpgroup.make_smem_layout_atom(SmemLayoutAtomKind.K_SW128, cutlass.Float16)
        x.mma.make_fragment_A(x.mma.get_slice(x.tidx).partition_A(shared(cute.tile_to_shape(kind, (M, DEPTH), (0, 1)))))

    refused(body, r"swizzle=layout\.inner")


def test_a_swizzle_that_does_not_start_where_its_pattern_does() -> None:
    def body(x: Operands) -> None:
        space = utils.SmemAllocator().allocate(2 * M * DEPTH + 512, byte_alignment=512)
        kind = warpgroup.make_smem_layout_atom(SmemLayoutAtomKind.K_SW64, cutlass.Float16)
        layout = cute.tile_to_shape(kind, (M, DEPTH), (0, 1))
        at = cute.make_tensor(cute.recast_ptr(space, layout.inner, dtype=cutlass.Float16), layout.outer)
        moved = cute.make_tensor(at.iterator + 4, layout.outer)
        x.mma.make_fragment_A(x.mma.get_slice(x.tidx).partition_A(moved))

    refused(body, "multiple of 16 bytes")


def test_operands_of_other_types() -> None:
    def body(x: Operands) -> None:
        other = shared(x.shared[0].layout, dtype=cutlass.BFloat16)
        x.mma.make_fragment_A(x.mma.get_slice(x.tidx).partition_A(other))

    refused(body, "A must hold f16")


def test_operands_that_are_no_descriptors() -> None:
    def partition(x: Operands) -> None:
        cute.gemm(x.mma, x.acc, x.a_part, x.b, x.acc)

    refused(partition, "make_fragment_A")

    def registers(x: Operands) -> None:
        cute.gemm(x.mma, x.acc, x.a, cute.make_rmem_tensor((1, 1, 4), cutlass.Float16), x.acc)

    refused(registers, "make_fragment_B")

    def loads(x: Operands) -> None:
        x.a.load()

    refused(loads, "no elements to load")

    def from_global(x: Operands) -> None:
        x.mma.make_fragment_B(x.c)

    refused(from_global, "shared-memory tensor")


def test_rest_modes_that_do_not_match() -> None:
    def body(x: Operands) -> None:
        cute.gemm(x.mma, x.acc, x.a, x.b[None, None, 0], x.acc)

    refused(body, "do not match")


def test_a_block_that_has_half_a_warpgroup() -> None:
    with pytest.warns(HintWarning, match="for 128 threads, and the launch has blocks of 64"):
        with pytest.raises(SimulationError, match="the block of 64 threads has 64 from warp 0 on"):
            run(lambda x: multiply(x.mma, x.acc, x.a, x.b), threads=64)


def test_a_missing_fence() -> None:
    def first(x: Operands) -> None:
        cute.gemm(x.mma, x.acc, x.a, x.b, x.acc)

    text = refused(first, r"(?s)wgmma-fence: .*no wgmma\.fence is between.*fence\(\) before the gemm")
    assert ":  cute.gemm(x.mma, x.acc, x.a, x.b, x.acc)" in text and "after its registers are made" in text

    @cute.jit
    def in_a_loop(x: Any):
        warpgroup.fence()
        for _ in cutlass.range(x.tidx // 64 + 2):
            cute.gemm(x.mma, x.acc, x.a, x.b, x.acc)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            x.acc.store(x.acc.load() * 2.0)

    text = refused(in_a_loop, r"no wgmma\.fence is between")
    assert ":  x.acc.store(x.acc.load() * 2.0)" in text

    @cute.jit
    def in_one_arm(x: Any):
        warpgroup.fence()
        if x.tidx // 128 == 0:
            x.acc.fill(0)
        cute.gemm(x.mma, x.acc, x.a, x.b, x.acc)

    refused(in_one_arm, r"no wgmma\.fence is between")


def multiplied_once(fence: bool) -> Any:
    """C = A B^T + 100 by one wgmma, with the fence that it needs or without."""

    @cute.kernel
    def kernel(gA: cute.Tensor, gB: cute.Tensor, gC: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        x = Operands(atom(), tidx, gA, gB, gC)
        x.acc.fill(100)
        x.mma.set(Field.ACCUMULATE, True)
        if cutlass.const_expr(fence):
            warpgroup.fence()
        cute.gemm(x.mma, x.acc, x.a, x.b, x.acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(x.acc, x.c)

    @cute.jit
    def host(gA: cute.Tensor, gB: cute.Tensor, gC: cute.Tensor):
        kernel(gA, gB, gC).launch(grid=(1, 1, 1), block=(128, 1, 1))

    return host


@pytest.mark.parametrize("fence", [False, True])
def test_a_gpu_runs_what_has_no_fence_with_a_warning(fence: bool) -> None:
    """ptxas accepts the kernel; the warning names both lines."""
    arrays = [np.zeros((M, DEPTH), np.float16), np.zeros((N, DEPTH), np.float16), np.zeros((M, N), np.float32)]
    (function,) = cute.compile(multiplied_once(fence), *(from_dlpack(x, assumed_align=16) for x in arrays)).kernels
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        artifact = machine.artifact(function)
    told = [str(one.message) for one in caught if "no wgmma.fence" in str(one.message)]
    assert len(told) == (0 if fence else 1) and "Used" in artifact.log
    assert fence or told[0].count("test_wgmma_order.py:") == 2


@pytest.mark.gpu
@pytest.mark.parametrize("fence", [False, True])
def test_the_product_without_a_fence_is_right_on_a_gpu(fence: bool) -> None:
    """ptxas inserts the fence; the user is told."""
    torch = pytest.importorskip("torch")
    a, b = (torch.randint(-3, 4, (rows, DEPTH), device="cuda").half() for rows in (M, N))
    c = torch.zeros(M, N, device="cuda")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        multiplied_once(fence)(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))
    assert torch.equal(c, (a.double() @ b.double().T + 100).float())
    assert any("no wgmma.fence" in str(one.message) for one in caught) != fence


def test_a_field_that_only_the_loop_sets() -> None:
    @cute.jit
    def body(x: Any):
        mma = atom()
        x.acc.fill(0)
        for k in cutlass.range(x.tidx // 128 + 2):
            warpgroup.fence()
            cute.gemm(mma, x.acc, x.a, x.b, x.acc)
            mma.set(Field.ACCUMULATE, k < 0)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
        cute.autovec_copy(x.acc, x.c)

    got, want = run(body)
    np.testing.assert_array_equal(got, want)  # the second product overwrites the first


def test_a_warpgroup_that_is_not_together() -> None:
    def body(x: Operands) -> None:
        x.mma.set(Field.ACCUMULATE, False)
        warpgroup.fence()
        with cute.arch.elect_one():
            cute.gemm(x.mma, x.acc, x.a, x.b, x.acc)

    refused(body, "only lanes")


def test_wait_counts() -> None:
    for count in (-1, 8, None):
        with pytest.raises(ConstraintError, match="0 to 7"):
            warpgroup.wait_group(count)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda f16, f32: warpgroup.MmaF16BF16Op(f16, f32, (64, 12, 16), OperandSource.SMEM, K, K), "steps of 8"),
        (lambda f16, f32: warpgroup.MmaF16BF16Op(f16, f32, (64, 264, 16), OperandSource.SMEM, K, K), "8 to 256"),
        (lambda f16, f32: warpgroup.MmaF16BF16Op(f16, f32, (128, 64, 16), OperandSource.SMEM, K, K), "64xNx16"),
        (lambda f16, f32: warpgroup.MmaF16BF16Op(f16, f32, (64, 64, 16), OperandSource.RMEM, MN, K), "K-major"),
        (lambda f16, f32: warpgroup.MmaF16BF16Op(f32, f32, (64, 64, 16), OperandSource.SMEM, K, K), "ab_dtype"),
        (lambda f16, f32: warpgroup.MmaTF32Op(f32, (64, 64, 8), OperandSource.SMEM, K, MN), "K-major operands only"),
        (lambda f16, f32: warpgroup.MmaTF32Op(f16, (64, 64, 8), OperandSource.SMEM), "acc_dtype"),
        (lambda f16, f32: warpgroup.MmaTF32Op(f32, 64, OperandSource.SMEM), "three extents"),
        (lambda f16, f32: warpgroup.MmaI8Op(cute.Int8, cute.Uint8, f32, (64, 64, 32), OperandSource.SMEM), "acc_dtype"),
        (lambda f16, f32: warpgroup.MmaF8Op(f16, f16, f32, (64, 64, 32), OperandSource.SMEM), "a_dtype"),
        (lambda f16, f32: hopper_helpers.make_trivial_tiled_mma(f32, f32, K, K, f32, (1, 1, 1), (64, 64)), "Float32"),
        (lambda f16, f32: warpgroup.make_smem_layout_atom("K_SW128", f16), "SmemLayoutAtomKind"),
    ],
)
def test_instructions_that_do_not_exist(make: Any, match: str) -> None:
    with pytest.raises(ConstraintError, match=match):
        make(cute.Float16, cute.Float32)


def test_other_atoms_have_no_field() -> None:
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    with pytest.raises(ConstraintError, match="has no field"):
        mma.set(Field.ACCUMULATE, False)


def test_wgmma_needs_sm_90a() -> None:
    from tilewright.cuda import emit

    program = OneGemm(mma_by_name("SM90_64x64x16_F32F16F16_SS<K,K>"))
    arrays = [np.zeros((64, 64), t) for t in (np.float16, np.float16, np.float32)]
    executor = cute.compile(program, *[from_dlpack(x, assumed_align=16) for x in arrays])
    with pytest.raises(ConstraintError, match="sm_80"):
        emit(executor.kernels[0], "sm_80")


def test_instructions_are_counted() -> None:
    program = OneGemm(mma_by_name("SM90_64x64x16_F32F16F16_SS<K,K>"), whole=True)
    arrays = [np.zeros((64, 64), t) for t in (np.float16, np.float16, np.float32)]
    with sim.profile() as report:
        program(*[from_dlpack(x, assumed_align=16) for x in arrays])
    name = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
    assert report.kernels[0].instructions[name] == 4 * 4  # warps and K blocks


@pytest.mark.parametrize(("first", "holds"), [("field", 2), ("zeros", 3)])
def test_registers_are_held_at_waits_and_handed_over_at_fences(first: str, holds: int) -> None:
    """Two waits hold the accumulators; the fence does where other code has written them, here the zeros."""
    from tilewright.cuda import emit

    arrays = [np.zeros(shape, t) for shape, t in (((128, 128), "f2"), ((64, 128), "f2"), ((128, 64), "f4"))]
    executor = cute.compile(Streamed(64, 2, 2, first), *[from_dlpack(x, assumed_align=16) for x in arrays])
    lines = emit(executor.kernels[0]).text.splitlines()
    at = [i for i, line in enumerate(lines) if line.strip() == "hold_32_float(acc);"]
    assert len(at) == holds
    assert sum("wgmma.wait_group" in lines[i - 1] for i in at) == 2
    assert sum("wgmma.fence" in lines[i + 1] for i in at) == holds - 2
