"""The kernels of block-scaled products, in all their sizes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from tilewright import Float8E4M3FN, Float8E8M0FNU, Float32
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.errors import ArgumentError
from tilewright.gemm.block_scaled_config import ROWS, BlockScaledConfig, BlockScaledSm120Config
from tilewright.gemm.config import AnyConfig, Major, Operand
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.hopper_sizes import most_stages
from tilewright.gemm.family.sm120 import SM120
from tilewright.gemm.kernel.block_scaled import BlockScaledGemm
from tilewright.gemm.kernel.block_scaled_sm120 import BlockScaledSm120Gemm
from tilewright.gemm.kernel.factors import FactorsGemm
from tilewright.ir.target import architecture

COLUMNS = (256, 192, 128, 64)
CLUSTERS = {2: ((2, 1), (4, 1), (2, 2)), 1: ((1, 1), (2, 1), (1, 2))}
"""By the number of blocks that work on one MMA. The blocks of a cluster share what they load."""
PARTS = (64, 32)
"""Columns of a part of the epilogue."""
WIDE = 256
"""Columns from which ptxas spills beside the epilogue's wide parts."""
MOST_STAGES = 12


class Format(NamedTuple):
    """The type of factors, and how many elements of K share one."""

    factor: Any
    vector: int


FORMATS = {
    (8, Float8E8M0FNU): Format(Float8E8M0FNU, 32),
    (4, Float8E8M0FNU): Format(Float8E8M0FNU, 32),
    (4, Float8E4M3FN): Format(Float8E4M3FN, 16),
}
"""mxfp8, mxfp4 and nvfp4, by the bits of an element and the type of the factors."""


@cache
def block_scaled_entry(a: Any, b: Any, out: Any, form: Format, version: int) -> KernelEntry:
    """The kernel for operands of types ``a`` and ``b`` on GPUs of compute capability ``version``, the usual size first.
    Raises ArgumentError for types and GPUs without such a kernel.

    >>> from tilewright import BFloat16, Float4E2M1FN
    >>> found = block_scaled_entry(Float4E2M1FN, Float4E2M1FN, BFloat16, FORMATS[4, Float8E4M3FN], 120)
    >>> found.config.tile, found.config.stages
    ((128, 128, 128), 4)
    """
    operands = Operand(a, Major.K, 128), Operand(b, Major.K, 128), Operand(out, Major.K, 128)
    if version in TCGEN05:
        first, *others = _of_tcgen05(operands, form)
    elif version in SM120:
        first, *others = _of_mma_sync(operands, form)
    else:
        archs = ", ".join(f"sm_{number}a" for number in (*TCGEN05, *SM120))
        raise ArgumentError(
            f"block_scaled_matmul needs tensor cores that know factors, which {archs} have and sm_{version} does not; "
            'the simulator runs it for those: tilewright.sim.options(arch="sm_100a")'
        )
    return KernelEntry("block_scaled", "products with factors of blocks", first, small=tuple(others))


def block_scaled_kernel(config: AnyConfig) -> FactorsGemm:
    """The kernel of a size."""
    if isinstance(config, BlockScaledConfig):
        return BlockScaledGemm(config)
    assert isinstance(config, BlockScaledSm120Config)
    return BlockScaledSm120Gemm(config)


def _of_tcgen05(operands: tuple[Operand, Operand, Operand], form: Format) -> Iterator[AnyConfig]:
    """Tiles of 128 rows a block and 128 bytes of K."""
    depth, smem = 1024 // operands[0].dtype.width, architecture("sm_100a").smem
    for ctas, clusters in CLUSTERS.items():
        for columns in COLUMNS:
            tile = ROWS, columns, depth
            for cluster in clusters:
                if columns // ctas % (8 * (cluster[0] // ctas)) == 0:
                    how: dict[str, Any] = {"cluster": cluster, "ctas": ctas, **form._asdict()}
                    parts = [
                        BlockScaledConfig(*operands, Float32, tile, 2, epilogue_columns=part, **how)
                        for part in PARTS
                        if columns < WIDE or part == PARTS[-1]
                    ]
                    yield most_stages(parts, smem, MOST_STAGES)


def _of_mma_sync(operands: tuple[Operand, Operand, Operand], form: Format) -> Iterator[AnyConfig]:
    """One tile, whole blocks of factors."""
    smem, tile = architecture("sm_120a").smem, (ROWS, ROWS, 128)
    how: dict[str, Any] = {"consumers": (2, 1), **form._asdict()}
    parts = [BlockScaledSm120Config(*operands, Float32, tile, 2, epilogue_columns=part, **how) for part in PARTS]
    yield most_stages(parts, smem, MOST_STAGES)
