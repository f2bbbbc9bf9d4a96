"""The sizes of the kernels of sm_120: tiles whose sums fit registers, and whose stages fit 99 KiB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilewright.gemm.config import Major, Operand
from tilewright.gemm.family.hopper_sizes import most_stages
from tilewright.gemm.sm120_config import MOST_SUMS, PERMUTATION, Sm120Config
from tilewright.ir.target import architecture

SMEM = architecture("sm_120a").smem
ROWS = ((128, (2, 1)), (64, (1, 1)))
"""Rows of a tile, and the warpgroups that share them."""
COLUMNS = (128, 160, 96, 64, 32, 256, 192)
TURNS = ((64, 128), (128, 64), (64, 160), (64, 64))
"""Tiles whose two warpgroups take turns."""
DEPTHS = (1024, 512)
"""Bits of K in a stage: the first that leaves ``ENOUGH`` stages."""
ENOUGH, MOST_STAGES = 3, 8


def sm120_sizes(dtype: Any, out: Any, acc: Any) -> list[Sm120Config]:
    """The kernel's sizes for row-major A and D and, where ldmatrix transposes it, row-major B; the usual one first."""
    b_major = Major.MN if dtype.width == 16 else Major.K
    operands = Operand(dtype, Major.K, 128), Operand(dtype, b_major, 128), Operand(out, Major.K, 128)
    sizes = list(_sizes(operands, acc))
    return sizes + [replace(size, transposed=True) for size in sizes if size.tile[1] != size.tile[0]]


def _sizes(operands: tuple[Operand, Operand, Operand], acc: Any) -> Iterator[Sm120Config]:
    combinations = [((rows, columns), consumers, False) for rows, consumers in ROWS for columns in COLUMNS]
    combinations += [(tile, (2, 1), True) for tile in TURNS]
    for tile, consumers, turns in combinations:
        each = tile[0] * tile[1] // 128 // (1 if turns else consumers[0])
        if each <= MOST_SUMS[consumers[0]]:
            yield from staged(operands, acc, tile, consumers, turns)


def staged(
    operands: tuple[Operand, Operand, Operand], acc: Any, tile: tuple[int, int], consumers: tuple[int, int], turns: bool
) -> Iterator[Sm120Config]:
    """A tile with as many stages as fit, of the depth that leaves enough of them; nothing where no depth does."""
    parts = [n * PERMUTATION[1] for n in (2, 1) if tile[1] % (n * PERMUTATION[1]) == 0]
    for bits in DEPTHS:
        shape = *tile, bits // operands[0].dtype.width
        options = [
            Sm120Config(*operands, acc, shape, 2, consumers, pingpong=turns, epilogue_columns=part) for part in parts
        ]
        fits = [config for config in options if config.smem_bytes + config.stage_bytes * (ENOUGH - 2) <= SMEM]
        if fits:
            yield most_stages(fits, SMEM, MOST_STAGES)
            return
