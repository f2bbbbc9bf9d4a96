"""The kernels of the library by name, with the tiles that are known to do well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilewright import BFloat16, Float16, Float32
from tilewright.errors import ArgumentError
from tilewright.gemm.config import GemmConfig, Major, Operand


@dataclass(frozen=True)
class KernelEntry:
    """A named kernel: its configuration for fully aligned row-major operands, and one line of what it is."""

    name: str
    title: str
    config: GemmConfig

    def with_operands(self, a: Operand, b: Operand, c: Operand) -> GemmConfig:
        """The configuration for other majors and vector widths of the same dtypes."""
        return replace(self.config, a=self._loaded(a), b=self._loaded(b), c=c)

    def _loaded(self, operand: Operand) -> Operand:
        """SIMT holds its tiles MN-major, so K-major operands are turned element by element on their way to shared
        memory."""
        turned = self.config.math == "simt" and operand.major is Major.K
        return replace(operand, copy_bits=operand.dtype.width) if turned else operand

    def accepts(self, ab_dtype: Any) -> bool:
        return self.config.a.dtype is ab_dtype

    def compile(self, arch: str = "sm_90a") -> Any:
        """Cross-compile for ``arch``; the artifact has ``.ir .cuda .ptx .sass .registers .spills``. Needs no GPU."""
        from tilewright.gemm.host import cross_compile

        return cross_compile(self.config, arch)


def tensorop(dtype: Any) -> GemmConfig:
    operand = Operand(dtype, Major.K, 128)
    return GemmConfig(
        math="tensorop", a=operand, b=Operand(dtype, Major.MN, 128), c=operand, acc_dtype=Float32,
        tile=(128, 128, 32), warps=(2, 2), stages=4,
    )  # fmt: skip


def simt() -> GemmConfig:
    # Row-major A needs one 4-byte cp.async an element (shared memory holds it M-major); B and C move 16 bytes at once.
    return GemmConfig(
        math="simt", a=Operand(Float32, Major.K, 32), b=Operand(Float32, Major.MN, 128),
        c=Operand(Float32, Major.K, 128),
        acc_dtype=Float32, tile=(128, 128, 8), warps=(8, 1), stages=3,
    )  # fmt: skip


KERNELS = {
    entry.name: entry
    for entry in (
        KernelEntry(
            "tensorop_f16", "fp16 tensor cores: mma.sync 16x8x16, ldmatrix, cp.async multistage", tensorop(Float16)
        ),
        KernelEntry(
            "tensorop_bf16", "bf16 tensor cores: mma.sync 16x8x16, ldmatrix, cp.async multistage", tensorop(BFloat16)
        ),
        KernelEntry("simt_f32", "fp32 FMA: 128x128x8 tiles, cp.async multistage", simt()),
    )
}


def kernels() -> dict[str, KernelEntry]:
    """All kernels by name."""
    return dict(KERNELS)


def choose(ab_dtype: Any, kernel: str | KernelEntry | None) -> KernelEntry:
    """The kernel of that name (or the entry itself), or the best one for operands of ``ab_dtype``."""
    if isinstance(kernel, str) and kernel not in KERNELS:
        raise ArgumentError(f"there is no kernel {kernel!r}; the kernels are {', '.join(KERNELS)}")
    entry = KERNELS[kernel] if isinstance(kernel, str) else kernel
    candidates = [entry] if entry else list(KERNELS.values())
    for candidate in candidates:
        if candidate.accepts(ab_dtype):
            return candidate
    known = sorted({e.config.a.dtype.__name__ for e in candidates})
    who = f"kernel {entry.name}" if entry else "no kernel"
    takes = f"{who} takes {ab_dtype.__name__} operands"
    raise ArgumentError(f"{takes}; supported: {', '.join(known)}")
