"""``tcgen05.mma`` in the simulator, exact on integers, and its CUDA text."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tests.blackwell.test_tensor_memory import allocated
from tests.check.pairs import launch
from tilewright import cute
from tilewright.cute.nvgpu import tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

K, MN = tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.MN
ONE, SMEM = tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM
TYPES = {
    "f16": (cutlass.Float16, cutlass.Float32, np.float16, np.float32),
    "bf16": (cutlass.BFloat16, cutlass.Float32, ml_dtypes.bfloat16, np.float32),
    "tf32": (cutlass.Float32, cutlass.Float32, np.float32, np.float32),
    "e4m3": (cutlass.Float8E4M3FN, cutlass.Float32, ml_dtypes.float8_e4m3fn, np.float32),
    "i8": (cutlass.Int8, cutlass.Int32, np.int8, np.int32),
    "small": (cutlass.Uint8, cutlass.Float32, np.uint8, np.float32),  # E3M2 and E2M1, 16 numbers in 16 bytes
}


def op_of(kind: str, m: int, n: int, majors: Any = (K, K), source: Any = SMEM) -> Any:
    ab, acc, *_ = TYPES[kind]
    rest = ((m, n), ONE, source, *majors)
    match kind:
        case "tf32":
            return tcgen05.MmaTF32Op(*rest)
        case "i8":
            return tcgen05.MmaI8Op(ab, *rest)
        case "small":
            return tcgen05.MmaF8F6F4Op(cutlass.Float6E3M2FN, cutlass.Float4E2M1FN, acc, *rest)
        case "e4m3":
            return tcgen05.MmaFP8Op(ab, acc, *rest)
    return tcgen05.MmaF16BF16Op(ab, acc, *rest)


def in_shared_memory(mma: Any, which: str, dtype: Any, tile: tuple[int, int], atom: Any) -> Any:
    """A tensor ((MMA), MMA_MN, MMA_K) in shared memory."""
    shape = mma.partition_shape(which, tile)
    layout = tcgen05.tile_to_mma_shape(tcgen05.make_smem_layout_atom(atom, dtype), shape)
    size = cute.cosize(layout.outer) if hasattr(layout, "outer") else cute.cosize(layout)
    return cutlass.utils.SmemAllocator().allocate_tensor(dtype, layout.outer, 1024, layout.inner) if size else None


def multiply(kind: str, m: int, n: int, majors: Any, atoms: Any, tiles: tuple[int, int, int] = (1, 1, 2)) -> Any:
    """A kernel of one block: y (M, N) = x (M, K) * w (N, K) * 2, in two calls, the second of which accumulates."""
    ab, acc, *_ = TYPES[kind]
    op = op_of(kind, m, n, majors)
    k = op.instruction().shape_mnk[2]
    rows, columns, depth = tiles[0] * m, tiles[1] * n, tiles[2] * k
    taken = max(32, 1 << (columns * tiles[0] - 1).bit_length())

    @cute.kernel
    def kernel(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor):
        base, warp = allocated(taken, acc)
        t, _, _ = cute.arch.thread_idx()
        done = cute.arch.alloc_smem(cutlass.Int64, 1)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        mma = cute.make_tiled_mma(op)
        block = mma.get_slice(0)
        a = in_shared_memory(mma, "A", ab, (rows, depth), atoms[0])
        b = in_shared_memory(mma, "B", ab, (columns, depth), atoms[1])
        own_x, own_w, own_y = block.partition_A(x), block.partition_B(w), block.partition_C(y)
        for i in range(t, cute.size(a), 128):
            a[i] = own_x[i]
        for i in range(t, cute.size(b), 128):
            b[i] = own_w[i]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        part_a, part_b = mma.make_fragment_A(a), mma.make_fragment_B(b)
        empty = mma.make_fragment_C(own_y.shape)
        sums = cute.make_tensor(base, empty.layout)
        if warp == 0:
            mma.set(tcgen05.Field.ACCUMULATE, False)
            cute.gemm(mma, sums, part_a, part_b, sums)
            mma.set(tcgen05.Field.ACCUMULATE, True)
            cute.gemm(mma, sums, part_a, part_b, sums)
            with cute.arch.elect_one():
                tcgen05.commit(done)
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        load_op = tcgen05.Ld32x32bOp(tcgen05.Repetition.x8)
        if cutlass.const_expr(m == 64):
            load_op = tcgen05.Ld16x256bOp(tcgen05.Repetition.x1)
        for i in cutlass.range_constexpr(tiles[0]):
            for j in cutlass.range_constexpr(tiles[1]):
                one = sums[(None, None), i, j]
                load = tcgen05.make_tmem_copy(cute.make_copy_atom(load_op, acc), one)
                mine = load.get_slice(t)
                out = mine.partition_D(own_y[(None, None), i, j])
                registers = cute.make_rmem_tensor(out.shape, acc)
                cute.copy(load, mine.partition_S(one), registers)
                cute.arch.fence_view_async_tmem_load()
                cute.autovec_copy(registers, out)
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(base, taken)

    return kernel, (rows, columns, depth)


def padded(values: Any, width: int, major: Any) -> Any:
    """Numbers as an operand's bytes in shared memory: along the contiguous mode 16 of them begin 16 bytes."""
    kind = {4: ml_dtypes.float4_e2m1fn, 6: ml_dtypes.float6_e3m2fn}[width]
    rows = np.ascontiguousarray(values if major is K else values.T)
    bits = np.unpackbits(rows.astype(kind).view(np.uint8)[..., None], axis=-1, bitorder="little")[..., :width]
    packed = np.packbits(bits.reshape(len(rows), -1, 16 * width), axis=-1, bitorder="little")
    chunks = np.full((*packed.shape[:2], 16), 0xFF, np.uint8)
    chunks[..., : 2 * width] = packed
    found = chunks.reshape(rows.shape)
    return found if major is K else np.ascontiguousarray(found.T)


def run(kind: str, m: int, n: int, majors: Any, atoms: Any, tiles: Any = (1, 1, 2)) -> None:
    kernel, (rows, columns, depth) = multiply(kind, m, n, majors, atoms, tiles)
    _, _, ab, acc = TYPES[kind]
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, (extent, depth)) for extent in (rows, columns))
    y = np.zeros((rows, columns), acc)
    given = [x.astype(ab), w.astype(ab)]
    if kind == "small":
        given = [padded(x, 6, majors[0]), padded(w, 4, majors[1])]
    launch(kernel, *map(from_dlpack, given), from_dlpack(y), block=128)
    expected = 2 * (x @ w.T)
    np.testing.assert_array_equal(y.astype(np.int64), expected)


KINDS = tcgen05.SmemLayoutAtomKind


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32", "e4m3", "i8"])
@pytest.mark.parametrize("m, n", [(128, 32), (64, 64)])
def test_products_of_integers(kind: str, m: int, n: int) -> None:
    run(kind, m, n, (K, K), (KINDS.K_SW64, KINDS.K_SW32), (1, 1, 2))


@pytest.mark.parametrize(
    "atoms",
    [
        (KINDS.K_SW128, KINDS.MN_SW128),
        (KINDS.MN_SW64, KINDS.K_INTER),
        (KINDS.MN_INTER, KINDS.MN_SW32),
    ],
)
def test_majors_and_swizzles(atoms: Any) -> None:
    majors = tuple(K if atom.name.startswith("K") else MN for atom in atoms)
    run("f16", 128, 64, majors, atoms, (1, 1, 4))


def test_mn_major_operands_of_32_bits() -> None:
    run("tf32", 128, 32, (MN, MN), (KINDS.MN_SW128_32B, KINDS.MN_SW128_32B), (1, 1, 2))


@pytest.mark.parametrize("majors", [(K, K), (MN, MN)])
def test_numbers_of_4_and_6_bits(majors: Any) -> None:
    atoms = tuple(KINDS.K_SW64 if major is K else KINDS.MN_SW64 for major in majors)
    run("small", 128, 64, majors, atoms, (1, 1, 2))


def test_several_tiles() -> None:
    run("f16", 128, 32, (K, K), (KINDS.K_SW32, KINDS.K_SW32), (2, 3, 3))


def artifact(arch: str, kind: str) -> Any:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    kernel, (rows, columns, depth) = multiply(kind, 128, 32, (K, K), (KINDS.K_SW32, KINDS.K_SW32))
    _, _, ab, acc = TYPES[kind]
    x, w, y = (
        from_dlpack(np.zeros(s, t)) for s, t in (((rows, depth), ab), ((columns, depth), ab), ((rows, columns), acc))
    )

    @cute.jit
    def host(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor):
        kernel(x, w, y).launch(grid=(1, 1, 1), block=(128, 1, 1))

    return build(cute.compile(host, x, w, y).kernels[0], arch)


@pytest.mark.parametrize(
    "arch, kind", [("sm_100a", kind) for kind in ("f16", "tf32", "e4m3", "i8")] + [("sm_103a", "f16")]
)
def test_the_text_is_assembled(arch: str, kind: str) -> None:
    made = artifact(arch, kind)
    assert made.spills == 0 and not made.warnings
    named = {"e4m3": "f8f6f4"}.get(kind, kind)
    assert f"tcgen05.mma.cta_group::1.kind::{named} [" in made.ptx and "tcgen05.commit.cta_group::1" in made.ptx


def test_shapes_that_the_instruction_does_not_have() -> None:
    with pytest.raises(ConstraintError, match="M 64 or 128, N 8 to 256 in steps of 8, K 16"):
        op_of("f16", 96, 64)
    with pytest.raises(ConstraintError, match="M 128 or 256, N 16 to 256 in steps of 16, K 16"):
        tcgen05.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (64, 64, 16), tcgen05.CtaGroup.TWO, SMEM, K, K)
