"""Block-scaled tcgen05.mma: factors in tensor memory before the product."""

from __future__ import annotations

import tilewright as cutlass
from tests.blackwell.test_scaled import Gemm, arrays
from tests.check.pairs import pair
from tilewright.cute.runtime import from_dlpack


@pair(
    "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X reads factors (SFB) that are not in all four "
    "quarters of the lanes",
    "cute.gemm(mma, sums, part_a[None, None, i, 0], part_b[None, None, i, 0], sums)",
)
def factors_that_nothing_copied(bug: bool) -> None:
    gemm = Gemm(cutlass.Float8E4M3FN, cutlass.Float8E8M0FNU, 32, (128, 32, 128), copied=1 if bug else 2)
    gemm(*(from_dlpack(x, assumed_align=16) for x in arrays(gemm)[0]))
