"""A kernel family in one module: a thread for each element of D, from global memory. Only tests register it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import tilewright as cutlass
from tilewright import Float32, cute
from tilewright.gemm import KernelEntry
from tilewright.gemm.config import AnyConfig, GemmConfig, Major, Operand
from tilewright.gemm.family import KernelFamily
from tilewright.gemm.family.accesses import ProductOperands
from tilewright.gemm.family.estimate import CostModel
from tilewright.gemm.family.plan_options import Problem, Vector

MOST_K = 64
THREADS = 128


@dataclass(frozen=True)
class NaiveConfig(GemmConfig):
    """``tile`` (1, columns, 1): a block makes columns of one row."""

    math = "naive"

    def with_operands(self, a: Operand, b: Operand, c: Operand, smem: int) -> NaiveConfig:
        a, b, c = (replace(operand, copy_bits=operand.dtype.width) for operand in (a, b, c))
        return replace(self, a=a, b=b, c=c)


class NaiveGemm:
    """D = f(A @ B, C), an element a thread."""

    def __init__(self, config: AnyConfig) -> None:
        self.config = config

    @cute.jit
    def __call__(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: Any,
        decomposition: Any,
        stream: Any = None,
    ) -> None:
        rows, columns, batch = (cute.size(mD, mode=[mode]) for mode in range(3))
        self.kernel(mA, mB, mD, function.alpha).launch(
            grid=(cute.ceil_div(columns, THREADS), rows, batch), block=(THREADS, 1, 1), stream=stream
        )

    @cute.kernel
    def kernel(self, mA: cute.Tensor, mB: cute.Tensor, mD: cute.Tensor, alpha: Any) -> None:
        block, row, batch = cute.arch.block_idx()
        column = block * THREADS + cute.arch.thread_idx()[0]
        if column < cute.size(mB, mode=[0]):
            total = Float32(0)
            for k in cutlass.range(cute.size(mB, mode=[1])):
                total = total + Float32(mA[row, k, batch]) * Float32(mB[column, k, batch])
            mD[row, column, batch] = (total * alpha).to(mD.element_type)


class NaiveModel(CostModel):
    """A microsecond for each k element of each block."""

    def times(self, problem: Problem, sharing: bool = True) -> Vector:
        m, n, k, batch = problem
        return m * -(-n // self.columns) * k * batch


class Naive(KernelFamily):
    """It takes short sums."""

    model = NaiveModel
    takes_shares = False

    def kernel(self, config: AnyConfig) -> NaiveGemm:
        return NaiveGemm(config)

    def product_refusal(self, config: AnyConfig, product: ProductOperands, decomposition: Any) -> str | None:
        return None if product.shape[2] <= MOST_K else f"it is for at most {MOST_K} k elements, not {product.shape[2]}"

    def may_share(self, config: AnyConfig) -> bool:
        return False

    def sharing_refusal(self, sizes: Any) -> str | None:
        return "a thread adds up alone"


def naive_entry(dtype: Any) -> KernelEntry:
    a, b = Operand(dtype, Major.K, dtype.width), Operand(dtype, Major.MN, dtype.width)
    config = NaiveConfig(a, b, a, Float32, (1, THREADS, 1), (1, THREADS // 32), 2)
    return KernelEntry("naive", "an element a thread", config)
