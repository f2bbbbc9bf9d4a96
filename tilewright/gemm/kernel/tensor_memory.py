"""The persistent, warp-specialised GEMM of sm_100: a warp that loads, one that multiplies, and four that write.

Schedule, ring of stages, epilogue functions and stores are those of the Hopper kernel (``warp_specialized.py``). What
differs is who multiplies and where the sums are: one warp issues tcgen05.mma, for its block or for a pair, and the sums
of two tiles have their place in tensor memory: while one is written, the next is multiplied.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import tilewright as cutlass
from tilewright import cute, pipeline, utils
from tilewright.errors import ConstraintError
from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.epilogue.scales import BLOCK, TileScales, block_scales
from tilewright.gemm.epilogue.tensor_memory import TensorMemoryEpilogue, TensorMemoryPartials
from tilewright.gemm.kernel.block_work import BlockWork
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tcgen05 import TensorMemoryMainloop, TensorMemoryMath
from tilewright.gemm.schedule.partials import Partials

MOST_SCALED, SCALED_AT_ONCE = 128, 32
"""Columns of a tile whose sums a thread holds beside those of a k tile, of which so many are loaded at once: ptxas
spills where it loads further ones before these have been added."""


def holds_block_scales(config: BlackwellConfig) -> bool:
    """Whether a size can multiply the sums of each k tile by scales of blocks: they are of a block of K, a part of a
    tile is within one block of columns, and a thread has registers for a row's sums."""
    return config.tile[2] == BLOCK and config.tile[1] <= MOST_SCALED and not config.transposed


class TensorMemoryGemm(WarpSpecializedGemm):
    """As :class:`WarpSpecializedGemm`, on sm_100a and its like."""

    LEAST_BLOCKS: ClassVar[int | None] = 1
    """Left to itself, ptxas spills some registers of some sizes so that a third block would fit."""

    SHARED_ALONG: ClassVar[tuple[int, int]] = (2, 1)  # of ``vmnk``

    config: BlackwellConfig
    math: TensorMemoryMath
    mainloop: TensorMemoryMainloop
    epilogue: TensorMemoryEpilogue

    def make_math(self) -> TensorMemoryMath:
        return TensorMemoryMath(self.config)

    def make_mainloop(self) -> TensorMemoryMainloop:
        return TensorMemoryMainloop(self.config, self.make_math())

    def make_epilogue(self) -> TensorMemoryEpilogue:
        return TensorMemoryEpilogue(self.config)

    def check_block_scales(self, function: EpilogueFunction) -> None:
        if block_scales(function) is not None and not holds_block_scales(self.config):
            raise ConstraintError(
                f"scales of blocks are applied to the sums of {BLOCK} elements of K, which a thread adds up in "
                f"registers: take a size of at most {MOST_SCALED} columns that is not transposed, not {self.config}"
            )

    def make_partials(self) -> Partials:
        config = self.config
        return TensorMemoryPartials(128, config.tile[1], config.acc_dtype, self.make_epilogue())

    # -- clusters ------------------------------------------------------------------------------------------------------

    @property
    def vmnk(self) -> Any:
        """The blocks of a cluster: (those of one MMA, M, N, K)."""
        cM, cN = self.config.cluster
        return cute.make_layout((self.config.ctas, cM // self.config.ctas, cN, 1))

    def loads(self, operands: tuple, stage_layouts: tuple, cluster: tuple[int, int] = (1, 1)) -> tuple:
        """A pair does not share B, of which each block has half."""
        return super().loads(operands, stage_layouts, (cluster[0] // self.config.ctas, cluster[1]))

    def operands(self, loads: tuple, stages: tuple, cluster_layout: Any, place: tuple) -> tuple:
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        return super().operands(loads, stages, self.vmnk, self.vmnk.get_flat_coord(rank))

    def ring(self, stages: tuple) -> Any:
        config = self.config
        along_m, along_n = config.cluster[0] // config.ctas, config.cluster[1]
        return pipeline.PipelineTmaUmma.create(
            num_stages=config.stages,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, along_m + along_n - 1),
            tx_count=config.stage_bytes * config.ctas,
            cta_layout_vmnk=self.vmnk,
            defer_sync=True,
        )

    def places_tiles(self, warp: Any, warpgroup: Any) -> Any:
        """All: warp 1, which multiplies, asks for the place of a tile where its factors depend on it."""
        return True

    def fragments(self, tiled_mma: cute.TiledMma, stages: tuple, part: tuple) -> tuple[Any, Any]:
        """The descriptors of the stages of A and B: (1, 1, MMA_K, stages). A block's part of an MMA of a pair is what
        an MMA of its own would have of half the rows and columns."""
        own = self.math.tiled_mma_of_block().get_slice(0)
        a, b = (of_operand[None, None, 0, None] for of_operand in stages)  # (rows, bK, stages)
        return tiled_mma.make_fragment_A(own.partition_A(a)), tiled_mma.make_fragment_B(own.partition_B(b))

    # -- roles ---------------------------------------------------------------------------------------------------------

    @cute.jit
    def roles(self, warp: Any, warpgroup: Any, work: BlockWork) -> None:
        """Warp 0 loads, warp 1 of a leader multiplies, the second warpgroup writes."""
        config = self.config
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        place = utils.TmemAllocator(
            smem.allocate_array(cutlass.Int32, 1),
            pipeline.NamedBarrier(5, config.threads),
            is_two_cta=config.ctas == 2,
            two_cta_tmem_dealloc_mbar_ptr=smem.allocate_array(cutlass.Int64, 1),
        )
        sums = pipeline.PipelineUmmaAsync.create(
            num_stages=config.places,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128 * config.ctas),
            cta_layout_vmnk=self.vmnk,
            defer_sync=True,
        )
        pipeline.pipeline_init_arrive(cluster_shape_mn=config.cluster, is_relaxed=True)
        pipeline.pipeline_init_wait(cluster_shape_mn=config.cluster)
        place.allocate(config.columns)
        place.wait_for_alloc()
        place.relinquish_alloc_permit()
        base = place.retrieve_ptr(config.acc_dtype)
        shape = work.tiled_mma.partition_shape_C((config.tile[0] * config.ctas, config.tile[1]))
        empty = work.tiled_mma.make_fragment_C(shape).layout
        layout = cute.make_layout(*[empty[i] for i in range(3)], cute.make_layout(config.places, stride=config.tile[1]))
        tiles = cute.make_tensor(base, layout)  # (MMA, 1, 1, places)
        if warp == 0:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, config.stages)
            load = partial(self.load_half, work.ring, work.operands(), rank % config.ctas, work.where)
            state = work.walk(load, state, draws=True)
            work.loaded()
            work.ring.producer_tail(state)
        elif warp == 1:
            if rank % config.ctas == 0:
                states = (
                    pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, config.stages),
                    pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, config.places),
                )
                into = self.multiply_apart if work.scaled else self.multiply_into
                multiply = partial(into, work.staged_mma((0, 0)), sums, tiles, work.where)
                _, last = work.walk(multiply, states)
                sums.producer_tail(last)
        elif warpgroup == 1:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, config.places)
            write = partial(self.write_scaled, work.tile_scales) if work.scaled else self.write_tile
            work.walk(partial(write, sums, tiles, work.where, partial(work.finish, 0, (0, 0))), state)
            work.reduce(0)  # the stages are free: all MMAs of this block's tiles have been waited for
            self.epilogue.finish(cute.arch.thread_idx()[0] % 128)
        pipeline.NamedBarrier(5, config.threads).arrive_and_wait()
        place.free(base)

    @cute.jit
    def load_half(
        self, ring: Any, operands: tuple, v: Any, where: Any, tile: Any, k_begin: Any, k_end: Any, state: Any
    ) -> Any:
        """The loads of one output tile."""
        m, n, batch = where(tile)
        return self.mainloop.load_pair(operands, ring, state, v, m, n, batch, k_begin, k_end)

    @cute.jit
    def multiply_into(
        self,
        mma: StagedMma,
        sums: Any,
        tiles: cute.Tensor,
        where: Any,
        tile: Any,
        k_begin: Any,
        k_end: Any,
        states: tuple,
    ) -> tuple:
        """One output tile's sums, into the place that is free."""
        state, place = states
        sums.producer_acquire(place)
        into = tiles[None, None, None, place.index]
        state = self.mainloop.multiply_tile(mma, into, state, k_end - k_begin)
        sums.producer_commit(place)
        place.advance()
        return state, place

    @property
    def pieces(self) -> TensorMemoryEpilogue:
        """What loads the sums of a k tile that are added to others."""
        columns = min(self.config.epilogue_columns, SCALED_AT_ONCE)
        return replace(self.epilogue, config=replace(self.config, epilogue_columns=columns))

    @cute.jit
    def multiply_apart(
        self,
        mma: StagedMma,
        sums: Any,
        tiles: cute.Tensor,
        where: Any,
        tile: Any,
        k_begin: Any,
        k_end: Any,
        states: tuple,
    ) -> tuple:
        """The sums of each k tile of an output tile, one after the other into the place that is free."""
        state, place = states
        for _ in cutlass.range(k_end - k_begin, unroll=1):
            sums.producer_acquire(place)
            state = self.mainloop.multiply_tile(mma, tiles[None, None, None, place.index], state, 1)
            sums.producer_commit(place)
            place.advance()
        return state, place

    @cute.jit
    def write_scaled(
        self,
        scales_of: Any,
        sums: Any,
        tiles: cute.Tensor,
        where: Any,
        finish: Any,
        tile: Any,
        k_begin: Any,
        k_end: Any,
        state: Any,
    ) -> Any:
        """Write one output tile: the sums of its k tiles, multiplied by their scales, are added up in registers, which
        take the place of those of the last one."""
        at = where(tile)
        scales, k_tiles = scales_of(tile, at, k_begin, k_end), k_end - k_begin
        total = [self.pieces.room() for _ in scales]
        for registers in total:
            registers.fill(0)
        for i in cutlass.range(k_tiles - 1, unroll=1):
            self.add_scaled(total, scales, sums, tiles, state, i)
            sums.consumer_release(state)
            state.advance()
        last = self.add_scaled(total, scales, sums, tiles, state, k_tiles - 1)
        for registers, (_, part) in zip(total, self.pieces.parts(last), strict=True):
            self.pieces.store_back(registers, part)
        finish(last, tile, at, k_begin, k_end)
        sums.consumer_release(state)
        state.advance()
        return state

    def add_scaled(self, total: list, scales: list, sums: Any, tiles: cute.Tensor, state: Any, i: Any) -> cute.Tensor:
        """total += the sums of k tile ``i``, which are waited for, by their scales; gives where they are."""
        rows, first = scales[0].load(i)
        loaded = [(rows, first), *((rows, one.load_columns(i)) for one in scales[1:])]
        sums.consumer_wait(state)
        here = tiles[None, None, None, state.index]
        of_part = partial(self.pieces.of_part, apart=self.pieces.apart)
        for registers, (_, part), one, own in zip(total, self.pieces.parts(here), scales, loaded, strict=True):
            held, short = of_part(registers.iterator), of_part(self.pieces.loaded(part).iterator)
            held.store(held.load() + one.applied_to_all(short.load(), own))
        return here

    def ahead_of_tile(  # type: ignore[override]  # what the warps that write want beside the sums
        self,
        tiled_mma: cute.TiledMma,
        tD: cute.Tensor,
        function: EpilogueFunction,
        stages: None,
        part: tuple,
        at: tuple,
        k_begin: Any,
        k_end: Any,
    ) -> tuple[Any, None]:
        """The scales of blocks for each part of a tile that is loaded from tensor memory."""
        extent = (cute.size(tD, mode=[0]), cute.size(tD, mode=[1]))
        scales, whole = block_scales(function), cute.make_identity_tensor(extent)
        return self.scales_of_parts(scales, whole, at, extent, k_begin, k_end), None

    def scales_of_parts(
        self, scales: Any, whole: Any, at: tuple, extent: tuple, k_begin: Any, k_end: Any
    ) -> list[TileScales]:
        """The ``scales`` of the parts of tile ``at`` of the coordinates ``whole``."""
        config = self.pieces.config
        shape, mma = (config.tile[0], config.epilogue_columns), replace(self.math, config=config).epilogue_mma()
        parts = []
        for i in range(config.parts):
            cD = cute.local_tile(whole, shape, (at[0], at[1] * config.parts + i))
            parts.append(TileScales(scales, self.held_part(mma, cD, extent), k_begin, k_end))
        return parts

    @cute.jit
    def write_tile(
        self, sums: Any, tiles: cute.Tensor, where: Any, finish: Any, tile: Any, k_begin: Any, k_end: Any, state: Any
    ) -> Any:
        """Write one output tile, when its sums are there."""
        at = where(tile)
        sums.consumer_wait(state)
        finish(tiles[None, None, None, state.index], tile, at, k_begin, k_end)
        sums.consumer_release(state)
        state.advance()
        return state
