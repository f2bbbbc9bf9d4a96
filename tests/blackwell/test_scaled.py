"""Block-scaled products: TMA brings operands and factors, ``tcgen05.cp`` the factors to tensor memory."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, pipeline, sim, utils
from tilewright.base_dsl.arch import Arch
from tilewright.cute.nvgpu import cpasync, tcgen05
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError
from tilewright.utils import blackwell_helpers, blockscaled_layout

K = tcgen05.OperandMajorMode.K
E8M0, E4M3, E2M1 = cutlass.Float8E8M0FNU, cutlass.Float8E4M3FN, cutlass.Float4E2M1FN
E5M2, E3M2, E2M3 = cutlass.Float8E5M2, cutlass.Float6E3M2FN, cutlass.Float6E2M3FN
TYPES = {
    E8M0: ml_dtypes.float8_e8m0fnu,
    E4M3: ml_dtypes.float8_e4m3fn,
    E2M1: ml_dtypes.float4_e2m1fn,
    E5M2: ml_dtypes.float8_e5m2,
    E3M2: ml_dtypes.float6_e3m2fn,
    E2M3: ml_dtypes.float6_e2m3fn,
}


class Gemm:
    """D (M, N) = (A * SFA) * (B * SFB) of one MMA's M and N, by one block or a pair."""

    def __init__(self, ab: Any, sf: Any, vec: int, tile: tuple[int, int, int], ctas: int = 1, copied: int = 2) -> None:
        """``ab``: the type of A and B, or one of each. ``copied``: of how many operands the factors are copied to
        tensor memory; fewer than 2 is a mistake."""
        self.ab, self.mixed = ab if isinstance(ab, tuple) else (ab, ab), isinstance(ab, tuple)
        self.sf, self.vec, self.tile, self.ctas, self.copied = sf, vec, tile, ctas, copied
        self.held: Any = None
        self.pairs = False

    @cute.jit
    def __call__(
        self, a_bytes: cute.Tensor, b_bytes: cute.Tensor, sfa_bytes: cute.Tensor, sfb_bytes: cute.Tensor, d: cute.Tensor
    ):
        a, b = (cute.recast_tensor(x, kind) for x, kind in zip((a_bytes, b_bytes), self.ab, strict=True))
        m, n, k = cute.size(a, mode=[0]), cute.size(b, mode=[0]), cute.size(a, mode=[1])
        sfa, sfb = (
            cute.make_tensor(
                cute.recast_ptr(x.iterator, dtype=self.sf),
                blockscaled_layout.tile_atom_to_shape_SF((rows, k, 1), self.vec),
            )
            for x, rows in ((sfa_bytes, m), (sfb_bytes, n))
        )
        group = tcgen05.CtaGroup.TWO if self.ctas == 2 else tcgen05.CtaGroup.ONE
        mma = self.made(group, self.tile[:2])
        # Both blocks of a pair have the factors of all columns: they are loaded as for an MMA of one block.
        padded = -(-self.tile[1] // 128) * 128
        one_mma = self.made(tcgen05.CtaGroup.ONE, (128, padded))
        layout_a = blackwell_helpers.make_smem_layout_a(mma, self.tile, self.ab[0], 1)
        layout_b = blackwell_helpers.make_smem_layout_b(mma, self.tile, self.ab[1], 1)
        self.layout_sfa = blockscaled_layout.make_smem_layout_sfa(mma, self.tile, self.vec, 1)
        self.layout_sfb = blockscaled_layout.make_smem_layout_sfb(mma, self.tile, self.vec, 1)
        vmnk = cute.tiled_divide(cute.make_layout((self.ctas, 1, 1)), (mma.thr_id.shape,))
        op, op_one = cpasync.CopyBulkTensorTileG2SOp(group), cpasync.CopyBulkTensorTileG2SOp(group)
        stage = (None, None, None, 0)
        atoms = cute.nvgpu.make_tiled_tma_atom_A, cute.nvgpu.make_tiled_tma_atom_B
        loads = [
            make(op, x, cute.slice_(layout, stage), tile, tiled, vmnk.shape, internal_type=internal)
            for make, op, x, layout, tile, tiled, internal in (
                (atoms[0], op, a, layout_a, self.tile, mma, None),
                (atoms[1], op, b, layout_b, self.tile, mma, None),
                (atoms[0], op, sfa, self.layout_sfa, self.tile, mma, cutlass.Int16),
                (atoms[1], op_one, sfb, self.layout_sfb, (128, padded, self.tile[2]), one_mma, cutlass.Int16),
            )
        ]
        self.kernel(mma, one_mma, [x[0] for x in loads], [x[1] for x in loads], d, layout_a, layout_b).launch(
            grid=(self.ctas, 1, 1), block=(128, 1, 1), cluster=(self.ctas, 1, 1)
        )

    def made(self, group: Any, tile: Any) -> Any:
        if self.mixed:
            op = tcgen05.MmaMXF8F6F4Op(*self.ab, tile, group, tcgen05.OperandSource.SMEM, K, K)
            return cute.make_tiled_mma(op)
        make = blackwell_helpers.make_blockscaled_trivial_tiled_mma
        return make(self.ab[0], K, K, self.sf, self.vec, group, tile)

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        one_mma: cute.TiledMma,
        atoms: list[Any],
        tensors: list[Any],
        d: cute.Tensor,
        layout_a: cute.ComposedLayout,
        layout_b: cute.ComposedLayout,
    ):
        m, n, k = self.tile
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        # Of numbers of 4 and 6 bits 16 take 16 bytes, unless both operands are of 4 bits.
        held = self.held or [cutlass.Uint8 if self.mixed and kind.width < 8 else kind for kind in self.ab]
        s_a = smem.allocate_tensor(held[0], layout_a.outer, 1024, layout_a.inner)
        s_b = smem.allocate_tensor(held[1], layout_b.outer, 1024, layout_b.inner)
        s_sfa = smem.allocate_tensor(self.sf, self.layout_sfa, 128)
        s_sfb = smem.allocate_tensor(self.sf, self.layout_sfb, 128)
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

        part, one = mma.get_slice(rank), one_mma.get_slice(0)
        padded = -(-n // 128) * 128
        g_a, g_b = (
            part.partition_A(cute.local_tile(tensors[0], (m, k), (0, 0))),
            part.partition_B(cute.local_tile(tensors[1], (n, k), (0, 0))),
        )
        g_sfa = part.partition_A(cute.local_tile(tensors[2], (m, k), (0, 0, 0)))
        g_sfb = one.partition_B(cute.local_tile(tensors[3], (padded, k), (0, 0, 0)))
        g_d = part.partition_C(cute.local_tile(d, (m, n), (0, 0)))
        sums = mma.make_fragment_C(mma.partition_shape_C((m, n)))
        tmem.wait_for_alloc()
        base = tmem.retrieve_ptr(cutlass.Float32)
        sums = cute.make_tensor(base, sums.layout)
        place = base + tcgen05.find_tmem_tensor_col_offset(sums)
        stage = (None, None, None, 0)
        t_sfa = cute.make_tensor(
            cute.recast_ptr(place, dtype=self.sf),
            blockscaled_layout.make_tmem_layout_sfa(mma, self.tile, self.vec, cute.slice_(self.layout_sfa, stage)),
        )
        place = place + tcgen05.find_tmem_tensor_col_offset(t_sfa)
        t_sfb = cute.make_tensor(
            cute.recast_ptr(place, dtype=self.sf),
            blockscaled_layout.make_tmem_layout_sfb(mma, self.tile, self.vec, cute.slice_(self.layout_sfb, stage)),
        )

        if warp == 0:
            if rank == 0:
                with cute.arch.elect_one():
                    bytes_ = sum(cute.size(s) * kind.width // 8 for s, kind in zip((s_a, s_b), self.ab, strict=True))
                    scales = cute.size_in_bytes(self.sf, cute.filter_zeros(self.layout_sfa)) + cute.size_in_bytes(
                        self.sf, cute.filter_zeros(self.layout_sfb)
                    )
                    cute.arch.mbarrier_arrive_and_expect_tx(full, (bytes_ + scales) * self.ctas)
            for i, (x, s) in enumerate(((g_a, s_a), (g_b, s_b), (g_sfa, s_sfa), (g_sfb, s_sfb))):
                to, source = cpasync.tma_partition(
                    atoms[i], 0, cute.make_layout(1), cute.group_modes(s, 0, 3), cute.group_modes(x, 0, 3)
                )
                if cutlass.const_expr(i > 1):
                    to, source = cute.filter_zeros(to), cute.filter_zeros(source)
                cute.copy(atoms[i], source, to[None, 0], tma_bar_ptr=full)
            if rank == 0:
                cute.arch.mbarrier_wait(full, 0)
                atom = cute.make_copy_atom(
                    tcgen05.Cp4x32x128bOp(tcgen05.CtaGroup.TWO if self.ctas == 2 else tcgen05.CtaGroup.ONE), self.sf
                )
                for s, t in ((s_sfa, t_sfa), (s_sfb, t_sfb))[: self.copied]:
                    compact = cute.filter_zeros(t)
                    copy = tcgen05.make_s2t_copy(atom, compact)
                    mine = copy.get_slice(0)
                    source = tcgen05.get_s2t_smem_desc_tensor(copy, mine.partition_S(cute.filter_zeros(s)))
                    cute.copy(copy, source[None, None, None, None, 0], mine.partition_D(compact))
                part_a, part_b = mma.make_fragment_A(s_a), mma.make_fragment_B(s_b)
                mma.set(tcgen05.Field.ACCUMULATE, False)
                if cutlass.const_expr(self.pairs):
                    cute.gemm(
                        mma, sums, [part_a[None, None, None, 0], t_sfa], [part_b[None, None, None, 0], t_sfb], sums
                    )
                for i in cutlass.range_constexpr(0 if self.pairs else cute.size(part_a, mode=[2])):
                    mma.set(tcgen05.Field.SFA, t_sfa[None, None, i].iterator)
                    mma.set(tcgen05.Field.SFB, t_sfb[None, None, i].iterator)
                    cute.gemm(mma, sums, part_a[None, None, i, 0], part_b[None, None, i, 0], sums)
                    mma.set(tcgen05.Field.ACCUMULATE, True)
                with cute.arch.elect_one():
                    mask = 0b11 if self.ctas == 2 else None
                    tcgen05.commit(done, mask, tcgen05.CtaGroup.TWO if self.ctas == 2 else tcgen05.CtaGroup.ONE)

        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        load = tcgen05.make_tmem_copy(
            cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x16), cutlass.Float32), sums[(None, None), 0, 0]
        )
        mine = load.get_slice(thread)
        out = mine.partition_D(g_d[(None, None), 0, 0])
        registers = cute.make_rmem_tensor(out.shape, cutlass.Float32)
        cute.copy(load, mine.partition_S(sums[(None, None), 0, 0]), registers)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(registers, out)
        cute.arch.sync_threads()
        tmem.free(base)


def packed(values: Any, kind: Any) -> Any:
    """Numbers as the bytes of tensors: two of 4 bits in one, four of 6 bits in three."""
    bits = values.astype(TYPES[kind]).view(np.uint8)
    if kind.width == 6:
        fours = bits.reshape(len(bits), -1, 4).astype(np.uint32)
        words = sum(fours[..., i] << 6 * i for i in range(4))
        return np.stack([words >> 8 * i & 255 for i in range(3)], -1).astype(np.uint8).reshape(len(bits), -1)
    return bits if kind is not E2M1 else bits[:, ::2] | bits[:, 1::2] << 4


def aligned(array: Any) -> Any:
    """The same at a multiple of 32 bytes, which TMA wants of numbers that it expands."""
    memory = np.zeros(array.nbytes + 32, np.uint8)
    start = -memory.ctypes.data % 32
    found = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[:] = array
    return found


def factors(values: Any, kind: Any, vec: int) -> Any:
    """Factors (rows, K / vec) in the order of ``tile_atom_to_shape_SF``; padding is a factor that is not neutral."""
    rows, count = values.shape
    padded = np.full((-(-rows // 128) * 128, -(-count // 4) * 4), 4.0)
    padded[:rows, :count] = values
    blocks = padded.reshape(-1, 4, 32, padded.shape[1] // 4, 4)  # (row block, row / 32, row % 32, K block, factor)
    return blocks.transpose(0, 3, 2, 1, 4).reshape(-1).astype(TYPES[kind]).view(np.uint8)


CASES = [
    (E4M3, E8M0, 32, (128, 64, 128), 1),
    (E2M1, E8M0, 32, (128, 192, 256), 1),
    (E2M1, E4M3, 16, (128, 32, 128), 1),
    ((E2M1, E4M3), E8M0, 32, (128, 64, 128), 1),
    ((E3M2, E2M1), E8M0, 32, (256, 64, 256), 2),
    ((E5M2, E2M3), E8M0, 32, (128, 32, 128), 1),
    (E2M1, E8M0, 16, (128, 128, 64), 1),
    (E4M3, E8M0, 32, (256, 160, 128), 2),
    (E2M1, E4M3, 16, (256, 256, 256), 2),
]


def arrays(gemm: Gemm) -> tuple[list[Any], Any]:
    m, n, k = gemm.tile
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (rows, k)).astype(np.float32) for rows in (m, n))
    sa, sb = (2.0 ** rng.integers(-2, 3, (rows, k // gemm.vec)) for rows in (m, n))
    if gemm.sf is E4M3:
        sa = sa * 1.5
    wide = [x * np.repeat(s, gemm.vec, 1) for x, s in ((a, sa), (b, sb))]
    given = [
        *map(aligned, (packed(a, gemm.ab[0]), packed(b, gemm.ab[1]))),
        factors(sa, gemm.sf, gemm.vec),
        factors(sb, gemm.sf, gemm.vec),
    ]
    return [*given, np.zeros((m, n), np.float32)], (wide[0] @ wide[1].T).astype(np.float32)


@pytest.mark.parametrize("ab, sf, vec, tile, ctas", CASES)
def test_products_of_scaled_integers(ab: Any, sf: Any, vec: int, tile: Any, ctas: int) -> None:
    gemm = Gemm(ab, sf, vec, tile, ctas)
    given, expected = arrays(gemm)
    with sim.options(check="all"):
        gemm(*(from_dlpack(x, assumed_align=16) for x in given))
    np.testing.assert_array_equal(given[-1], expected)


@pytest.mark.parametrize("arch, case", [("sm_100a", 0), ("sm_100a", 2), ("sm_103a", 1), ("sm_100a", 4), ("sm_100a", 3)])
def test_the_text_is_assembled(arch: str, case: int) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    gemm = Gemm(*CASES[case])
    compiled = cute.compile(gemm, *(from_dlpack(x, assumed_align=16) for x in arrays(gemm)[0]))
    made = build(compiled.kernels[0], arch)
    assert made.spills == 0 and not made.warnings
    kind = "mxf8f6f4" if gemm.mixed or gemm.ab[0] is E4M3 else "mxf4"  # mxf4nvf4, too
    assert all(re.search(rf"tcgen05\.{name}", made.ptx) for name in ("cp", rf"mma\.cta_group::.\.kind::{kind}"))


def test_block_scaled_mma_refuses_unknown_types_and_shapes() -> None:
    one, smem = tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM
    make = blackwell_helpers.make_blockscaled_trivial_tiled_mma
    with pytest.raises(ConstraintError, match="K-major Float4E2M1FN also with Float8E8M0FNU or Float8E4M3FN for 16"):
        make(E2M1, K, K, E4M3, 32, one, (128, 128))
    with pytest.raises(ConstraintError, match="M 128, N 8 to 256 in steps of 8, K 64"):
        tcgen05.MmaMXF4Op((64, 64, 64), one, smem)
    mma = make(E2M1, K, K, E4M3, 16, one, (128, 128))
    with pytest.raises(ConstraintError, match="factors for 32 elements each; the MMA has factors for 16"):
        blockscaled_layout.make_smem_layout_sfa(mma, (128, 128, 256), 32, 1)
    with pytest.raises(ConstraintError, match="a tile has whole blocks of 4"):
        blockscaled_layout.make_smem_layout_sfb(mma, (128, 128, 32), 16, 1)


def test_operands_of_4_and_6_bits_need_expanded_shared_memory() -> None:
    gemm = Gemm((E2M1, E4M3), E8M0, 32, (128, 64, 128))
    given = [from_dlpack(x, assumed_align=16) for x in arrays(gemm)[0]]
    gemm.held = gemm.ab
    with pytest.raises(ConstraintError, match="16 numbers .* take 16 bytes of shared memory"):
        gemm(*given)


def test_powers_of_two() -> None:
    """Float8E8M0FNU rounds up and saturates, in vectors of a kernel; a block of zeros has a factor, not NaN."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        y[None, t].store(x[None, t].load().to(E8M0))
        z[None, t].store(y[None, t].load().to(cutlass.Float32))

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        kernel(x, y, z).launch(grid=(1, 1, 1), block=(4, 1, 1))

    values = [1.4, 1.5, 3.0, 2.9, 0.0, -1.0, np.inf, 2.0**127, 1.6 * 2.0**127, 1e-45, 1.5 * 2.0**-127, np.nan]
    x = np.array(values, np.float32).reshape(4, 3).T
    y, z = np.zeros((4, 3), TYPES[E8M0]).T, np.zeros((4, 3), np.float32).T
    host(*(from_dlpack(array) for array in (x, y, z)))
    least, most = 2.0**-127, 2.0**127
    powers = [2.0, 2.0, 4.0, 4.0, least, np.nan, most, most, most, least, 2 * least, np.nan]
    np.testing.assert_array_equal(z, np.array(powers, np.float32).reshape(4, 3).T)


SHAPES = {
    tcgen05.Cp128x256bOp: (128, 8, (128, 65536)),
    tcgen05.Cp128x128bOp: (128, 4, (128, 65536)),
    tcgen05.Cp4x256bOp: (4, 8, (128, 65536)),
    tcgen05.Cp4x32x128bOp: (32, 4, ((32, 4), (65536, 32 * 65536))),
    tcgen05.Cp2x64x128b0213Op: (64, 4, ((64, 2), (65536, 64 * 65536))),
    tcgen05.Cp2x64x128b0123Op: (64, 4, (((32, 2), 2), ((65536, 64 * 65536), 32 * 65536))),
}


def copied(op: Any, src_fmt: str = "") -> Any:
    """What lanes and columns hold after the copy of rows of words 100 * row + column. ``SHAPES``: rows, words, (shape,
    stride) of the lanes."""
    rows, words, (lanes, stride) = SHAPES[op]

    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        holder, done = smem.allocate_array(cutlass.Int32, 1), smem.allocate_array(cutlass.Int64, 1)
        if warp == 0:
            cute.arch.alloc_tmem(32, holder)
        if t == 0:
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
        shape = (rows, 4) if words == 4 else (rows, (4, 2))
        layout = cute.make_layout(shape, stride=(4, 1) if words == 4 else (4, (1, 4 * rows)))
        data = smem.allocate_tensor(cutlass.Int32, layout, 128)
        for i in range(t, rows * words, 128):
            data[i % rows, i // rows] = 100 * (i % rows) + i // rows
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        base = cute.arch.retrieve_tmem_ptr(cutlass.Int32, 16, holder)
        everything = cute.make_tensor(base, cute.make_layout((128, 8), stride=(65536, 1)))
        store = tcgen05.make_tmem_copy(
            cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x8), cutlass.Int32), everything
        )
        registers = cute.make_rmem_tensor((((1, 8),), 1, 1), cutlass.Int32)
        registers.fill(-1)
        row = store.get_slice(t).partition_S(cute.make_identity_tensor((128, 8)))
        cute.copy(
            store,
            cute.make_tensor(registers.iterator, cute.make_layout(row.shape)),
            store.get_slice(t).partition_D(everything),
        )
        cute.arch.fence_view_async_tmem_store()
        cute.arch.tcgen05_fence_before_thread_sync()
        cute.arch.sync_threads()
        cute.arch.tcgen05_fence_after_thread_sync()
        if warp == 0:
            target = cute.make_tensor(base, cute.make_layout((lanes, words), stride=(stride, 1)))
            copy = tcgen05.make_s2t_copy(cute.make_copy_atom(op(tcgen05.CtaGroup.ONE, src_fmt), cutlass.Int32), target)
            mine = copy.get_slice(0)
            if cutlass.const_expr(rows == 4):  # a row for each 32 lanes
                data = cute.make_tensor(
                    data.iterator, cute.make_layout(((32, 4), (4, 2)), stride=((0, 4), (1, 4 * rows)))
                )
            source = tcgen05.get_s2t_smem_desc_tensor(copy, mine.partition_S(data))
            cute.copy(copy, source, mine.partition_D(target))
            with cute.arch.elect_one():
                tcgen05.commit(done)
        cute.arch.mbarrier_wait(done, 0)
        cute.arch.tcgen05_fence_after_thread_sync()
        load = tcgen05.make_tmem_copy(
            cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x8), cutlass.Int32), everything
        )
        out = load.get_slice(t).partition_D(y)
        taken = cute.make_rmem_tensor(out.shape, cutlass.Int32)
        cute.copy(load, load.get_slice(t).partition_S(everything), taken)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(taken, out)
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.dealloc_tmem(base, 32)

    @cute.jit
    def host(y: cute.Tensor):
        kernel(y).launch(grid=(1, 1, 1), block=(128, 1, 1))

    y = np.zeros((128, 8), np.int32)
    with sim.options(check="all"):
        host(from_dlpack(y))
    return y


@pytest.mark.parametrize("op", SHAPES, ids=lambda op: op.__name__)
def test_copies_to_tensor_memory(op: Any) -> None:
    """Rows are where PTX puts them."""
    words = SHAPES[op][1]
    expected = np.full((128, 8), -1)
    lane = np.arange(128)
    source = {
        tcgen05.Cp4x256bOp: np.where(lane % 32 == 0, lane // 32, -1),
        tcgen05.Cp4x32x128bOp: lane % 32,
        tcgen05.Cp2x64x128b0213Op: lane % 64,
        tcgen05.Cp2x64x128b0123Op: lane // 64 * 32 + lane % 32,
    }.get(op, lane)
    for lane_, row_ in enumerate(source):
        if row_ >= 0:
            expected[lane_, :words] = 100 * row_ + np.arange(words)
    np.testing.assert_array_equal(copied(op), expected)


@pytest.mark.parametrize("width, src_fmt", [(4, "b4x16_p64"), (6, "b6x16_p32")])
def test_copies_unpack_numbers(width: int, src_fmt: str) -> None:
    """16 numbers in the first of 16 bytes get a byte each; those of 4 bits are in its middle."""
    words = 100 * np.arange(128)[:, None] + np.arange(8)
    chunks = np.ascontiguousarray(words.astype(np.int32)).view(np.uint8).reshape(128, 2, 16)[..., : 2 * width]
    bits = np.unpackbits(chunks, axis=-1, bitorder="little").reshape(128, 32, width)
    numbers = np.packbits(bits, axis=-1, bitorder="little")[..., 0] << (2 if width == 4 else 0)
    found = copied(tcgen05.Cp128x256bOp, src_fmt)
    np.testing.assert_array_equal(found.view(np.uint8), numbers)


def test_factors_beside_the_operands_of_a_gemm() -> None:
    """``cute.gemm(mma, d, [a, factors], [b, factors], c)`` sets the fields itself, also for several MMAs along K."""
    gemm = Gemm(E2M1, E8M0, 32, (128, 64, 256))
    given, expected = arrays(gemm)
    gemm.pairs = True
    gemm(*(from_dlpack(x, assumed_align=16) for x in given))
    np.testing.assert_array_equal(given[-1], expected)


def test_an_operation_with_block_scales_of_a_programs_own() -> None:
    one = tcgen05.CtaGroup.ONE

    class Mine(tcgen05.MmaMXF4NVF4Op):
        def __init__(self, sf_dtype: Any, vec: int) -> None:
            tcgen05.BlockScaledMmaOp.__init__(
                self, E2M1, E2M1, cutlass.Float32, sf_dtype, vec, (128, 64, 64), one, tcgen05.OperandSource.SMEM, K, K
            )
            self._verify()

    assert (Mine(E8M0, 32).instruction().vec, Mine(E4M3, 16).instruction().vec) == (32, 16)
    assert Arch.sm_100a in Mine.admissible_archs
    with pytest.raises(ConstraintError, match="factors"):
        Mine(E4M3, 32)
