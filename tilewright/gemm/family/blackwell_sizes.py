"""The sizes of the Blackwell kernels: tiles of 128 rows a block, alone and in pairs that work on one MMA."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.family.hopper_sizes import sized

COLUMNS = (256, 224, 192, 160, 128, 96, 64, 48, 32, 16)
CLUSTERS = {1: ((1, 1), (2, 1), (1, 2)), 2: ((2, 1), (4, 1), (2, 2))}
"""By the number of blocks that work on one MMA. The blocks of a cluster share what they load."""


def blackwell_sizes(dtype: Any, out: Any, acc: Any) -> list[BlackwellConfig]:
    """The kernel's sizes for row-major A and D and, where tcgen05 reads it so, row-major B; the usual one first."""
    b_major = Major.MN if dtype.width == 16 else Major.K
    operands = Operand(dtype, Major.K, 128), Operand(dtype, b_major, 128), Operand(out, Major.K, 128)
    sizes = list(_sizes(operands, acc))
    return sizes + [replace(size, transposed=True) for size in sizes if size.tile[1] != size.tile[0]]


def _sizes(operands: tuple[Operand, Operand, Operand], acc: Any) -> Iterator[BlackwellConfig]:
    for ctas in (2, 1):
        for columns in COLUMNS:
            if columns % (16 * ctas):
                continue
            for cluster in CLUSTERS[ctas]:
                if _shares_whole_atoms(columns, ctas, cluster):
                    kind: Any = partial(BlackwellConfig, ctas=ctas, cluster=cluster)
                    yield sized(*operands, acc, (128, columns), (1, 1), kind=kind)  # type: ignore[misc]  # of the class `kind`


def _shares_whole_atoms(columns: int, ctas: int, cluster: tuple[int, int]) -> bool:
    """Whether each block of those that share B loads whole swizzle atoms (8 rows) of it."""
    return columns // ctas % (8 * (cluster[0] // ctas)) == 0
