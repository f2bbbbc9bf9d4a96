"""``tcgen05.make_umma_smem_desc`` gives the descriptors that fragments of a tiled MMA have."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as cutlass
from tilewright import Float8E4M3FN, Float16, Float32, Int64, TFloat32, cute
from tilewright.cute.nvgpu import tcgen05
from tilewright.errors import ConstraintError
from tilewright.testing import per_thread
from tilewright.utils import blackwell_helpers as sm100

K, MN = tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.MN


@pytest.mark.parametrize("depth", [16, 32, 64])
@pytest.mark.parametrize("major", [K, MN])
@pytest.mark.parametrize("dtype", [Float16, Float8E4M3FN, TFloat32])
def test_descriptors_are_those_of_fragments(dtype: Any, major: Any, depth: int) -> None:
    def differences(t: Any) -> Any:
        mma = sm100.make_trivial_tiled_mma(dtype, major, K, Float32, tcgen05.CtaGroup.ONE, (128, 64))
        layout = sm100.make_smem_layout_a(mma, (128, 64, depth * 16 // dtype.width * 2), dtype, 2)
        buffer = cutlass.utils.SmemAllocator().allocate_tensor(dtype, layout.outer, 1024, swizzle=layout.inner)
        fragment = mma.make_fragment_A(buffer)
        first = fragment.iterator
        wanted = (Int64(first.high) << 32) | Int64(first.low)
        found = tcgen05.make_umma_smem_desc(buffer.iterator, layout.outer, "k" if major is K else "mn")
        return cutlass.Int32(tcgen05.smem_descriptor_to_int(found) != wanted)

    assert per_thread(differences, 1) == [0]


def test_whole_buffers_and_what_is_refused() -> None:
    def made(t: Any, *, swizzled: bool = True, major: Any = "k", dynamic: bool = False, following: Any = None) -> Any:
        buffer = cute.arch.alloc_smem(Float16, 128 * 64, 1024)
        atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, Float16)
        layout = cute.tile_to_shape(atom, (128, 64), (0, 1))
        pointer = cute.recast_ptr(buffer, layout.inner) if swizzled else buffer
        shape = layout.outer if not dynamic else cute.make_layout((128, t + 64), stride=(64, 1))
        found = tcgen05.make_umma_smem_desc(pointer, shape, major, following)
        return (tcgen05.smem_descriptor_to_int(found) >> 32).to(cutlass.Int32)

    assert per_thread(made, 1) == per_thread(lambda t: made(t, major=K), 1) == [0x40004040]
    for how, why in (
        ({"swizzled": False}, "tcgen05"),
        ({"major": "row"}, "major is 'k' or 'mn', not 'row'"),
        ({"dynamic": True}, "the layout of a buffer is static"),
        ({"following": 1}, "a pointer to shared memory at a multiple of 16 as next_src, not 1"),
    ):
        with pytest.raises(ConstraintError, match=why):
            per_thread(lambda t, how=how: made(t, **how), 1)
