"""Unwritten memory must reach the output as numbers that cannot be taken for a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, utils
from tilewright.cute.runtime import from_dlpack

pytestmark = pytest.mark.usefixtures("values_unchecked")

TYPES = (
    cutlass.Int8,
    cutlass.Uint8,
    cutlass.Int16,
    cutlass.Int32,
    cutlass.Uint32,
    cutlass.Int64,
    cutlass.Float8E4M3FN,
    cutlass.Float8E5M2,
    cutlass.Float16,
    cutlass.BFloat16,
    cutlass.Float32,
    cutlass.Float64,
)


class Fresh:
    """``where``: an allocation of the type, bytes seen as the type, shared memory without a type, or registers."""

    def __init__(self, dtype: Any, where: str) -> None:
        self.dtype, self.where = dtype, where

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=(2, 1, 1), block=(32, 1, 1), smem=2048)

    @cute.kernel
    def kernel(self, out: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        layout = cute.make_layout(32)
        if cutlass.const_expr(self.where == "registers"):
            fresh = cute.make_rmem_tensor(32, self.dtype)
        elif cutlass.const_expr(self.where == "typed"):
            fresh = utils.SmemAllocator().allocate_tensor(self.dtype, layout)
        elif cutlass.const_expr(self.where == "bytes"):
            space = utils.SmemAllocator().allocate(512, 16)
            fresh = cute.make_tensor(cute.recast_ptr(space, dtype=self.dtype), layout)
        else:
            fresh = cute.make_tensor(cute.arch.get_dyn_smem(self.dtype), layout)
        out[bidx, tidx] = fresh[tidx]


@pytest.mark.parametrize("where", ["typed", "bytes", "untyped", "registers"])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_fresh_memory_is_a_nan_or_a_strange_integer(dtype: Any, where: str) -> None:
    out = np.zeros((2, 32), dtype.ir_type.dtype)
    Fresh(dtype, where)(from_dlpack(out))
    if dtype.ir_type.is_float:
        assert np.isnan(out.astype(np.float64)).all()
    elif dtype.ir_type.width > 8:
        assert (np.abs(out.astype(object)) > 10_000).all()
    else:
        assert set(out.reshape(-1).tolist()) <= {-1, 127, 255, -51, 205}
