"""The sizes of the Hopper kernels: every tile that wgmma and the registers allow, within reason.

Kernels are compiled at run time, so a size costs nothing before it is chosen. wgmma takes columns in steps of 8; here
they go in steps of 16, so that parts of the epilogue are wide enough for shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from tilewright import Float32
from tilewright.gemm.config import HopperConfig, Major, Operand
from tilewright.ir.target import architecture

SMEM = architecture("sm_90a").smem

ROWS = ((64, 1), (128, 2), (192, 3), (256, 2))
"""Rows of a tile, and the warpgroups that share them."""

COLUMNS = (8, 16, 24, 32, *range(48, 257, 16))
ACCUMULATORS = {1: 128, 2: 192, 3: 96}
"""Accumulators of one thread, by the number of warpgroups that multiply: the registers also hold addresses."""

SPLIT_COLUMNS = ((128, 320),)
"""Tiles whose two warpgroups share the columns: 160 each."""

PAIRS = ((2, 1), (1, 2))
CLUSTERS = ((4, 1), (1, 4), (2, 2), (2, 4), (4, 2))
"""Clusters (m, n) whose blocks share operands. The large ones are for small tiles, which move most bytes a FLOP."""

SHARED_ELEMENTS = 160 * 128
"""Elements of the largest tile for ``CLUSTERS``, and for the clusters that share k tiles."""

SLICES = (2, 4, 8)
"""Blocks of a cluster that share a tile's k tiles."""

TURNS_ROWS, TURNS_COLUMNS = 128, range(96, 193, 16)
"""Sizes of tiles whose two warpgroups take turns: one warpgroup holds all sums of its tile in registers."""

REGISTERS = 208
"""Registers of a thread for the sums of such a tile and a part of D: ptxas spills beyond that."""

PROMOTED = {1: 192, 2: 192, 3: 128}
"""Registers of a thread for its sums and those that are promoted, by the number of warpgroups that multiply."""

FIRST_PROMOTED = (128, 128, 128)

FIRST = (128, 256)
MOST_STAGES = 16

Config = TypeVar("Config", bound=HopperConfig)


def hopper_sizes(dtype: Any, out: Any, acc: Any, kind: type[HopperConfig] = HopperConfig) -> list[HopperConfig]:
    """The kernel's sizes for row-major A and D and, where wgmma reads it so, row-major B; the usual one first. ``kind``
    is the class of the configurations."""
    b_major = Major.MN if dtype.width == 16 else Major.K
    a, b, c = Operand(dtype, Major.K, 128), Operand(dtype, b_major, 128), Operand(out, Major.K, 128)
    sizes = [sized(a, b, c, acc, tile, consumers, kind=kind) for tile, consumers in tiles()]
    sizes += [other for size in sizes for other in clustered(size)]
    sizes += [
        other
        for columns in TURNS_COLUMNS
        for other in in_turns(sized(a, b, c, acc, (TURNS_ROWS, columns), (2, 1), True, kind))
    ]
    return sizes + [replace(size, transposed=True) for size in sizes if size.tile[0] != size.tile[1]]


def promoted_sizes(dtype: Any, out: Any) -> list[HopperConfig]:
    """The sizes that add the sums of each k tile to others in registers: 8-bit floats keep few bits of their sums in
    the tensor cores. A thread holds the sums of its part of a tile, and once more those of 64 rows."""
    sizes = [size for size in hopper_sizes(dtype, out, Float32) if not size.pingpong]
    every = [replace(size, promote=1) for size in sizes]
    promoted = [size for size in every if size.promoted_registers <= PROMOTED[size.warpgroups]]
    return sorted(promoted, key=lambda size: size != replace(size, tile=FIRST_PROMOTED, cluster=(1, 1), cluster_k=1))


def clustered(size: HopperConfig) -> Iterator[HopperConfig]:
    """The size with clusters of blocks that share operands, each loading a part of whole swizzle atoms (8 rows), and
    with clusters that share a tile's k tiles."""
    bM, bN, _ = size.tile
    small = bM * bN <= SHARED_ELEMENTS
    for cM, cN in (*PAIRS, *(CLUSTERS if small else ())):
        if bM % (8 * cN) == 0 and bN % (8 * cM) == 0:
            yield replace(size, cluster=(cM, cN))
    for slices in SLICES if small else ():
        for part in (64, 32, 16, 8):
            if size.part[1] % (part * slices) == 0:
                yield replace(size, cluster_k=slices, epilogue_columns=part)
                break


def in_turns(size: HopperConfig) -> Iterator[HopperConfig]:
    """The size whose warpgroups take turns, alone and with pairs of blocks that share an operand."""
    yield size
    for cluster in PAIRS:
        yield replace(size, cluster=cluster)


def tiles() -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """(tile, consumers)"""
    candidates = [
        ((rows, columns), (groups, 1))
        for rows, groups in ROWS
        for columns in COLUMNS
        if rows * columns // groups // 128 <= ACCUMULATORS[groups]
    ]
    candidates += [(tile, (1, 2)) for tile in SPLIT_COLUMNS]
    yield from sorted(candidates, key=lambda one: one[0] != FIRST)


def sized(
    a: Operand,
    b: Operand,
    c: Operand,
    acc: Any,
    tile: tuple[int, int],
    consumers: tuple[int, int],
    pingpong: bool = False,
    kind: type[HopperConfig] = HopperConfig,
) -> HopperConfig:
    """A size with as many stages of 128 bytes of K as fit, and the parts of the epilogue that leave room for most."""
    (bM, bN), bK = tile, 1024 // a.dtype.width
    columns = bN if pingpong else bN // consumers[1]
    options = [
        kind(a, b, c, acc, (bM, bN, bK), 2, consumers, pingpong=pingpong, epilogue_columns=part)
        for part in (64, 32, 16, 8)
        if columns % part == 0
    ]
    if pingpong:
        options = [c for c in options if bM * bN + bM * c.epilogue_columns * c.c.dtype.width // 32 <= 128 * REGISTERS]
    return most_stages(options, SMEM, MOST_STAGES)


def most_stages(options: list[Config], smem: int, most: int) -> Config:
    """The one of ``options`` that leaves room for most stages (four are enough), with as many stages as fit into
    ``smem`` bytes, at most ``most``. The options have two stages and differ in the parts of the epilogue."""
    filled = [
        replace(config, stages=min(most, 2 + (smem - config.smem_bytes) // config.stage_bytes)) for config in options
    ]
    return max(filled, key=lambda config: (min(config.stages, 4), config.epilogue_columns))
