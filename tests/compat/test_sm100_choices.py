"""What of the helpers for sm_100 is arithmetic and layouts: against the rules of CUTLASS' C++ headers."""

from __future__ import annotations

import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.utils import LayoutEnum, blackwell_helpers, blockscaled_layout, sm100

ROW, COL = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR


@pytest.mark.parametrize(
    ("tile", "two", "d", "c", "majors", "expected"),
    [  # sm100_builder.inl by hand: EpilogueTileAuto
        ((128, 128), False, 16, None, (False, False), (128, 32)),  # 4096 / 128
        ((128, 256), True, 32, None, (False, False), (128, 32)),
        ((64, 128), False, 16, None, (False, False), (64, 64)),  # 4096 / 64
        ((64, 128), True, 16, None, (False, False), (64, 64)),  # two by two warps: 32 * 2 rows
        ((128, 128), False, 4, None, (False, False), (128, 64)),  # 8192 / 128
        ((128, 128), False, 32, 32, (False, False), (128, 16)),
        ((64, 128), False, 32, 32, (False, False), (64, 32)),
        ((128, 256), False, 32, 32, (False, False), (128, 32)),
        ((128, 128), False, 16, 16, (False, False), (128, 32)),
        ((128, 256), False, 16, 16, (True, True), (128, 64)),
        ((128, 256), False, 8, 8, (False, False), (128, 64)),
        ((128, 256), False, 6, None, (False, False), (128, 128)),  # rows of 128 numbers of 6 bits
        ((128, 96), False, 16, 16, (False, False), (128, 32)),  # gcd(96, 32)
        ((128, 24), False, 16, None, (True, True), (128, 24)),
    ],
)
def test_epilogue_tiles(tile, two, d, c, majors, expected) -> None:
    assert sm100.compute_epilogue_tile_size(*tile, two, d, c, *majors) == expected


def test_epilogue_tiles_that_two_warps_share_skip_columns() -> None:
    m, n = sm100.compute_epilogue_tile_shape((64, 256, 64), True, ROW, cutlass.Float16, layout_c=COL, elem_ty_c=None)
    assert (str(m), str(n)) == ("64:1", "(32,2):(1,128)")
    m, n = cutlass.utils.compute_epilogue_tile_shape((128, 128), False, COL, cutlass.Float16)
    assert (str(m), str(n)) == ("128:1", "32:1")
    with pytest.raises(ConstraintError, match="128x8 is too small: the epilogue stores 16 columns at a time"):
        sm100.compute_epilogue_tile_size(128, 8, False, 8, None, False)


def test_warps_of_an_epilogue_as_the_caller_says() -> None:
    """Two by two, as of a pair, for the half of the rows that one block has."""
    arguments = (64, 256, 64), False, ROW, cutlass.Float16
    tile = sm100.compute_epilogue_tile_shape(*arguments, tmem_warp_shape_mn=(2, 2))
    assert str(tile) == str(sm100.compute_epilogue_tile_shape(arguments[0], True, *arguments[2:]))
    loads = [
        sm100.get_tmem_load_op(arguments[0], ROW, cutlass.Float16, cutlass.Float32, tile, two, tmem_warp_shape_mn=warps)
        for two, warps in ((True, None), (False, (2, 2)))
    ]
    assert loads[0].instruction == loads[1].instruction
    with pytest.raises(ConstraintError, match=r"four warps divide an accumulator as \(4, 1\) or \(2, 2\)"):
        sm100.compute_epilogue_tile_shape(*arguments, tmem_warp_shape_mn=(1, 4))


@pytest.mark.parametrize(
    ("two", "tile_m", "mma_n", "tiles", "in_tmem"),
    [
        (two, m, n, tiles, False)
        for two, ms in ((False, (64, 128)), (True, (128, 256)))
        for m in ms
        for n, tiles in ((64, 1), (64, 2), (64, 4), (128, 2))
    ]
    + [(False, 64, 64, 2, True), (False, 128, 64, 2, True), (True, 256, 64, 2, True)],
)
def test_columns_of_accumulators_are_those_of_their_fragments(
    two: bool, tile_m: int, mma_n: int, tiles: int, in_tmem: bool
) -> None:
    source = tcgen05.OperandSource.TMEM if in_tmem else tcgen05.OperandSource.SMEM
    major, group = OperandMajorMode.K, tcgen05.CtaGroup.TWO if two else tcgen05.CtaGroup.ONE
    op = tcgen05.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (tile_m, mma_n), group, source, major, major)
    mma = cute.make_tiled_mma(op)
    layout = mma.make_fragment_C(mma.partition_shape_C((tile_m, mma_n * tiles))).layout
    held = tile_m // (2 if two else 1), mma_n * tiles
    columns = sm100.compute_acc_tmem_cols_per_stage(*held, two, mma_n, in_tmem)
    assert cutlass.utils.compute_tmem_cols_from_layout(layout, cutlass.Float32) == columns


@pytest.mark.parametrize("major", OperandMajorMode)
def test_staged_tiles_of_an_operand_lie_as_the_mma_reads_them(major: OperandMajorMode) -> None:
    """The tile (M, K) of ``make_smem_layout`` against the modes of ``make_smem_layout_a``."""
    mma = sm100.make_trivial_tiled_mma(
        cutlass.Float16, cutlass.Float16, major, major, cutlass.Float32, tcgen05.CtaGroup.ONE, (128, 64)
    )
    plain = cutlass.utils.make_smem_layout(major, (128, 64), cutlass.Float16, 3)
    modes = sm100.make_smem_layout_a(mma, (128, 64, 64), cutlass.Float16, 3)
    assert plain.inner == modes.inner and [cute.size(plain, mode=[i]) for i in range(3)] == [128, 64, 3]
    for row, k, stage in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (77, 13, 1), (127, 63, 2), (8, 40, 2), (64, 16, 1)):
        assert plain((row, k, stage)) == modes(((row, k % 16), 0, k // 16, stage))


def test_scale_factors_lie_as_in_cutlass() -> None:
    """Sm1xxBlockScaledConfig: the four factors of a row, then 32 rows 16 apart, then four groups of rows."""
    layout = blockscaled_layout.tile_atom_to_shape_SF((256, 256, 2), 16)
    for row in range(0, 256, 7):
        for k in range(0, 256, 5):
            atom = (row // 128) * (256 // 64) + k // 64
            within = row % 32 * 16 + row % 128 // 32 * 4 + k // 16 % 4
            assert cute.crd2idx((row, k, 1), layout) == 8 * 512 + atom * 512 + within
    chunk = blockscaled_layout.BlockScaledBasicChunk(32, OperandMajorMode.MN)
    assert str(chunk.layout) == "((32,4),(32,4)):((0,1),(16,4))"
    with pytest.raises(ConstraintError, match="16 or 32 elements share a factor, not 8"):
        blockscaled_layout.BlockScaledBasicChunk(8)


def test_tiles_of_mmas_are_those_of_the_tiled_atom() -> None:
    """The same offsets as ``tile_to_shape``, only grouped by MMA."""
    atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, cutlass.Float16)
    tiled = cute.tile_to_shape(atom, (256, 64, 3), (0, 1, 2))
    grouped = tcgen05.tile_to_mma_shape(atom, ((128, 16), 2, 4, 3), (0, 1, 2))
    assert cute.shape(grouped, mode=[0]) == (128, 16) and cute.size(grouped) == cute.size(tiled)
    for m, k, stage in ((0, 0, 0), (5, 17, 1), (131, 40, 2), (255, 63, 2)):
        of_mma = ((m % 128, k % 16), m // 128, k // 16, stage)
        assert cute.crd2idx(of_mma, grouped) == cute.crd2idx((m, k, stage), tiled)


def test_shared_layouts_of_epilogues_fit_what_is_contiguous() -> None:
    whole = blackwell_helpers.make_smem_layout_epi(cutlass.Float16, ROW, (128, 64), 2)
    assert str(whole.inner) == "Sw<3,4,3>" and cute.size(whole) == 128 * 64 * 2
    m, n = sm100.compute_epilogue_tile_shape((64, 256, 64), True, ROW, cutlass.Float16)
    assert sm100.get_smem_layout_atom_epi(ROW, cutlass.Float16, (m, n)).name == "K_SW64"  # 32 contiguous halves
    assert sm100.get_smem_layout_atom_ab(OperandMajorMode.MN, cutlass.Float32, (64, 32)).name == "MN_SW128_32B"
    with pytest.raises(ConstraintError, match="rows are 32 elements; 48 is not a multiple"):
        sm100.get_smem_layout_atom_ab(OperandMajorMode.MN, cutlass.Float32, (48, 32))


def test_loads_of_operands() -> None:
    single, multicast = cpasync.CopyBulkTensorTileG2SOp, cpasync.CopyBulkTensorTileG2SMulticastOp
    assert type(sm100.cluster_shape_to_tma_atom_A((2, 1, 1), 1)) is single
    assert type(sm100.cluster_shape_to_tma_atom_B((2, 1, 1), 1)) is multicast
    assert type(sm100.cluster_shape_to_tma_atom_A((1, 2, 1), cute.make_layout(1))) is multicast
    assert sm100.cluster_shape_to_tma_atom_A((2, 1, 1), 2) == single(2)
    assert sm100.cluster_shape_to_tma_atom_B((4, 1, 1), 2) == multicast(2)  # the second pair has the same columns
    assert sm100.cluster_shape_to_tma_atom_SFB((2, 1, 1), 2) == multicast(2)  # both blocks have all factors
    with pytest.raises(ConstraintError, match="it is CtaGroup.ONE or TWO"):
        single(3)


def test_columns_of_tensor_memory() -> None:
    assert cute.arch.get_max_tmem_alloc_cols("sm_100") == 512 and cute.arch.get_min_tmem_alloc_cols("sm_103a") == 32
    with pytest.raises(ArgumentError, match="'sm_90' has no tensor memory"):
        cute.arch.get_max_tmem_alloc_cols("sm_90")


def test_enumerations_have_the_documented_values() -> None:
    assert [(x.name, x.value) for x in tcgen05.Pack] == [("NONE", 1), ("PACK_16b_IN_32b", 2)]
    assert [(x.name, x.value) for x in tcgen05.Unpack] == [("NONE", 1), ("UNPACK_32b_IN_16b", 2)]
    assert [x.value for x in tcgen05.Repetition] == [1 << i for i in range(8)]
    assert [x.value for x in cute.nvgpu.warp.Field] == ["accum_c", "sf_a", "sf_b"]
    assert cutlass.pipeline.MbarrierLayout.V0.value == 1
    assert cute.arch.Arch.sm_100f.major == 10
