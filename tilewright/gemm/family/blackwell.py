"""Kernels of tcgen05 and TMA for sm_100: persistent blocks, sums in tensor memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from tilewright import Int8
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.gemm.config import AnyConfig, HopperConfig
from tilewright.gemm.family.accesses import ProductOperands
from tilewright.gemm.family.blackwell_cost import BlackwellModel
from tilewright.gemm.family.hopper import Hopper
from tilewright.gemm.family.plan_options import Limits, Problem
from tilewright.gemm.kernel.tensor_memory import TensorMemoryGemm


class Blackwell(Hopper):
    """It takes what the Hopper kernels take, on sm_100a and its like; its blocks make whole tiles."""

    model = BlackwellModel
    built_for = 100
    takes_shares = False
    grouped: ClassVar[Any] = None

    def kernel(self, config: Any) -> TensorMemoryGemm:
        return TensorMemoryGemm(config)

    def takes_block_scales(self, config: AnyConfig, rows: int, columns: int) -> bool:
        return False

    def epilogue_shows(self, problem: Problem, limits: Limits) -> bool:
        return False  # other warps multiply meanwhile

    def hides_epilogue(self, config: AnyConfig) -> bool:
        return True

    def buffered(self, config: AnyConfig, smem: int) -> AnyConfig:
        return config  # other warps multiply meanwhile

    def min_arch(self, config: AnyConfig) -> int:
        return 100

    def arch_refusal(self, config: AnyConfig, version: int) -> str | None:
        if version not in TCGEN05:
            known = ", ".join(f"sm_{n}a" for n in TCGEN05)
            return f"it needs tcgen05, which {known} have and sm_{version} does not"
        if config.a.dtype is Int8 and version == 103:
            return "its tcgen05.mma.kind::i8 is not there on sm_103a"
        return None

    def decomposition_refusal(
        self, sizes: tuple[AnyConfig, ...], product: ProductOperands, decomposition: Any, reduction: str | None
    ) -> str | None:
        if decomposition in ("auto", "data_parallel", "dynamic") and reduction in (None, "none"):
            return None
        return self.sharing_refusal(sizes)

    def may_share(self, config: AnyConfig) -> bool:
        return False

    def joined_sizes(self, config: AnyConfig) -> Iterator[HopperConfig]:
        return iter(())

    def sharing_refusal(self, sizes: Iterable[AnyConfig]) -> str | None:
        return "its blocks make whole tiles: take decomposition='data_parallel' or 'dynamic'"
