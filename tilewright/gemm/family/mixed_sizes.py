"""The sizes of the Hopper kernel whose A is a prepared weight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilewright import Float32
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.family.hopper_sizes import CLUSTERS, COLUMNS, MOST_STAGES, PAIRS, SHARED_ELEMENTS, SLICES, SMEM
from tilewright.gemm.mixed_config import DEPTH, MixedHopperConfig

ROWS = {16: ((128, 2), (64, 1), (256, 2), (192, 3)), 8: ((128, 2), (64, 1), (192, 3))}
"""By the bits of the activations: rows of the weight in a tile, and the warpgroups that share them."""

ACCUMULATORS = {1: 128, 2: 128, 3: 64}
"""The most accumulators of a thread, by the number of warpgroups: its registers also hold the words of a stage, and A
of two groups of wgmma."""

TWICE = {1: 192, 2: 192, 3: 112}
TWICE_OFTEN = {1: 128, 2: 128, 3: 80}
"""The same for 8-bit activations: sums, and those that are added to them, once a stage or, by shorter groups of K, more
often. ptxas has more than one set of the latter then, and beyond this serialises wgmma for want of registers."""

LEAST_STAGES = 3
"""With two stages of 128 elements of K only one load is in flight while a stage is multiplied, which is too few."""


def mixed_sizes(
    kind: Any, dtype: Any, out: Any, scale_dtype: Any, scale_k: int = DEPTH, zeros: bool = False
) -> list[MixedHopperConfig]:
    """The sizes for a weight of numbers of type ``kind``, rows of ``dtype`` and a result of ``out``; the usual one
    first."""
    a, b, c = Operand(kind, Major.K, 128), Operand(dtype, Major.K, 128), Operand(out, Major.MN, 128)
    sizes: list[MixedHopperConfig] = []
    narrow = dtype.width == 8
    most = (TWICE if scale_k == DEPTH else TWICE_OFTEN) if narrow else ACCUMULATORS
    for rows, groups in ROWS[dtype.width]:
        for columns in COLUMNS:
            if (1 + narrow) * rows * columns // groups // 128 > most[groups]:
                continue
            tile, consumers = (rows, columns, DEPTH), (groups, 1)
            size = MixedHopperConfig(a, b, c, Float32, tile, 2, consumers, promote=int(narrow))
            size = replace(size, scale_dtype=scale_dtype, scale_k=scale_k, zeros=zeros)
            sizes += staged(size)
    sizes += [other for size in sizes for other in clustered(size)]
    return sorted(sizes, key=lambda size: (size.tile[:2] != (128, 128), size.cluster_size))


def staged(size: MixedHopperConfig) -> Iterator[MixedHopperConfig]:
    """The size with the stages and the parts of the epilogue that fit, if enough do."""
    options = []
    for part in (64, 32, 16, 8):
        if size.part[1] % part == 0:
            option = replace(size, epilogue_columns=part)
            stages = min(MOST_STAGES, 2 + (SMEM - option.smem_bytes) // option.stage_bytes)
            options += [replace(option, stages=stages)] if stages >= LEAST_STAGES else []
    yield from sorted(options, key=lambda option: (-min(option.stages, 4), -option.epilogue_columns))[:1]


def clustered(size: MixedHopperConfig) -> Iterator[MixedHopperConfig]:
    """The size with clusters of blocks that share the rows of B, and with clusters that share a tile's k tiles."""
    small = size.tile[0] * size.tile[1] <= SHARED_ELEMENTS
    for across, other in (*PAIRS, *(CLUSTERS if small else ())):
        if other == 1 and size.tile[1] % (8 * across) == 0:
            yield replace(size, cluster=(across, 1))
    for slices in SLICES if small else ():
        for part in (64, 32, 16, 8):
            if size.part[1] % (part * slices) == 0:
                yield replace(size, cluster_k=slices, epilogue_columns=part)
                break
