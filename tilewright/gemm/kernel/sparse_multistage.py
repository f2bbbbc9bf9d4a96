"""The multistage GEMM with a 2:4 sparse A, by mma.sp: from sm_80 on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright import cute
from tilewright.gemm.addressing import BY_STRIDES
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.kernel.multistage import DATA_PARALLEL, MultistageGemm
from tilewright.gemm.kernel.sparse import SparseOperand
from tilewright.gemm.mainloop.sparse_multistage import SparseMultistageMainloop
from tilewright.gemm.schedule.launch_arguments import Decomposition
from tilewright.gemm.tiles import aligned


class SparseMultistageGemm(MultistageGemm):
    """D = f(A @ B, C) for a :class:`SparseOperand` A, B (N, K, 1), C and D (M, N, 1); K is a multiple of 64."""

    @cute.jit
    def __call__(  # type: ignore[override]  # a sparse operand in place of a matrix
        self,
        mA: SparseOperand,
        mB: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        decomposition: Decomposition = DATA_PARALLEL,
        stream: Any = None,
    ) -> None:
        """Launch the product."""
        self.launch(mA, mB, mC, mD, function, decomposition, BY_STRIDES, stream)

    def make_mainloop(self) -> SparseMultistageMainloop:
        return SparseMultistageMainloop(self.config, self.math)

    def aligned_operand(self, mA: SparseOperand) -> SparseOperand:
        return replace(mA, stored=aligned(mA.stored, self.config.a))

    def stored_and_metadata(self, mA: SparseOperand) -> tuple[Any, Any]:
        return mA.stored, mA.metadata[None, None, 0]
