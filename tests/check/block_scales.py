"""Block-scaled products: factors are there before the product, in tensor memory or in registers."""

from __future__ import annotations

import tilewright as cutlass
from tests.blackwell import test_sm120
from tests.blackwell.test_scaled import Gemm, arrays
from tests.check.pairs import launch, pair
from tilewright.cute.runtime import from_dlpack


@pair(
    "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X reads factors (SFB) that are not in all four "
    "quarters of the lanes",
    "cute.gemm(mma, sums, part_a[None, None, i, 0], part_b[None, None, i, 0], sums)",
)
def factors_that_nothing_copied(bug: bool) -> None:
    gemm = Gemm(cutlass.Float8E4M3FN, cutlass.Float8E8M0FNU, 32, (128, 32, 128), copied=1 if bug else 2)
    gemm(*(from_dlpack(x, assumed_align=16) for x in arrays(gemm)[0]))


@pair("uninitialised", "cute.autovec_copy(sums, c)", "held = cute.make_rmem_tensor((made.factors,), op.sf_type)")
def factors_in_registers_that_nothing_wrote(bug: bool) -> None:
    op = test_sm120.OPS["nvf4"]
    kernel, shape = test_sm120.multiply(op, "only set" if bug else "written")
    launch(kernel, *map(from_dlpack, test_sm120.arrays(op, shape)[0]), block=128)
