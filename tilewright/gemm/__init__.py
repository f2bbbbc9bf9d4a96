"""The GEMM library, written in the language."""

from tilewright.gemm.compile import cross_compile, stage
from tilewright.gemm.config import GemmConfig, Major, Operand
from tilewright.gemm.host import GemmReport, gemm, launcher
from tilewright.gemm.multistage import MultistageGemm
from tilewright.gemm.registry import KernelEntry, kernels
from tilewright.gemm.streamk import StreamK

__all__ = [
    "GemmConfig",
    "GemmReport",
    "KernelEntry",
    "Major",
    "MultistageGemm",
    "Operand",
    "StreamK",
    "cross_compile",
    "gemm",
    "kernels",
    "launcher",
    "stage",
]
