"""From accumulators to D = alpha * acc + beta * C, straight from registers, predicated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Boolean, Float32, cute, range_constexpr
from tilewright.gemm.config import GemmConfig


@dataclass(frozen=True)
class DirectEpilogue:
    """Every thread stores its own accumulators: adjacent pairs or quads as one access where the alignment allows it."""

    config: GemmConfig

    @cute.jit
    def run(
        self, tiled_mma: cute.TiledMma, tidx: Any, acc: cute.Tensor, gC: cute.Tensor, gD: cute.Tensor, cD: cute.Tensor,
        extent: tuple, alpha: Any, beta: Any,
    ):  # fmt: skip
        thr_mma = tiled_mma.get_slice(tidx)
        tCgC = thr_mma.partition_C(gC)
        tCgD = thr_mma.partition_C(gD)
        tCcD = thr_mma.partition_C(cD)
        inside = cute.make_rmem_tensor(acc.shape, Boolean)
        for i in range_constexpr(cute.size(acc)):
            inside[i] = cute.elem_less(tCcD[i], extent)
        if beta != 0.0:
            source = cute.make_rmem_tensor(acc.shape, self.config.c.dtype)
            source.fill(0)
            cute.basic_copy_if(inside, tCgC, source)
            acc.store(acc.load() * alpha + source.load().to(Float32) * beta)
        else:
            acc.store(acc.load() * alpha)
        result = cute.make_rmem_tensor(acc.shape, self.config.c.dtype)
        result.store(acc.load().to(self.config.c.dtype))
        cute.basic_copy_if(inside, result, tCgD)
