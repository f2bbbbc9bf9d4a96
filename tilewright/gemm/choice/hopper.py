"""The sizes of the Hopper kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.gemm.config import HopperConfig, Major, Operand

SMEM = 232448
"""Shared memory of a block on sm_90, bytes."""

TILES = (
    # tile M, N; consumers along M, N
    ((128, 256), (2, 1)), ((256, 128), (2, 1)), ((128, 320), (1, 2)), ((256, 192), (2, 1)), ((192, 192), (3, 1)),
    ((128, 192), (2, 1)), ((256, 160), (2, 1)), ((128, 160), (2, 1)), ((128, 128), (2, 1)), ((256, 64), (2, 1)),
    ((128, 64), (2, 1)), ((64, 256), (1, 1)), ((64, 128), (1, 1)), ((64, 64), (1, 1)), ((128, 32), (2, 1)),
    ((64, 32), (1, 1)), ((64, 16), (1, 1)), ((64, 8), (1, 1)),
)  # fmt: skip


def hopper_sizes(dtype: Any, out: Any, acc: Any) -> list[HopperConfig]:
    """The kernel's sizes for row-major A and D and, where wgmma reads it so, row-major B; the usual one first."""
    b_major = Major.MN if dtype.width == 16 else Major.K
    a, b, c = Operand(dtype, Major.K, 128), Operand(dtype, b_major, 128), Operand(out, Major.K, 128)
    sizes = [sized(a, b, c, acc, tile, consumers) for tile, consumers in TILES]
    return sizes + [replace(size, transposed=True) for size in sizes if size.tile[1] < size.tile[0]]


def sized(
    a: Operand, b: Operand, c: Operand, acc: Any, tile: tuple[int, int], consumers: tuple[int, int]
) -> HopperConfig:  # fmt: skip
    """As many stages of 128 bytes of K as fit, and the widest epilogue that leaves at least four (three for the
    largest tiles)."""
    (bM, bN), bK = tile, 1024 // a.dtype.width
    columns = bN // consumers[1]
    best = None
    for epilogue in (64, 32, 16, 8):
        if columns % epilogue:
            continue
        config = HopperConfig(a, b, c, acc, (bM, bN, bK), 2, consumers, epilogue_columns=epilogue)
        stages = min(8, 2 + (SMEM - config.smem_bytes) // config.stage_bytes)
        if best is None or stages > best.stages:
            best = HopperConfig(a, b, c, acc, (bM, bN, bK), stages, consumers, epilogue_columns=epilogue)
    assert best is not None, f"no epilogue for {tile}"
    return best
