"""Kernels for few rows: warps that share K, and read A and B straight into the registers of mma.sync."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright.gemm.config import AnyConfig
from tilewright.gemm.family.accesses import OperandAccess, ProductOperands, operand_accesses
from tilewright.gemm.family.ampere_cost import AmpereModel
from tilewright.gemm.family.base import KernelFamily
from tilewright.gemm.kernel.small_m import SmallMGemm


class SmallM(KernelFamily):
    """It takes products of at most 16 rows, with A and B in rows of 16 bytes along K."""

    model = AmpereModel
    takes_shares = False

    def kernel(self, config: Any) -> SmallMGemm:
        return SmallMGemm(config)

    def accesses(self, config: AnyConfig, product: ProductOperands) -> list[OperandAccess]:
        return operand_accesses(product, SmallMGemm.ACCESS)[:2]  # D and C may have any layout

    def product_refusal(self, config: AnyConfig, product: ProductOperands, decomposition: Any) -> str | None:
        if product.indirect is not None:
            return "it reads matrices whose rows and batches follow each other at strides, not by index or pointer"
        if product.shape[0] > config.tile[0]:
            return f"it is for products with at most {config.tile[0]} rows, not {product.shape[0]}"
        if product.shape[2] == 0:
            return "K is 0: there is nothing to load"
        return None if decomposition in ("auto", "data_parallel") else self.sharing_refusal(())

    def may_share(self, config: AnyConfig) -> bool:
        return False

    def sharing_refusal(self, sizes: Iterable[AnyConfig]) -> str | None:
        return "its warps share K; its blocks share nothing"
