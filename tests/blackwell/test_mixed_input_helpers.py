"""``utils.mixed_input_helpers``: layouts of scales, and what is refused. tests/compat/programs/
blackwell_mixed_input_gemm.py multiplies with them."""

from __future__ import annotations

import pytest

from tilewright import Float16, Float32, Int4, Int8, TFloat32, cute, utils
from tilewright.cute.nvgpu import OperandMajorMode, tcgen05
from tilewright.errors import ConstraintError
from tilewright.testing import CantImplementError
from tilewright.utils import blackwell_helpers as sm100
from tilewright.utils import mixed_input_helpers as mixed

K, MN = OperandMajorMode.K, OperandMajorMode.MN
ONE, TMEM, SMEM = tcgen05.CtaGroup.ONE, tcgen05.OperandSource.TMEM, tcgen05.OperandSource.SMEM


@pytest.mark.parametrize("major", [K, MN])
@pytest.mark.parametrize(("group_m", "group_k"), [(1, 32), (64, 16), (1, 512)])
def test_each_element_has_the_scale_of_its_group(major: OperandMajorMode, group_m: int, group_k: int) -> None:
    m, k, batch = 256, 512, 2
    layout = mixed.get_gmem_layout_scale((m, k, batch), group_m, group_k, major)
    groups_m, groups_k = m // group_m, k // group_k
    for at in ((0, 0, 0), (65, 100, 1), (255, 511, 1)):
        row, column = at[0] // group_m, at[1] // group_k
        within = row + groups_m * column if major is MN else row * groups_k + column
        assert layout(at) == within + at[2] * groups_m * groups_k
    tile, one, staged = mixed.get_smem_layout_scale((128, 64, 64), False, group_m, group_k, major, Float16, 3)
    assert tile == (128, 64) and cute.size(one) == 128 * 64
    assert cute.cosize(one) == (128 // group_m) * max(1, 64 // group_k) and cute.cosize(staged) == 3 * cute.cosize(one)
    assert one((127, 63)) == cute.cosize(one) - 1


def test_the_last_group_of_scales_may_be_shorter() -> None:
    assert str(mixed.get_gmem_layout_scale((100, 72, 2), 64, 32, K)) == "((64,2),(32,3),2):((0,3),(0,1),6)"
    assert str(mixed.get_gmem_layout_scale((100, 72, 2), 64, 32, MN)) == "((64,2),(32,3),2):((0,1),(0,2),6)"


def test_a_keeps_its_own_type_in_shared_memory() -> None:
    """A of 8 bits for an MMA of 16 has rows of half the bytes, and so another swizzle."""
    mma = sm100.make_trivial_tiled_mma(Float16, Float16, K, K, Float32, ONE, (128, 64), TMEM)
    layout = sm100.make_smem_layout_a(mma, (128, 64, 64), Int8, 2)
    assert str(layout) == "Sw<2,4,3> o 0 o ((128,16),1,4,2):((64,1),0,16,8192)"
    narrow, converted, other = utils.compute_smem_layout(mma, (128, 64, 64), Int4, Float16, 4, 2)
    assert [x.outer.shape[3] for x in (narrow, converted, other)] == [4, 2, 4] and narrow.inner.bits == 1


def test_the_stores_of_converted_a() -> None:
    shapes = {rows: ((rows, 16), 1, 4) for rows in (64, 128)}
    found = [
        str(mixed.get_copy_atom_a_transform(TFloat32, pair, TMEM, shapes[rows], Float16).instruction)
        for rows, pair in ((128, False), (64, False), (64, True))
    ]
    assert found == ["SM100_TMEM_STORE_32x32b8x", "SM100_TMEM_STORE_16x256b1x", "SM100_TMEM_STORE_32x32b8x"]
    assert [mixed.TransformMode.ConvertOnly.value, mixed.TransformMode.ConvertScale.value] == [1, 2]
    assert mixed.get_transform_a_source(MN) is SMEM


@pytest.mark.parametrize(
    ("mnk", "majors", "message"),
    [
        ((64, 64, 24), ("k", "k", "n"), "A: its contiguous mode k = 24 elements of Int8 is no multiple of 16 bytes"),
        ((64, 64, 36), ("m", "k", "n"), r"B: its contiguous mode k = 36 elements of Float16 .*\(8 elements\)"),
        ((64, 62, 64), ("k", "k", "n"), "out: its contiguous mode n = 62 elements of Float32"),
        ((64, 62, 64), ("k", "k", "m"), ""),
        ((64, 64, 64), ("n", "k", "m"), "A has the modes m and k; its major is 'n'"),
    ],
)
def test_operands_that_tma_cannot_read(mnk: tuple[int, int, int], majors: tuple[str, str, str], message: str) -> None:
    def check() -> None:
        sm100.check_gemm_tma_alignment(*mnk, Int8, Float16, Float32, *majors, output_tensor_name="out")

    if message:
        with pytest.raises(CantImplementError, match=message):
            check()
    else:
        check()


def test_what_is_refused() -> None:
    with pytest.raises(ConstraintError, match="scales for MMAs of pairs of blocks are not here"):
        mixed.get_smem_layout_scale((256, 64, 64), True, 1, 32, K, Float16, 3)
    with pytest.raises(ConstraintError, match="shuffle_a=True, an order of the elements of A"):
        mixed.cvt_tensor_a(cute.make_layout(1), Float16, True)
    atom = mixed.get_copy_atom_a_transform(Float16, False, SMEM, ((64, 8), 1, 4), Int8)
    with pytest.raises(ConstraintError, match="128 threads do not divide a tile of 64x8 elements"):
        mixed._along_m(atom, cute.make_layout(((64, 8),)))
    with pytest.raises(ConstraintError, match=r"is_shuffle_a is not here yet: .*; use False"):
        mixed.is_shuffle_a(1)
