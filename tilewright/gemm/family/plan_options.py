"""The options that the models of time compare: sizes of a kernel, each with the ways to share tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilewright.gemm.config import AnyConfig
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.lang.tools.hardware import clusters_at_once

Problem = tuple[int, int, int, int]  # M, N, K, L
Limits = tuple[int, int]  # multiprocessors of the GPU, shared memory of each in bytes
Vector = Any  # numpy float64, one element an option

INFEASIBLE_US = 1e30  # microseconds of an option that is not possible
EVEN_SHARES = 0  # parts of a tile in Stream-K's even shares
MIN_K_TILES = 2  # of a block that shares tiles


@dataclass(frozen=True)
class PlanOption:
    """One size of a kernel, and into how many ``parts`` each tile is cut.

    1: each block computes whole tiles. More: split-K. ``EVEN_SHARES``: Stream-K, which deals out evenly the tiles after
    the last full wave but one (all tiles of less than two waves). ``shared_reduction``: each tile is cut into as many
    equal parts as the GPU has workers for, at least two, and each of its blocks adds up the sums of one part of it."""

    config: AnyConfig
    parts: int
    shared_reduction: bool = False

    def plan(self, problem: Problem, limits: Limits) -> StreamK | None:
        """The numbers of the shares, of the tiles of all products of a batch, laid end to end; None where each block
        makes a tile of its own."""
        if self.parts == 1:
            return None
        m, n, k, batch = problem
        if self.config.transposed:
            m, n = n, m
        bM, bN, bK, size, fragments = self.numbers
        workers, occupancy = clusters_at_once(limits[0], size), self.config.blocks_at_once(limits[1])
        down, across, k_tiles = -(-m // bM), -(-n // bN), -(-k // bK)
        tiles = down * across * batch
        shared, blocks = tiles, tiles * self.parts
        if self.parts == EVEN_SHARES:
            shared = tiles - max(tiles // workers - 1, 0) * workers
            blocks = min(workers, shared * k_tiles // MIN_K_TILES)
        if self.shared_reduction:  # shares that do not end where tiles do cost a second exchange: 5 us
            shared, blocks = tiles, tiles * min(workers // tiles, k_tiles // MIN_K_TILES)
        if not blocks or tiles % workers == 0 and self.parts == EVEN_SHARES:
            return None
        if shared > tiles:
            shared = tiles
        return StreamK.dealt(
            (down, across, batch),
            k_tiles,
            workers,
            occupancy,
            fragments,
            workers,
            shared,
            blocks,
            self.shared_reduction,
        )

    @cached_property
    def numbers(self) -> tuple[int, int, int, int, int]:
        """The tile of a cluster, its blocks, and the parts of a separate reduction."""
        return *self.config.cluster_tile, self.config.cluster_size, self.config.fragments


def plan_options(
    configs: Sequence[AnyConfig],
    whole: Sequence[bool],
    shares: Sequence[bool],
    parts: Sequence[int],
    shared_reduction: Sequence[AnyConfig] = (),
) -> list[PlanOption]:
    """All options of a kernel: ``whole`` says of each size whether it may give each tile to a block, ``shares`` whether
    blocks may share tiles, in equal ``parts`` or evenly. Those of whole tiles come first, among them those whose
    warpgroups take turns last; then clusters that share a tile's k tiles; then Stream-K's, of which those whose blocks
    add up together are last."""
    options = [PlanOption(config, 1) for config, may in zip(configs, whole, strict=True) if may]
    options.sort(key=lambda option: (option.config.cluster_k > 1, option.config.pingpong))
    sharing = [config for config, may in zip(configs, shares, strict=True) if may]
    options += [PlanOption(config, number) for number in (*parts, EVEN_SHARES) for config in sharing]
    return options + [PlanOption(config, EVEN_SHARES, True) for config in shared_reduction]


def kernel_extents(config: AnyConfig, extents: Sequence[int]) -> tuple[int, ...]:
    """Extents along the problem's M and N (and whatever follows) in the order of the kernel's, and back."""
    m, n, *rest = extents
    return (n, m, *rest) if config.transposed else (m, n, *rest)
