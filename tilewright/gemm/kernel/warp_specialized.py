"""The persistent, warp-specialised Hopper GEMM: a producer warp, consumer warpgroups, a schedule, an epilogue.

One warp of warpgroup 0 loads (the producer); the other warpgroups multiply and write (the consumers). They synchronise
only through the mbarriers of the ring of stages, so the loads of the next tile overlap the epilogue of this one.

With ``config.pingpong`` there are two consumer warpgroups, and each computes every other tile as a whole. They take
turns at the main loop and at the epilogue: while one multiplies, the other writes its tile. A consumer's pipeline state
skips the stages that hold the tiles of the other consumer.

Read on in ``launch`` (host), then ``kernel`` (set-up), ``roles`` (what each warp does), ``load`` and ``multiply``.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import tilewright as cutlass
from tilewright import Int32, cute, pipeline, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.epilogue.scale_stages import LOADERS, ScaleStages
from tilewright.gemm.epilogue.scales import block_scales
from tilewright.gemm.epilogue.tma_store import TmaStoreEpilogue
from tilewright.gemm.kernel.block_work import BlockWork
from tilewright.gemm.kernel.decomposition_check import check_block_scales, check_decomposition
from tilewright.gemm.kernel.overlap import let_next_begin, wait_for_earlier
from tilewright.gemm.kernel.tile_writer import Output, TileWriter
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tma import TmaMainloop, TmaOperand
from tilewright.gemm.mainloop.wgmma import WgmmaMath
from tilewright.gemm.schedule.fixup import Fixup
from tilewright.gemm.schedule.launch_arguments import Decomposition
from tilewright.gemm.schedule.partials import Partials
from tilewright.gemm.schedule.raster import raster_of
from tilewright.gemm.tiles import aligned, allocate_swizzled, swizzled_tensor
from tilewright.lang.tensors.select import select

FEW_K_TILES = 60
"""Below this number of k tiles a block is over so soon that it pays to let the next kernel begin early, even where its
blocks then share multiprocessors unevenly (measured)."""


class WarpSpecializedGemm(TileWriter):
    """D = f(A @ B, C) for an epilogue function f, A (M, K, L), B (N, K, L), C and D (M, N, L).

    Extents and strides are run-time numbers. TMA needs strides that are multiples of 16 bytes; K > 0. ``config`` fixes
    the rest.
    """

    LOADED: tuple[int, ...] = (0, 1)
    """For each operand that is loaded, A and B first: 0 if its boxes are chosen by the tile's row index, 1 if by the
    tile's column index."""

    SHARED_ALONG: ClassVar[tuple[int, int]] = (1, 0)
    """The mode of the cluster's layout along which blocks share an operand: first for operands chosen by the row index
    (A is shared along N), then for those chosen by the column index (B along M)."""

    LEAST_BLOCKS: ClassVar[int | None] = None
    """The number of blocks per multiprocessor for which ptxas must leave registers; None: no limit."""

    def __init__(self, config: HopperConfig) -> None:
        config.check()
        self.config = config
        self.math = self.make_math()
        self.mainloop = self.make_mainloop()
        self.epilogue = self.make_epilogue()
        self.raster = raster_of(config)
        threads = 128 * config.warpgroups
        self.together = pipeline.NamedBarrier(barrier_id=4, num_threads=threads)
        self.partials = self.make_partials()
        self.fixup = Fixup(self.partials, self.together.arrive_and_wait, config.cluster_size)

    def make_math(self) -> WgmmaMath:
        return WgmmaMath(self.config)

    def make_mainloop(self) -> TmaMainloop:
        return TmaMainloop(self.config, self.math)

    def make_epilogue(self) -> TmaStoreEpilogue:
        return TmaStoreEpilogue(self.config)

    def make_partials(self) -> Partials:
        config = self.config
        return Partials(128 * config.warpgroups, config.part[0] * config.part[1] // 128, config.acc_dtype)

    @cute.jit
    def __call__(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        decomposition: Decomposition,
        stream: Any = None,
    ) -> None:
        """Launch the product."""
        self.launch((mA, mB), mC, mD, function, decomposition, stream)

    def launch(
        self,
        operands: tuple,
        mC: cute.Tensor,
        mD: cute.Tensor,
        function: EpilogueFunction,
        decomposition: Decomposition,
        stream: Any,
    ) -> None:
        """Launch the product of ``operands``, one matrix for each entry of ``LOADED``."""
        self.check(decomposition, function)
        config = self.config
        (bM, bN, bK), (cM, cN) = config.tile, config.cluster
        stage_layouts = self.stage_layouts()
        loads = self.loads(operands, stage_layouts, config.cluster)
        tma_D, tD = self.epilogue.tma(mD)
        outputs = self.epilogue.output_atoms(function)
        mC = aligned(mC, config.c)
        m, n, batch = (cute.size(mD, mode=[mode]) for mode in range(3))
        k = cute.size(operands[1], mode=[1])
        batch = 1 if decomposition.sums == "kept" else batch  # slices of K are work tiles too
        tiles = cute.ceil_div(m, bM * cM), cute.ceil_div(n, bN * cN), batch
        clusters, slices, _ = decomposition.grid(tiles[0] * tiles[1] * batch, 1)
        read = aligned(mD, config.c) if decomposition.sums == "in_turn" else None
        raster = self.raster.prepared(*tiles[:2]), cute.FastDivmodDivisor(tiles[0] * tiles[1])
        self.kernel(
            loads,
            tma_D,
            tD,
            outputs,
            mC,
            read,
            function,
            decomposition,
            tiles,
            raster,
            decomposition.k_tiles(k, bK),
            stage_layouts,
            self.epilogue.layout,
            self.math.tiled_mma(),
            self.math.epilogue_mma(),
        ).launch(
            grid=(clusters * config.cluster_size, slices, 1),
            block=(config.threads, 1, 1),
            cluster=(config.cluster_size, 1, 1),
            cooperative=decomposition.cooperative,
            stream=stream,
            min_blocks_per_mp=self.LEAST_BLOCKS,
            use_pdl=True,
        )

    def stage_layouts(self) -> tuple:
        """The shared-memory layout (rows, bK, boxes, stages) of each operand that is loaded."""
        return tuple(self.math.smem_layout(x, mode) for mode, x in enumerate((self.config.a, self.config.b)))

    def consumers(self, warpgroups: int) -> Any:
        """What releases a stage: one thread of each warpgroup, since wgmma reads shared memory for all four warps; each
        warp where they read scales."""
        if self.config.block_scales is not None:
            return pipeline.CooperativeGroup(pipeline.Agent.Warp, 4 * warpgroups)
        return self.math.tiled_mma(warpgroups=warpgroups)

    def loads(self, operands: tuple, stage_layouts: tuple, cluster: tuple[int, int] = (1, 1)) -> tuple:
        """The TMA atom and the coordinate tensor of each operand that is loaded. Blocks in one row of the cluster share
        the operands chosen by the row index, blocks in one column those chosen by the column index."""
        each = zip(operands, stage_layouts, self.LOADED, strict=True)
        return tuple(self.mainloop.tma(matrix, layout, cluster[1 - mode]) for matrix, layout, mode in each)

    def check(self, decomposition: Decomposition, function: EpilogueFunction) -> None:
        """Raise ConstraintError where this kernel cannot carry out the decomposition, or apply block scales."""
        self.check_block_scales(function)
        check_decomposition(self.config, decomposition)

    def check_block_scales(self, function: EpilogueFunction) -> None:
        """Raise ConstraintError where this kernel cannot multiply the sums of each k tile by scales of blocks."""
        check_block_scales(self.config, function)

    @cute.kernel
    def kernel(
        self,
        loads: tuple,
        tma_D: cute.CopyAtom,
        tD: cute.Tensor,
        outputs: tuple,
        mC: cute.Tensor,
        mD: Any,
        function: EpilogueFunction,
        decomposition: Any,
        tiles: tuple,
        raster: tuple,
        k_tiles: Any,
        stage_layouts: cutlass.Constexpr,
        sD_layout: cutlass.Constexpr,
        tiled_mma: cute.TiledMma,
        epilogue_mma: cute.TiledMma,
    ) -> None:
        config = self.config
        cM, cN = config.cluster
        cK = config.cluster_k
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        warpgroup = cute.arch.make_warp_uniform(warp // 4)
        if warp == 0:
            for atom, _ in loads:
                cpasync.prefetch_descriptor(atom)
            cpasync.prefetch_descriptor(tma_D)
        # Blocks of a cluster are neighbours in the grid, along M first, then along N, then along K.
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        # ``place`` is (m, n, k) of the block in its cluster.
        cluster_layout = cute.make_layout((cM, cN, cK))
        place = cluster_layout.get_flat_coord(rank)
        cluster = cute.arch.block_idx()[0] // config.cluster_size
        to_tile = partial(self.place_of, decomposition, tiles, raster, place)

        begin, stages, sD = self.shared_memory(stage_layouts, sD_layout)
        scales = ScaleStages.create(config)
        ring = self.ring(stages)
        order = self.order(warpgroup) if config.pingpong else None
        feed = decomposition.feed(config, rank)
        # One barrier of the cluster for all mbarriers initialised above (``defer_sync``).
        pipeline.pipeline_init_arrive(cluster_shape_mn=config.cluster, is_relaxed=True)
        first = self.first_place(to_tile, cluster, warp, warpgroup)
        pipeline.pipeline_init_wait(cluster_shape_mn=config.cluster)
        wait_for_earlier()

        count = tiles[0] * tiles[1] * tiles[2]
        where = partial(self.tile_of, to_tile, cluster, first)
        scratch = cute.recast_ptr(begin, dtype=config.acc_dtype)
        output = Output(epilogue_mma, (tma_D, tD, outputs), mC, mD, sD, function)
        work = BlockWork(
            decomposition=decomposition,
            worker=cluster,
            tiles=count,
            k_tiles=k_tiles,
            feed=feed,
            ring=ring,
            order=order,
            tiled_mma=tiled_mma,
            where=where,
            operands=partial(self.operands, loads, stages, cluster_layout, place),
            fragments=partial(self.fragments, tiled_mma, stages),
            ahead=partial(self.ahead_of_tile, tiled_mma, tD, function, scales),
            finish=partial(self.finish, output, decomposition, cluster, k_tiles, scratch, rank),
            reduce=partial(self.reduce, output, where, decomposition, scratch),
            loaded=partial(self.loaded, decomposition, count, k_tiles),
            scaled=block_scales(function) is not None,
            fill_scales=None if scales is None else partial(scales.fill, block_scales(function), ring),
        )
        self.roles(warp, warpgroup, work)

    @cute.jit
    def shared_memory(self, stage_layouts: cutlass.Constexpr, sD_layout: cutlass.Constexpr) -> tuple:
        """The address of the first stage, the stages of each operand that is loaded, and the epilogue's buffers."""
        config = self.config
        smem = utils.SmemAllocator()
        begin, at, stages = smem.allocate(config.stages * config.stage_bytes, 1024), 0, []
        for layout, dtype in zip(stage_layouts, self.loaded_types(), strict=True):
            stages.append(swizzled_tensor(begin + at, dtype, layout))  # (rows, bK, boxes, stages)
            at += cute.cosize(layout) * dtype.width // 8
        sD = allocate_swizzled(smem, config.c.dtype, sD_layout)  # (rows, columns, buffers, warpgroups)
        return begin, tuple(stages), sD

    @cute.jit
    def first_place(self, to_tile: Any, cluster: Any, warp: Any, warpgroup: Any) -> tuple[Any, Any, Any]:
        """The coordinates of tile ``cluster``, the block's first, before the wait for the kernel before: they take
        divisions. Some warps initialise mbarriers meanwhile (:meth:`ring`), or other blocks of the cluster do."""
        m, n, batch = Int32(0), Int32(0), Int32(0)
        if self.places_tiles(warp, warpgroup):
            m, n, batch = to_tile(cluster)
        return m, n, batch

    def places_tiles(self, warp: Any, warpgroup: Any) -> Any:
        """Whether a warp needs the coordinates of tiles: the one that loads, and those that multiply."""
        return (warp < 2) | (warpgroup > 0) if self.config.producers else True

    def ring(self, stages: tuple) -> Any:
        """The mbarriers of the stages. Two warps initialise them, while warp 0 is at other parts of the set-up."""
        return pipeline.PipelineTmaAsync.create(
            num_stages=self.config.stages,
            producer_group=self.producers(),
            consumer_group=self.consumers(self.config.split[0] * self.config.split[1]),
            stage_tensors=stages,
            cta_layout_vmnk=cute.make_layout((1, *self.config.cluster, 1)),
            defer_sync=True,
            initializing_warps=(1, 2),
        )

    def producers(self) -> pipeline.CooperativeGroup:
        """Who fills a stage: a warp by TMA, and the lanes that copy scales."""
        return pipeline.CooperativeGroup(pipeline.Agent.Thread, 1 if self.config.block_scales is None else 1 + LOADERS)

    def loaded_types(self) -> tuple:
        return self.config.a.dtype, self.config.b.dtype

    def set_registers(self, role: int) -> None:
        """Change the number of registers of each thread of a warpgroup: the producer's warpgroup (``role`` 0) gives
        registers up, the consumers' (1) take them."""
        registers = self.config.registers
        if registers is not None:
            change = cute.arch.setmaxregister_increase if role else cute.arch.setmaxregister_decrease
            change(registers[role])

    def order(self, warpgroup: Any) -> Any:
        """The order of the consumer warpgroups: section 0 is the main loop, section 1 the epilogue."""
        threads = pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)
        return pipeline.PipelineOrder.create(
            depth=2, length=2, group_id=warpgroup - 1, producer_group=threads, defer_sync=True
        )

    @cute.jit
    def roles(self, warp: Any, warpgroup: Any, work: BlockWork) -> None:
        """What each warp does with the block's share of the work."""
        config, ring = self.config, work.ring
        producer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, config.stages)
        if warp == 0:
            producer = self.load_first(work, producer)
        if warpgroup == 0:
            self.set_registers(0)
            if warp == 0:
                producer = work.walk(partial(self.load, work, work.operands()), producer, draws=True)
                work.loaded()
                ring.producer_tail(producer)
            if cutlass.const_expr(work.fill_scales is not None):
                if warp == 1:
                    filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, config.stages)
                    filled = work.walk(partial(self.fill_scales, work), filled)
                    ring.producer_tail(filled)
        else:
            self.set_registers(1)
            consumer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, config.stages)
            mine = warpgroup - 1
            if cutlass.const_expr(config.pingpong):
                consumer = self.mainloop.skip(consumer, mine * work.k_tiles)
                part = (0, 0)
                how = work.staged_mma(part), work.where, partial(work.ahead, part), partial(work.finish, mine, part)
                work.walk(partial(self.multiply_in_turn, *how), (consumer, work.order), mine, config.warpgroups)
            else:
                part = (mine // config.split[1], mine % config.split[1])
                how = work.staged_mma(part), work.where, partial(work.ahead, part), partial(work.finish, mine, part)
                work.walk(partial(self.multiply, *how), consumer)
                # Only the consumers have the registers for it.
                work.reduce(mine)
            self.epilogue.finish(cute.arch.thread_idx()[0] % 128)

    @cute.jit
    def loaded(self, decomposition: Any, tiles: Any, k_tiles: Any) -> None:
        """When the producer has issued its last load, let the next kernel begin beside the last k tiles and the
        epilogue of this one.

        Not if this launch leaves multiprocessors free for long: blocks of the next kernel would start on those first,
        close to each other, and compete for the same paths to L2. That is up to 7 % slower than a launch on an empty
        GPU, whose blocks the hardware spreads.
        """
        if decomposition.fills(tiles) | (k_tiles < FEW_K_TILES):
            let_next_begin()

    def operands(self, loads: tuple, stages: tuple, cluster_layout: Any, place: tuple) -> tuple[TmaOperand, ...]:
        """The operands as the producer needs them: this block's slices, and the multicast mask of the blocks that get
        them. Blocks in one row of the cluster share A, blocks in one column B."""
        found = []
        for (atom, coordinates), of_operand, mode in zip(loads, stages, self.LOADED, strict=True):
            across = self.SHARED_ALONG[mode]
            sharers = cute.size(cluster_layout, mode=[across])
            mask = cute.make_layout_image_mask(cluster_layout, place, mode=across) if sharers > 1 else 0
            found.append(self.mainloop.operand(atom, coordinates, of_operand, mode, place[across], sharers, mask))
        return tuple(found)

    def fragments(self, tiled_mma: cute.TiledMma, stages: tuple, part: tuple) -> tuple[Any, Any]:
        """The descriptors of the stages of A and B that a warpgroup's wgmma reads."""
        thr_mma = tiled_mma.get_slice(0)
        tCsA = thr_mma.partition_A(self.part_of(stages[0], 0, part[0]))  # (MMA, MMA_M, MMA_K, stages)
        tCsB = thr_mma.partition_B(self.part_of(stages[1], 1, part[1]))  # (MMA, MMA_N, MMA_K, stages)
        return tiled_mma.make_fragment_A(tCsA), tiled_mma.make_fragment_B(tCsB)

    def part_of(self, stages: cute.Tensor, mode: int, index: Any) -> cute.Tensor:
        """The rows of A (``mode`` 0) or B (1) that one warpgroup multiplies: (rows, bK, stages)."""
        if self.config.boxes(mode) > 1:
            return stages[None, None, index, None]
        shape = (self.config.part[mode], self.config.depth(mode), self.config.stages)
        return cute.local_tile(stages[None, None, 0, None], shape, (index, 0, 0))

    @cute.jit
    def tile_of(self, to_tile: Any, cluster: Any, first: tuple, index: Any) -> tuple[Any, Any, Any]:
        """As :meth:`place_of`; ``first`` is the result for tile ``cluster``, which is not computed again."""
        m, n, batch = first
        if index != cluster:
            m, n, batch = to_tile(index)
        return m, n, batch

    def place_of(
        self, decomposition: Any, tiles: tuple, raster: tuple, place: tuple, index: Any
    ) -> tuple[Any, Any, Any]:
        """The coordinates (tile_m, tile_n, batch) of this block's tile within cluster tile ``index``."""
        order, per_batch = raster
        batch, inside = divmod(index, per_batch)
        m, n = decomposition.place(order, inside, *tiles[:2])
        return m * self.config.cluster[0] + place[0], n * self.config.cluster[1] + place[1], batch

    def load_first(self, work: BlockWork, state: Any) -> Any:
        """Fill the stages for the first time, without a wait, if the block's first k tiles are known here.

        The code of the roles is far from here, and not yet in the instruction cache when a block starts. From here the
        first loads are issued some 0.15 us sooner than from the producer's loop.
        """
        first = work.decomposition.first(work.k_tiles)
        if first is None:
            return state
        k_begin, k_end = first
        k_end = self.first_loaded(k_begin, k_end)
        place = work.where(work.worker)
        return self.mainloop.load(work.operands(), work.ring, state, *place, k_begin, k_end, empty=True)

    def first_loaded(self, k_begin: Any, k_end: Any) -> Any:
        """The end of the k tiles of [k_begin, k_end) that :meth:`load_first` loads: one for each stage at most."""
        return cute.min(k_begin + self.config.stages, k_end)

    @cute.jit
    def load(self, work: BlockWork, operands: tuple, tile: Any, k_begin: Any, k_end: Any, state: Any) -> Any:
        """The producer's loads of one output tile, without those that :meth:`load_first` has issued."""
        m, n, batch = work.where(tile)
        if cutlass.const_expr(work.decomposition.first(work.k_tiles) is not None):
            k_begin = select(tile == work.worker, self.first_loaded(k_begin, k_end), k_begin)
        return self.mainloop.load(operands, work.ring, state, m, n, batch, k_begin, k_end)

    def fill_scales(self, work: BlockWork, tile: Any, k_begin: Any, k_end: Any, state: Any) -> Any:
        """The copies of the scales of one output tile."""
        assert work.fill_scales is not None
        m, n, _ = work.where(tile)
        return work.fill_scales((m * self.config.tile[0], n * self.config.tile[1]), k_begin, k_end, state)

    def accumulators(self, tiled_mma: cute.TiledMma) -> cute.Tensor:
        """The accumulators (MMA, MMA_M, MMA_N) of a warpgroup's part of the tile."""
        return cute.make_rmem_tensor(tiled_mma.get_slice(0).partition_shape_C(self.config.part), self.config.acc_dtype)

    @cute.jit
    def multiply(
        self,
        mma: StagedMma,
        where: Any,
        ahead: Any,
        finish: Any,
        tile: Any,
        k_begin: Any,
        k_end: Any,
        state: Any,
    ) -> Any:
        """A consumer warpgroup's part of one output tile. Its coordinates are computed while the first loads arrive."""
        acc, k_tiles = self.accumulators(mma.tiled_mma), k_end - k_begin
        at = where(tile)
        scales, coming = ahead(at, k_begin, k_end)
        coming.load()
        if cutlass.const_expr(scales is None):
            state = self.mainloop.multiply(mma, acc, state, k_tiles)
        else:
            state = self.mainloop.multiply_promoted(mma, acc, state, k_tiles, scales)
        finish(acc, tile, at, k_begin, k_end, coming)
        return state

    @cute.jit
    def multiply_in_turn(
        self,
        mma: StagedMma,
        where: Any,
        ahead: Any,
        finish: Any,
        tile: Any,
        k_begin: Any,
        k_end: Any,
        state: tuple,
    ) -> tuple:
        """A consumer warpgroup's output tile in turn with the other consumer's (``config.pingpong``).

        The main loop starts when the other consumer has issued its last wgmma. That consumer has then waited for all
        its stages, so the parity of this tile's first stages is not that of an earlier pass over the ring. One thread
        releases a stage for the whole warpgroup without a barrier: it has waited for a group of wgmma that all four
        warps issued, so each of them has waited for the stage.
        """
        consumer, order = state
        acc, at = self.accumulators(mma.tiled_mma), where(tile)
        _, coming = ahead(at, k_begin, k_end)

        def issued() -> None:
            order.arrive()
            coming.load()

        order.wait()
        consumer = self.mainloop.multiply(mma, acc, consumer, k_end - k_begin, issued)
        order.wait()
        finish(acc, tile, at, k_begin, k_end, coming)
        order.arrive()
        return self.mainloop.skip(consumer, k_end - k_begin), order
