"""What a consumer warpgroup wants for the sums of an output tile before they are complete, and does with them: write
them, add them to D in turn, hand them to the worker that finishes the tile, or exchange them within the cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tilewright as cutlass
from tilewright import cute, pipeline
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.epilogue.coming import ComingVectors
from tilewright.gemm.epilogue.functions import EpilogueFunction, of_k_partition
from tilewright.gemm.epilogue.scale_stages import ScaleStages, StagedScales
from tilewright.gemm.epilogue.scales import TileScales, block_scales
from tilewright.gemm.epilogue.tile import EpilogueTile, no_source
from tilewright.gemm.epilogue.tma_store import TmaStoreEpilogue
from tilewright.gemm.schedule.fixup import Fixup, SumPartition
from tilewright.gemm.schedule.partials import Partials
from tilewright.gemm.schedule.semaphore import SerialSplitK
from tilewright.gemm.schedule.shared import SharedTiles


@dataclass(frozen=True)
class Output:
    """Where and how the tiles of D are written. ``to_D``: D's TMA atom and tensor, and those of the second outputs;
    ``mC``, ``mD``: the matrices C and D; ``sD``: the epilogue's buffers, of all warpgroups or of one."""

    epilogue_mma: cute.TiledMma
    to_D: tuple
    mC: cute.Tensor
    mD: Any
    sD: cute.Tensor
    function: EpilogueFunction


class TileWriter:
    """The part of a warp-specialised kernel that follows its main loop. ``decomposition.sums`` says how the sums of a
    tile become D. The kernel that inherits this class makes the epilogue and the memory for partial sums."""

    config: HopperConfig
    epilogue: TmaStoreEpilogue
    partials: Partials
    fixup: Fixup
    together: pipeline.NamedBarrier
    """A barrier of all consumer warpgroups of the block."""

    def ahead_of_tile(
        self,
        tiled_mma: cute.TiledMma,
        tD: cute.Tensor,
        function: EpilogueFunction,
        stages: ScaleStages | None,
        part: tuple,
        at: tuple,
        k_begin: Any,
        k_end: Any,
    ) -> tuple[StagedScales | TileScales | None, ComingVectors]:
        """What the epilogue ``function`` needs in or during the main loop of a consumer warpgroup's part of a tile: the
        block scales (None if it has none), and the vectors that can be loaded early."""
        extent = (cute.size(tD, mode=[0]), cute.size(tD, mode=[1]))
        first = tuple((at[mode] * self.config.split[mode] + part[mode]) * self.config.part[mode] for mode in range(2))
        coming, scales = self.epilogue.coming(function, first, extent), block_scales(function)
        if scales is None:
            return None, coming
        if stages is None:
            cD = self.part_of_tile(cute.make_identity_tensor(extent), at, part)
            return TileScales(scales, self.held_part(tiled_mma, cD, extent), k_begin, k_end), coming
        return self.staged_scales(tiled_mma, stages, part), coming

    def staged_scales(self, tiled_mma: cute.TiledMma, stages: ScaleStages, part: tuple) -> StagedScales:
        """The scales of a warpgroup's part of the block's tile."""
        extent = self.config.tile[:2]
        inside = cute.local_tile(cute.make_identity_tensor(extent), self.config.part, part)
        return stages.of_part(replace(self.held_part(tiled_mma, inside, extent), inside=True))

    def held_part(self, tiled_mma: cute.TiledMma, cD: cute.Tensor, extent: tuple) -> EpilogueTile:
        """The calling thread's accumulators of a warpgroup's part of a tile, whose coordinates are ``cD``."""
        tidx = cute.arch.thread_idx()[0] % 128
        tCcD = tiled_mma.get_slice(tidx).partition_C(cD)  # ((2, 2, part's columns / 8), MMA_M, 1)
        return EpilogueTile(tCcD, extent, no_source, self.config.transposed)

    @cute.jit
    def finish(
        self,
        output: Output,
        decomposition: Any,
        worker: Any,
        k_tiles: Any,
        scratch: Any,
        rank: Any,
        mine: Any,
        part: tuple,
        acc: cute.Tensor,
        tile: Any,
        at: tuple,
        k_begin: Any,
        k_end: Any,
        coming: ComingVectors | None = None,
    ) -> None:
        """Write warpgroup ``mine``'s sums of ``tile``, whose coordinates are ``at`` (tile_m, tile_n, batch), or hand
        them to the worker that finishes the tile. ``worker``: the block's, or that of its cluster. ``coming``: vectors
        of the function that were loaded early."""
        sD = output.sD[None, None, None, mine]
        output, function = replace(output, sD=sD), output.function
        tidx = cute.arch.thread_idx()[0] - 128 * self.config.producers
        if cutlass.const_expr(decomposition.sums == "kept"):  # the sums of a slice of K are an output of their own
            at = (at[0], at[1], cute.arch.block_idx()[1])
        # Where the worker's first tile is known, nothing reads the epilogue's buffers when it is written.
        begins = tile == worker if decomposition.first(k_tiles) is not None else False
        how = {"coming": coming, "begins": begins}
        write = partial(self.write, output, function, mine, part, at, **how)
        if cutlass.const_expr(self.config.cluster_k > 1):
            self.exchange(write, tidx, acc, scratch, rank)
        elif cutlass.const_expr(decomposition.sums == "in_turn"):
            first, others = partial(self.write, output), partial(self.write, replace(output, mC=output.mD))
            self.add_in_turn(first, others, tidx, acc, function, decomposition, mine, part, tile, at)
        elif cutlass.const_expr(decomposition.sums != "exchanged"):
            write(self.epilogue.parts(acc))
        elif cutlass.const_expr(decomposition.handed_over):
            if (k_begin > 0) | (k_end < k_tiles):
                self.fixup.give(decomposition, tile, k_begin, tidx, acc)
            else:
                write(self.epilogue.parts(acc))
        elif k_end < k_tiles:
            # All warpgroups of the block take the same branch, and exchange sums thread by thread.
            self.fixup.give(decomposition, tile, k_begin, tidx, acc)
        else:
            if k_begin > 0:
                self.fixup.take(decomposition, tile, tidx, acc)
            write(self.epilogue.parts(acc))

    @cute.jit
    def add_in_turn(
        self,
        first: Any,
        others: Any,
        tidx: Any,
        acc: cute.Tensor,
        function: Any,
        decomposition: SerialSplitK,
        mine: Any,
        part: tuple,
        tile: Any,
        at: tuple,
    ) -> None:
        """Serial split-K: add this block's sums to D after the block of the previous slice (the one at the same place
        of its cluster) has done so."""
        tile = self.fixup.place(tile)
        turn, turns = decomposition.turn(), decomposition.slices
        sync = self.together.arrive_and_wait
        decomposition.wait(tile, tidx, sync)
        if turn == 0:
            first(of_k_partition(function, 0, turns), mine, part, at, self.epilogue.parts(acc))
        else:
            others(of_k_partition(function, turn, turns), mine, part, at, self.epilogue.parts(acc))
        self.epilogue.written(cute.arch.thread_idx()[0] % 128)
        decomposition.release(tile, tidx, sync)

    @cute.jit
    def reduce(
        self,
        output: Output,
        where: Any,
        decomposition: Any,
        scratch: Any,
        mine: Any,
    ) -> None:
        """Add up warpgroup ``mine``'s part of the block's share of the sums that were handed over, if the plan has any.
        ``scratch`` is the shared memory of the stages, which are not needed any more."""
        if cutlass.const_expr(not isinstance(decomposition, SharedTiles) or not decomposition.handed_over):
            return
        config = self.config
        tidx = cute.arch.thread_idx()[0] - 128 * config.producers
        sD = output.sD[None, None, None, mine]
        write = partial(self.write, replace(output, sD=sD), output.function, mine)
        sums = SumPartition.of(
            self.partials, 128, config.parts, self.epilogue.apart, scratch, config.stages * config.stage_bytes
        )
        self.fixup.reduce(decomposition, tidx, sums, partial(self.write_reduced, write, where))

    def write_reduced(self, write: Any, where: Any, tile: Any, warpgroup: Any, index: Any, sums: cute.Tensor) -> None:
        """Write one part of a tile whose sums have been added up: part ``index`` of ``warpgroup``'s epilogue."""
        part = (warpgroup // self.config.split[1], warpgroup % self.config.split[1])
        write(part, where(tile), [(index, self.epilogue.of_part(sums.iterator, self.epilogue.run_length))])

    @cute.jit
    def exchange(self, write: Any, tidx: Any, acc: cute.Tensor, scratch: Any, rank: Any) -> None:
        """``cluster_k``: each block of the cluster adds up and writes its share of the epilogue's parts. ``scratch`` is
        the shared memory of the stages, which are not needed any more."""
        config = self.config
        self.together.arrive_and_wait()  # the wgmma of all warpgroups have read the stages
        self.partials.store(scratch, tidx, acc)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        parts = []
        for turn in cutlass.range_constexpr(config.parts // config.cluster_k):
            index = turn * config.cluster_k + rank
            sums = self.partials.add_up(
                partial(cute.arch.mapa, scratch),
                config.cluster_k,
                tidx,
                index,
                self.epilogue.run_length,
                self.epilogue.apart,
            )
            parts.append((index, self.epilogue.of_part(sums.iterator, self.epilogue.run_length)))
        cute.arch.cluster_arrive()  # a block stays until the others have read its sums
        write(parts)
        cute.arch.cluster_wait()

    @cute.jit
    def write(
        self,
        output: Output,
        function: EpilogueFunction,
        mine: Any,
        part: tuple,
        at: tuple,
        parts: list,
        coming: ComingVectors | None = None,
        begins: Any = False,
    ) -> None:
        """Write a consumer warpgroup's ``parts`` (pairs of a part's number and its sums) of the output tile ``at`` by
        the epilogue ``function``. ``begins``: they are the first that it writes."""
        batch = at[2]
        tma_D, tD, outputs = output.to_D
        extent = (cute.size(tD, mode=[0]), cute.size(tD, mode=[1]))
        gD, gC, cD = (
            self.part_of_tile(tensor, at, part)
            for tensor in (tD[None, None, batch], output.mC[None, None, batch], cute.make_identity_tensor(extent))
        )  # the warpgroup's part: (rows, columns)
        tidx = cute.arch.thread_idx()[0] % 128
        ours = [None if pair is None else (pair[0], self.part_of_tile(pair[1], at, part)) for pair in outputs]
        self.epilogue.run(
            output.epilogue_mma,
            tidx,
            parts,
            tma_D,
            gD,
            gC,
            cD,
            output.sD,
            extent,
            function,
            self.barrier(mine),
            outputs=ours,
            coming=coming,
            begins=begins,
        )

    def barrier(self, mine: Any) -> pipeline.NamedBarrier:
        """The barrier of the threads of consumer warpgroup ``mine``."""
        return pipeline.NamedBarrier(barrier_id=1 + mine, num_threads=128)

    def part_of_tile(self, tensor: cute.Tensor, tile: tuple, part: tuple) -> cute.Tensor:
        """A consumer warpgroup's part (rows, columns) of an output tile of an (M, N) tensor."""
        m, n, _ = tile
        at = m * self.config.split[0] + part[0], n * self.config.split[1] + part[1]
        return cute.local_tile(tensor, self.config.part, at)
