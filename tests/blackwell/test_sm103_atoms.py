"""The MMA atoms of sm_103a with K 96: descriptors of two buffers, TMA, ``tcgen05.cp`` of 3 or 6 factors an MMA."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cuda
from tests.cuda.build import needs_nvrtc
from tilewright import cute, pipeline, sim, utils
from tilewright.base_dsl.arch import Arch
from tilewright.cute.nvgpu import cpasync, tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError
from tilewright.utils import blockscaled_layout

SMEM, ONE, TWO = tcgen05.OperandSource.SMEM, tcgen05.CtaGroup.ONE, tcgen05.CtaGroup.TWO
E8M0, E4M3, E2M1 = cutlass.Float8E8M0FNU, cutlass.Float8E4M3FN, cutlass.Float4E2M1FN
SPAN, STAGES, MMAS = 128, 3, 8
"""Bytes of a row of a buffer (256 numbers, the span of the swizzle), buffers, and the MMAs that read them all."""
K = 96 * MMAS


class Gemm:
    """D (M, N) = (A * SFA) * (B * SFB), K 768: eight MMAs on three buffers, two of which end within an MMA."""

    def __init__(self, sf: Any, n: int, ctas: int = 1) -> None:
        self.sf, self.n, self.ctas = sf, n, ctas
        self.vec = 32 if sf is None else 16
        self.type, self.mistake = sf or E8M0, ""

    def op(self, group: Any) -> Any:
        shape = (128 * self.ctas, self.n, 96)
        if self.sf is None:
            return tcgen05.SM103MmaMXF4Op(shape, group, SMEM)
        return tcgen05.SM103MmaMXF4NVF4Op(self.sf, shape, group, SMEM)

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, sfa_bytes: cute.Tensor, sfb_bytes: cute.Tensor, d: cute.Tensor):
        mma = cute.make_tiled_mma(cute.make_mma_atom(self.op(TWO if self.ctas == 2 else ONE)))
        assert mma.partition_shape_A((128 * self.ctas, K)) == ((128, 96), 1, MMAS)
        sfa, sfb = (
            cute.make_tensor(
                cute.recast_ptr(x.iterator, dtype=self.type),
                blockscaled_layout.tile_atom_to_shape_SF((rows, K, 1), self.vec),
            )
            for x, rows in ((sfa_bytes, 128 * self.ctas), (sfb_bytes, self.n))
        )
        operation = cpasync.CopyBulkTensorTileG2SOp(ONE)
        atoms, tensors = [], []
        for x, rows in ((a, 128), (b, self.n // self.ctas)):
            smem = cute.tile_to_shape(
                tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, cutlass.Uint8), (rows, SPAN), (0, 1)
            )
            atom, tensor = cpasync.make_tiled_tma_atom(operation, x, smem, (rows, SPAN))
            atoms.append(atom)
            tensors.append(tensor)
        tiler = (128 * self.ctas, self.n, K)
        self.layout_sfa = blockscaled_layout.make_smem_layout_sfa(mma, tiler, self.vec, 1)
        self.layout_sfb = blockscaled_layout.make_smem_layout_sfb(mma, tiler, self.vec, 1)
        self.kernel(mma, atoms, tensors, sfa, sfb, d).launch(
            grid=(self.ctas, 1, 1), block=(128, 1, 1), cluster=(self.ctas, 1, 1)
        )

    @cute.kernel
    def kernel(self, mma: cute.TiledMma, atoms: Any, tensors: Any, sfa: cute.Tensor, sfb: cute.Tensor, d: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        rows_b = self.n // self.ctas
        swizzled = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, cutlass.Uint8)
        # A buffer has 8 pieces of 16 bytes a row; an MMA reads three from its own on.
        of_a, of_b = (
            tcgen05.tile_to_mma_shape(swizzled, ((rows, 16), 1, 8, STAGES), order=(0, 1, 2)) for rows in (128, rows_b)
        )
        s_a = smem.allocate_tensor(cutlass.Uint8, of_a.outer, 1024, of_a.inner)
        s_b = smem.allocate_tensor(cutlass.Uint8, of_b.outer, 1024, of_b.inner)
        s_sfa = smem.allocate_tensor(self.type, self.layout_sfa, 128)
        s_sfb = smem.allocate_tensor(self.type, self.layout_sfb, 128)
        tmem = utils.TmemAllocator(
            smem.allocate_array(cutlass.Int32, 1),
            pipeline.NamedBarrier(1, 128),
            is_two_cta=self.ctas == 2,
            two_cta_tmem_dealloc_mbar_ptr=smem.allocate_array(cutlass.Int64, 1),
        )
        full, done = smem.allocate_array(cutlass.Int64, 1), smem.allocate_array(cutlass.Int64, 1)
        if thread == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        tmem.allocate(512)
        sums = mma.make_fragment_C(mma.partition_shape_C((128 * self.ctas, self.n)))
        tmem.wait_for_alloc()
        base = tmem.retrieve_ptr(cutlass.Float32)
        sums = cute.make_tensor(base, sums.layout)

        # Blocks of 512 factors: in global memory along K first, in shared memory along the rows. Both blocks of a pair
        # have all factors of B.
        for source, to, begin in ((sfa, s_sfa, rank), (sfb, s_sfb, 0)):
            count = cute.size(cute.filter_zeros(to))
            along_k = K // self.vec // 4
            rows = count // (512 * along_k)
            flat, flat_s = (cute.make_tensor(x.iterator, cute.make_layout(2 * count)) for x in (source, to))
            for i in range(thread, count, 128):
                block = i // 512
                flat_s[i] = flat[((begin + block % rows) * along_k + block // rows) * 512 + i % 512]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        place = base + tcgen05.find_tmem_tensor_col_offset(sums)
        factors = []
        for s, made, layout in (
            (s_sfa, blockscaled_layout.make_tmem_layout_sfa, self.layout_sfa),
            (s_sfb, blockscaled_layout.make_tmem_layout_sfb, self.layout_sfb),
        ):
            stage = cute.slice_(layout, (None, None, None, 0))
            t = cute.make_tensor(
                cute.recast_ptr(place, dtype=self.type), made(mma, (128 * self.ctas, self.n, K), self.vec, stage)
            )
            place = place + tcgen05.find_tmem_tensor_col_offset(t)
            factors.append((s, t))
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, STAGES * SPAN * (128 + rows_b))
            for x, s, atom in ((tensors[0], s_a, atoms[0]), (tensors[1], s_b, atoms[1])):
                rows = 128 if cutlass.const_expr(s is s_a) else rows_b
                stages = cute.make_tensor(
                    s.iterator, cute.tile_to_shape(swizzled, (rows, SPAN, STAGES), (0, 1, 2)).outer
                )
                tiles = cute.local_tile(x, (rows, SPAN), (rank, None))
                to, source = cpasync.tma_partition(
                    atom, 0, cute.make_layout(1), cute.group_modes(stages, 0, 2), cute.group_modes(tiles, 0, 2)
                )
                for i in cutlass.range_constexpr(STAGES):
                    cute.copy(atom, source[None, i], to[None, i], tma_bar_ptr=full)
            cute.arch.mbarrier_wait(full, 0)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if warp == 0 and rank == 0:
            copied = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(TWO if self.ctas == 2 else ONE), self.type)
            for s, t in factors:
                compact = cute.filter_zeros(t)
                copy = tcgen05.make_s2t_copy(copied, compact)
                mine = copy.get_slice(0)
                source = tcgen05.get_s2t_smem_desc_tensor(copy, mine.partition_S(cute.filter_zeros(s)))
                cute.copy(copy, source[None, None, None, None, 0], mine.partition_D(compact))
            per = 96 // self.vec
            for i in cutlass.range_constexpr(MMAS):
                first, last = 3 * i, 3 * i + 2  # pieces of 16 bytes
                mma.set(tcgen05.Field.ACCUMULATE, i > 0)
                for field, (_, t) in zip((tcgen05.Field.SFA, tcgen05.Field.SFB), factors, strict=True):
                    mma.set(field, t[None, None, i * per].iterator)
                operands = []
                for s in (s_a, s_b):
                    now, after = s[None, 0, first % 8, first // 8], s[None, 0, 0, last // 8]
                    following = None if self.mistake == "none" else after.iterator
                    desc = tcgen05.make_umma_smem_desc(now.iterator, now.layout, "k", next_src=following)
                    operands.append(cute.make_tensor(desc, cute.make_layout(1, stride=0)))
                if cutlass.const_expr(self.mistake == "swapped"):
                    operands.reverse()
                if cutlass.const_expr(self.mistake == "fragment"):
                    mma.make_fragment_A(s_a)
                cute.mma_atom_call(mma, sums[None, 0, 0], *operands, sums[None, 0, 0])
            with cute.arch.elect_one():
                pair = self.ctas == 2
                tcgen05.commit(done, 0b11 if pair else None, TWO if pair else ONE)
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        load = tcgen05.make_tmem_copy(
            cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x16), cutlass.Float32), sums[(None, None), 0, 0]
        )
        mine = load.get_slice(thread)
        of_d = mma.get_slice(rank).partition_C(d)
        out = mine.partition_D(of_d[(None, None), 0, 0])
        registers = cute.make_rmem_tensor(out.shape, cutlass.Float32)
        cute.copy(load, mine.partition_S(sums[(None, None), 0, 0]), registers)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(registers, out)
        cute.arch.sync_threads()
        tmem.relinquish_alloc_permit()
        tmem.free(base)


def operands(gemm: Gemm) -> tuple[list[Any], Any, Any]:
    """Arguments, D, and what it must be."""
    rng = np.random.default_rng(gemm.n + gemm.vec)
    arrays, wide = [], []
    scales = []
    for rows in (128 * gemm.ctas, gemm.n):
        x = rng.choice([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0], (rows, K))
        codes = x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
        arrays.append(codes[:, ::2] | codes[:, 1::2] << 4)
        padded = -(-rows // 128) * 128
        factor = 2.0 ** rng.integers(-1, 2, (padded, K // gemm.vec))
        kind = ml_dtypes.float8_e8m0fnu if gemm.type is E8M0 else ml_dtypes.float8_e4m3fn
        code = factor.astype(kind).view(np.uint8)
        # (row blocks, blocks of 4 factors, row % 32, row / 32, factor)
        blocks = code.reshape(padded // 128, 4, 32, -1, 4).transpose(0, 3, 2, 1, 4)
        scales.append(np.ascontiguousarray(blocks).reshape(-1))
        wide.append(x * np.repeat(factor[:rows], gemm.vec, axis=1))
    d = np.zeros((128 * gemm.ctas, gemm.n), np.float32)
    given = [from_dlpack(z, assumed_align=16) for z in (*arrays, *scales, d)]
    return given, d, wide[0] @ wide[1].T


@pytest.mark.parametrize(
    ("sf", "n", "ctas"), [(None, 64, 1), (E4M3, 144, 1), (E8M0, 32, 1), (E4M3, 64, 2), (None, 256, 2)]
)
def test_products(sf: Any, n: int, ctas: int) -> None:
    gemm = Gemm(sf, n, ctas)
    given, d, expected = operands(gemm)
    with sim.options(arch="sm_103a"):
        gemm(*given)
    np.testing.assert_array_equal(d, expected)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("none", "reads 32 elements of Uint8 along K, .* has 16; for K 96, .* give next_src"),
        ("swapped", "a block has 128 rows of it, but the descriptor names a K-major tile of 64"),
        ("fragment", "may go on in another buffer, which a fragment cannot say"),
    ],
)
def test_mistakes(mistake: str, message: str) -> None:
    gemm = Gemm(E4M3, 64)
    gemm.mistake = mistake
    given, _, _ = operands(gemm)
    with sim.options(arch="sm_103a"), pytest.raises(ConstraintError, match=message):
        gemm(*given)


def test_the_operations() -> None:
    op = tcgen05.SM103MmaMXF4Op((128, 48), ONE, SMEM)
    assert op.shape_mnk == (128, 48, 96) and op.sf_vec_size == 32 and op.admissible_archs == [Arch.sm_103a]
    assert (
        isinstance(op, tcgen05.MmaOp) and tcgen05.SM103MmaMXF4NVF4Op(E4M3, (256, 48, 96), TWO, SMEM).sf_vec_size == 16
    )
    pair = cute.make_mma_atom(tcgen05.SM103MmaMXF4Op((256, 48, 96), TWO, SMEM))
    # CuTe C++: MMA_Traits<SM103_MXF4_ULTRA_SS_VS> and its form of a pair
    layouts = [str(x) for x in (pair.tv_layout_A, pair.tv_layout_B, pair.tv_layout_C)]
    assert layouts == ["(2,(128,96)):(128,(1,256))", "(2,(24,96)):(24,(1,48))", "(2,(128,48)):(128,(1,256))"]
    one = cute.make_mma_atom(op)
    assert [str(x) for x in (one.tv_layout_A, one.tv_layout_B)] == [
        "(1,(128,96)):(0,(1,128))",
        "(1,(48,96)):(0,(1,48))",
    ]
    for made, why in (
        (lambda: tcgen05.SM103MmaMXF4Op((128, 48, 64), ONE, SMEM), "K 96 is of sm_103a: .* have it, and K 96 alone"),
        (lambda: tcgen05.MmaMXF4Op((128, 48, 96), ONE, SMEM), "there is no shape 128x48x96. K 96 is of sm_103a"),
        (lambda: tcgen05.SM103MmaMXF4Op((128, 40, 96), ONE, SMEM), "N 16 to 256 in steps of 16, K 96"),
        (
            lambda: tcgen05.SM103MmaMXF4Op((128, 48, 96), ONE, tcgen05.OperandSource.TMEM),
            "A dense and in shared memory",
        ),
        (lambda: tcgen05.SM103MmaMXF4NVF4Op(cutlass.Float16, (128, 48, 96), ONE, SMEM), "no factors of type"),
    ):
        with pytest.raises(ConstraintError, match=why):
            made()


def test_text() -> None:
    needs_nvrtc()
    gemm = Gemm(E4M3, 64)
    given, _, _ = operands(gemm)
    kernel = cute.compile(gemm, *given).kernels[0]
    compiled = tilewright.cuda.compile(kernel, "sm_103a")
    assert compiled.ptx.count("kind::mxf4nvf4.block_scale.block16 [") == MMAS
    with pytest.raises(ConstraintError, match="needs sm_103a \\(no other GPU has it\\)"):
        tilewright.cuda.emit(kernel, "sm_100a")


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        (
            ((((8, 4, 4), (16, 4)), 1, 3), (((16, 128, 4), (0, 1)), 0, 512)),
            "((((32,4),4),(16,4)),1,(1,3)):((((262144,4),8388608),(0,1)),0,(0,16))",
        ),
        (
            (((((32, 4), 1), (16, 1)), 1, 12), None),
            "((((32,4),4),(16,1)),1,(4,3)):((((262144,4),8388608),(0,1)),0,(1,16))",
        ),
    ],
    ids=["four_factors_of_a_row", "one_factor"],
)
def test_tensor_memory_keeps_the_factors_of_the_programs_layout(stage: Any, expected: str) -> None:
    """A program lays out the factors of its stage by itself: FlashInfer's and NVIDIA's kernels take four of a row."""
    shape, stride = stage
    op = tcgen05.SM103MmaMXF4NVF4Op(E4M3, (128, 128, 96), ONE, SMEM)
    layout = cute.make_layout(shape) if stride is None else cute.make_layout(shape, stride=stride)
    sfa = blockscaled_layout.make_tmem_layout_sfa(cute.make_tiled_mma(op), (128, 128, 768), 16, layout)
    assert str(sfa) == expected
