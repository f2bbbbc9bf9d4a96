"""``cute.copy`` and ``cute.gemm`` inside kernels, run on the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.tiled.staging import run
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

RNG = np.random.default_rng(3)


def integers(shape: Any, dtype: Any = np.float16) -> np.ndarray[Any, Any]:
    return RNG.integers(-3, 4, shape).astype(dtype)


class SharedGemm:
    """One block: C = A B^T through cp.async, swizzled shared memory, ldmatrix and mma.sync."""

    def __init__(self, transposed: bool, epilogue: str = "direct") -> None:
        self.transposed, self.epilogue = transposed, epilogue

    @cute.jit
    def __call__(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
        op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
        tiled_mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
        self.kernel(mA, mB, mC, tiled_mma).launch(grid=(1, 1, 1), block=(128, 1, 1))

    @cute.kernel
    def kernel(self, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tiled_mma: cute.TiledMma):
        tidx, _, _ = cute.arch.thread_idx()
        order = (0, 1) if self.transposed else (1, 0)
        atom_layout = cute.make_ordered_layout((8, 64) if not self.transposed else (64, 8), order)
        swizzled = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, atom_layout)
        layout = cute.tile_to_shape(swizzled, (64, 64), (0, 1))
        smem = cutlass.utils.SmemAllocator()
        sA = smem.allocate_tensor(cutlass.Float16, layout, 128)
        sB = smem.allocate_tensor(cutlass.Float16, layout, 128)

        g2s = cute.make_copy_atom(
            cute.nvgpu.cpasync.CopyG2SOp(cute.nvgpu.LoadCacheMode.GLOBAL), cutlass.Float16, num_bits_per_copy=128
        )
        threads = cute.make_layout((16, 8), stride=(8, 1)) if not self.transposed else cute.make_layout((8, 16))
        values = cute.make_layout((1, 8)) if not self.transposed else cute.make_layout((8, 1))
        load = cute.make_tiled_copy_tv(g2s, threads, values).get_slice(tidx)
        cute.copy(g2s, load.partition_S(mA), load.partition_D(sA))
        cute.copy(g2s, load.partition_S(mB), load.partition_D(sB))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()

        thr_mma = tiled_mma.get_slice(tidx)
        rA = thr_mma.make_fragment_A(thr_mma.partition_A(sA))
        rB = thr_mma.make_fragment_B(thr_mma.partition_B(sB))
        rC = thr_mma.make_fragment_C(thr_mma.partition_C(mC))
        rC.fill(0)
        s2r = cute.make_copy_atom(
            cute.nvgpu.warp.LdMatrix8x8x16bOp(transpose=self.transposed, num_matrices=4), cutlass.Float16
        )
        for x, shared, registers in (("A", sA, rA), ("B", sB, rB)):
            make = cute.make_tiled_copy_A if x == "A" else cute.make_tiled_copy_B
            copy = make(s2r, tiled_mma)
            cute.copy(copy, copy.get_slice(tidx).partition_S(shared), copy.retile(registers))
        cute.gemm(tiled_mma, rC, rA, rB, rC)
        if cutlass.const_expr(self.epilogue == "direct"):
            cute.autovec_copy(rC, thr_mma.partition_C(mC))
        else:
            self.store_by_matrix(tiled_mma, rC, sA, mC, tidx)

    @cute.jit
    def store_by_matrix(self, tiled_mma: cute.TiledMma, rC: cute.Tensor, sA: cute.Tensor, mC: cute.Tensor, tidx: Any):
        half = cute.make_rmem_tensor(rC.layout, cutlass.Float16)
        half.store(rC.load().to(cutlass.Float16))
        r2s = cute.make_copy_atom(
            cute.nvgpu.warp.StMatrix8x8x16bOp(transpose=self.transposed, num_matrices=4), cutlass.Float16
        )
        copy = cute.make_tiled_copy_C(r2s, tiled_mma)
        cute.arch.sync_threads()
        cute.copy(copy, copy.retile(half), copy.get_slice(tidx).partition_D(sA))
        cute.arch.sync_threads()
        thread = tiled_mma.get_slice(tidx)
        cute.basic_copy(thread.partition_C(sA), thread.partition_C(mC))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("epilogue", ["direct", "stmatrix"])
def test_shared_memory_gemm(transposed: bool, epilogue: str) -> None:
    a, b, c = integers((64, 64)), integers((64, 64)), np.zeros((64, 64), np.float32)
    views = [np.asfortranarray(x) for x in (a, b)] if transposed else [a, b]
    tensors = [from_dlpack(x, assumed_align=16) for x in views]
    SharedGemm(transposed, epilogue)(*tensors, from_dlpack(c))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


@cute.kernel
def _simt(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(cutlass.Float32), cute.make_layout((8, 4, 1)))
    thread = mma.get_slice(tidx)
    parts = thread.partition_A(mA), thread.partition_B(mB), thread.partition_C(mC)
    rA, rB, rC = mma.make_fragment_A(parts[0]), mma.make_fragment_B(parts[1]), mma.make_fragment_C(parts[2])
    start = cute.make_rmem_tensor(rC.layout, cutlass.Float32)
    start.fill(1)
    cute.basic_copy(parts[0], rA)
    cute.basic_copy(parts[1], rB)
    cute.gemm(mma, rC, rA, rB, start)
    cute.basic_copy(rC, parts[2])


@cute.jit
def simt(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    _simt(mA, mB, mC).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_universal_gemm_with_another_c() -> None:
    a, b, c = integers((16, 6), np.float32), integers((8, 6), np.float32), np.zeros((16, 8), np.float32)
    simt(from_dlpack(a), from_dlpack(b), from_dlpack(c))
    np.testing.assert_array_equal(c, a @ b.T + 1)


class Predicated:
    """y[:n] = x[:n], the rest untouched (copy) or zero (cp.async), 4 elements a thread, by one of three ways."""

    def __init__(self, way: str) -> None:
        self.way = way

    @cute.jit
    def __call__(self, mX: cute.Tensor, mY: cute.Tensor, n: cutlass.Int32):
        self.kernel(mX, mY, n).launch(grid=(1, 1, 1), block=(32, 1, 1))

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mY: cute.Tensor, n: cutlass.Int32):
        tidx, _, _ = cute.arch.thread_idx()
        asynchronous = self.way == "async"
        op = cute.nvgpu.cpasync.CopyG2SOp() if asynchronous else cute.nvgpu.CopyUniversalOp()
        atom = cute.make_copy_atom(op, cutlass.Float32, num_bits_per_copy=64)
        thread = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(2)).get_slice(tidx)
        x, y = thread.partition_S(mX), thread.partition_D(mY)
        coordinates = thread.partition_S(cute.make_identity_tensor(mX.shape))
        inside = cute.make_rmem_tensor((x.shape[0][1], *x.shape[1:]), cutlass.Boolean)
        for i in cutlass.range_constexpr(cute.size(inside)):
            inside[i] = cute.elem_less(coordinates[2 * i], n)
        if cutlass.const_expr(asynchronous):
            smem = cutlass.utils.SmemAllocator()
            shared = smem.allocate_tensor(cutlass.Float32, cute.make_layout(cute.size(mX)), 16)
            staged = thread.partition_D(shared)
            cute.copy(atom, x, staged, pred=inside)
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
            cute.autovec_copy(staged, y)
        elif cutlass.const_expr(self.way == "registers"):
            registers = cute.make_fragment_like(x)
            registers.fill(0)
            cute.copy(atom, x, registers, pred=inside)
            cute.copy(atom, registers, y, pred=inside)
        else:
            cute.copy(atom, x, y, pred=inside)


@pytest.mark.parametrize("way", ["registers", "memory", "async"])
def test_copies_with_predicates(way: str) -> None:
    x, y = np.arange(1, 129, dtype=np.float32), np.full(128, -1, np.float32)
    Predicated(way)(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16), 90)
    expected = np.where(np.arange(128) < 90, x, 0 if way == "async" else -1)
    np.testing.assert_array_equal(y, expected)


@cute.kernel
def _conditional(mX: cute.Tensor, mY: cute.Tensor):
    registers = cute.make_rmem_tensor(mX.layout.shape, mX.element_type)
    inside = cute.make_rmem_tensor(mX.layout.shape, cutlass.Boolean)
    cute.basic_copy(mX, registers)
    for i in cutlass.range_constexpr(cute.size(mX)):
        inside[i] = registers[i] > 2
    cute.basic_copy_if(inside, registers, mY)


@cute.jit
def conditional(mX: cute.Tensor, mY: cute.Tensor):
    _conditional(mX, mY).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_copy_if_converts() -> None:
    x, y = np.array([1, 5, 2, 3], np.float32), np.full(4, -1, np.float16)
    conditional(from_dlpack(x), from_dlpack(y))
    np.testing.assert_array_equal(y, np.array([-1, 5, -1, 3], np.float16))


@pytest.mark.parametrize("source", ["registers", "memory"])
@pytest.mark.parametrize("target", ["registers", "memory"])
def test_a_conditional_copy_touches_no_memory_where_the_predicate_is_false(source: str, target: str) -> None:
    """The last two elements lie behind the end of the arrays."""

    def place(where: str, pointer: Any) -> Any:
        if where == "memory":
            return cute.make_tensor(pointer, cute.make_layout(6))
        made = cute.make_rmem_tensor(6, cutlass.Float32)
        for i in range(6):
            made[i] = pointer[i] if i < 4 else 7.0
        return made

    def body(t: Any, x: Any, y: Any) -> None:
        inside = cute.make_rmem_tensor(6, cutlass.Boolean)
        for i in range(6):
            inside[i] = cutlass.Boolean(i in (0, 2, 3))
        taken = place(target, y.iterator)
        cute.basic_copy_if(inside, place(source, x.iterator), taken)
        if target == "registers":
            for i in range(4):
                y[i] = taken[i]

    x, y = np.arange(4, dtype=np.float32), np.full(4, -1, np.float32)
    run(body, x, y, threads=1)
    assert y.tolist() == [0, -1, 2, 3]


@pytest.mark.parametrize("kind", ["registers", "one register", "memory", "run-time strides"])
def test_predicates_in_memory_and_registers(kind: str) -> None:
    def body(t: Any, x: Any, y: Any, flags: Any) -> None:
        if kind == "memory":
            pred = cute.make_tensor(flags.iterator, cute.make_layout((1, 4)))
        elif kind == "run-time strides":
            pred = cute.make_tensor(flags.iterator, cute.make_layout((1, 4), stride=(0, x.stride[0])))
        else:
            pred = cute.make_rmem_tensor(cute.make_layout((1, 4), stride=(0, kind == "registers")), cutlass.Boolean)
            for i in range(4 if kind == "registers" else 1):
                pred[i] = flags[i]
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=32)
        cute.copy(atom, *(cute.make_tensor(z.iterator, cute.make_layout((1, 4))) for z in (x, y)), pred=pred)

    x, y = np.arange(4, dtype=np.float32), np.full(4, -1, np.float32)
    run(body, x, y, np.array([True, False, True, False]), threads=1, dynamic=kind == "run-time strides")
    assert y.tolist() == ([0, 1, 2, 3] if kind == "one register" else [0, -1, 2, -1])


@cute.kernel
def _flags(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Boolean, num_bits_per_copy=32)
    thread = cute.make_tiled_copy_tv(atom, cute.make_layout(4), cute.make_layout(4)).get_slice(tidx)
    source, target = thread.partition_S(mX), thread.partition_D(mY)
    registers = cute.make_fragment_like(source)
    cute.copy(atom, source, registers)
    cute.copy(atom, registers, target)


@cute.jit
def flags(mX: cute.Tensor, mY: cute.Tensor):
    _flags(mX, mY).launch(grid=(1, 1, 1), block=(4, 1, 1))


def test_booleans_are_bytes() -> None:
    x, y = RNG.integers(0, 2, 16).astype(bool), np.zeros(16, bool)
    flags(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    np.testing.assert_array_equal(x, y)


# -- errors while staging ----------------------------------------------------------------------------------------------


def stage(body: Any, *arrays: Any) -> None:
    @cute.kernel
    def kernel(tensors: Any):
        body(*tensors)

    @cute.jit
    def host(tensors: Any):
        kernel(tensors).launch(grid=(1, 1, 1), block=(32, 1, 1))

    host([from_dlpack(x, assumed_align=16) for x in arrays])


def universal(bits: int, dtype: Any = cutlass.Float16) -> Any:
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=bits)


def test_contiguity_is_checked() -> None:
    def body(x: Any) -> None:
        column = x[0, None]
        cute.copy(universal(128), column, cute.make_fragment_like(column))

    with pytest.raises(ConstraintError, match="thread T0's values V0 and V1 are 8 elements apart"):
        stage(body, np.asfortranarray(np.zeros((8, 8), np.float16)))


def test_alignment_is_checked() -> None:
    def body(x: Any) -> None:
        part = cute.make_tensor(x.iterator + 1, cute.make_layout(8))
        cute.copy(universal(128), part, cute.make_fragment_like(part))

    with pytest.raises(ConstraintError, match="16-byte aligned, .* only known to be a multiple of 2 bytes"):
        stage(body, np.zeros(64, np.float16))


def test_element_types_are_checked() -> None:
    def body(x: Any) -> None:
        cute.copy(universal(16), x, cute.make_rmem_tensor(8, cutlass.BFloat16))

    with pytest.raises(ConstraintError, match="copies f16 to bf16 without converting"):
        stage(body, np.zeros(8, np.float16))


def test_number_of_predicates_is_checked() -> None:
    def body(x: Any) -> None:
        pred = cute.make_rmem_tensor(8, cutlass.Boolean)
        pred.fill(True)
        cute.copy(universal(64), x, cute.make_fragment_like(x), pred=pred)

    with pytest.raises(ConstraintError, match="2 copies take 2 predicates, but .* has 8: it has one for each element"):
        stage(body, np.zeros(8, np.float16))


def test_directions_are_checked() -> None:
    def body(x: Any) -> None:
        atom = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(num_matrices=1), cutlass.Float16)
        registers = cute.make_rmem_tensor(2, cutlass.Float16)
        registers.fill(0)
        cute.copy(atom, registers, x)

    with pytest.raises(ConstraintError):
        stage(body, np.zeros(8, np.float16))


def test_gemm_checks_its_operands() -> None:
    def body(x: Any) -> None:
        mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)))
        rA = cute.make_rmem_tensor((8, 1, 1), cutlass.BFloat16)
        rB = cute.make_rmem_tensor((4, 1, 1), cutlass.Float16)
        rC = cute.make_rmem_tensor((4, 1, 1), cutlass.Float32)
        cute.gemm(mma, rC, rA, rB, rC)

    with pytest.raises(ConstraintError, match="A must hold f16, but .* holds bf16"):
        stage(body, np.zeros(8, np.float16))
