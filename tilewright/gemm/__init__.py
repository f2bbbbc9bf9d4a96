"""The GEMM library, written in the language."""

from tilewright.gemm.choice.registry import kernels
from tilewright.gemm.config import GemmConfig, Major, Operand
from tilewright.gemm.epilogue.functions import Bias, Chain, EpilogueFunction, LinearCombination, Relu
from tilewright.gemm.family.compile import cross_compile, stage
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.arguments import GemmUniversalMode
from tilewright.gemm.host.gemm import GemmReport, gemm, launcher
from tilewright.gemm.host.universal import GemmUniversal
from tilewright.gemm.kernel.multistage import MultistageGemm
from tilewright.gemm.operators.grouped import gemm_grouped
from tilewright.gemm.operators.matmul import matmul
from tilewright.gemm.operators.scaled import scaled_matmul
from tilewright.gemm.operators.warm_up import warm_up
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.gemm.tuning.tune import Tuned, tune

__all__ = [
    "Bias",
    "Chain",
    "EpilogueFunction",
    "LinearCombination",
    "Relu",
    "GemmConfig",
    "GemmReport",
    "GemmUniversal",
    "GemmUniversalMode",
    "KernelEntry",
    "Major",
    "MultistageGemm",
    "Operand",
    "SplitK",
    "StreamK",
    "Tuned",
    "cross_compile",
    "gemm",
    "gemm_grouped",
    "kernels",
    "launcher",
    "matmul",
    "scaled_matmul",
    "warm_up",
    "stage",
    "tune",
]
