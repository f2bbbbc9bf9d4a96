"""Products of different sizes in one launch on Hopper: the warp-specialised kernel, with tensor maps for each problem.

TMA reads matrices through tensor maps of 128 bytes. A first kernel makes those of all problems at once, a warp for each
problem, from a table of addresses, extents and strides: a few microseconds, however many problems there are. (The host
would take about as long for each of them, and a block that changes a tensor map when it comes to another problem
waits for it.) The second kernel's persistent blocks take the tiles of all problems in turn, as on Ampere; the warp that
loads, and those that store, go on to the next problem's tensor maps when their next tile is of that problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tilewright as cutlass
from tilewright import Int32, Int64, cute, pipeline, range, utils
from tilewright.errors import ConstraintError
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.epilogue.coming import ComingVectors
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.epilogue.scale_stages import ScaleStages, StagedScales
from tilewright.gemm.epilogue.scales import TileScales, block_scales
from tilewright.gemm.kernel.group_offsets import Groups
from tilewright.gemm.kernel.group_table import (
    EXTENT,
    FIRST,
    ITERATION,
    ORIGIN,
    blocks_of_tile,
    function_of,
    matrices,
    numbers,
    problem_of,
    share_of,
    stack,
    tiles_of,
    whole_tile,
)
from tilewright.gemm.kernel.overlap import wait_then_let_next_begin
from tilewright.gemm.kernel.warp_specialized import WarpSpecializedGemm
from tilewright.gemm.mainloop.staged_mma import StagedMma
from tilewright.gemm.mainloop.tma import TmaOperand
from tilewright.gemm.schedule.group_shares import GroupPiece, GroupShares, least_iterations
from tilewright.ir.tensormap import BYTES

MAPS, MAP_WORDS = 3, 16
"""Tensor maps of a problem (A, B, D), and the Int64 numbers of each."""

MANAGER = utils.TensorMapManager(utils.TensorMapUpdateMode.SMEM)


@dataclass(frozen=True)
class GroupWork:
    """What the roles of a block share: the ``table`` of the problems and the tensor ``maps`` of their matrices; the
    ``rows`` of A by index (None: as they lie); the TMA atoms and coordinates of the operands (``loads``), the
    ``stages`` in shared memory, and their ``ring``."""

    table: cute.Tensor
    maps: cute.Tensor
    rows: Any
    loads: tuple
    stages: tuple
    ring: Any
    walk: Callable[[tuple, Any, Any], Any]
    """``state = piece(one, descriptors, state)`` for the parts of tiles that are the block's, from the places of tensor
    maps, the piece and the state."""
    function: Callable[[Any], Any]
    """The epilogue function of a problem."""
    tiled_mma: cute.TiledMma
    scaled: bool = False
    """Whether the sums of each k tile are multiplied by scales of blocks."""
    scales: ScaleStages | None = None
    """Those of the stages."""
    cuts_tiles: bool = True
    """Whether problems end anywhere in their tiles, of which they may have few."""


class GroupedHopperGemm(WarpSpecializedGemm):
    """D_i = f(A_i @ B_i, C_i) for each problem i of a table; all are laid out as ``config`` says, in rows that begin at
    multiples of 16 bytes. Where K ends at its origin, a k tile of zeros is loaded from beyond it."""

    def __init__(self, config: HopperConfig) -> None:
        super().__init__(config)
        if config.cluster_size > blocks_of_tile(config) or config.pingpong or not config.producers:
            raise ConstraintError(
                "a kernel for groups of problems has single blocks (cluster (1, 1), cluster_k 1) or pairs that work on "
                f"one MMA, a warp that loads, and no turns (pingpong): not {config}"
            )

    @cute.jit
    def __call__(  # type: ignore[override]  # a table in place of matrices
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mD: cute.Tensor,
        table: cute.Tensor,
        maps: cute.Tensor,
        blocks: Int32,
        groups: Groups,
        function: EpilogueFunction,
        shares: Any,
        stream: Any = None,
    ) -> None:
        """Launch ``blocks`` blocks for the tiles of the problems in ``table`` (problems + 1, COLUMNS), which ``groups``
        fill in first where they are known on the device alone; ``maps`` is memory for (problems, MAPS, MAP_WORDS)
        Int64, at a multiple of 128 bytes. ``mA``, ``mB`` and ``mD`` are matrices of one of the problems: the tensor
        maps of the others are made after theirs."""
        self.launch_groups((mA, mB), mD, table, maps, blocks, groups, function, shares, stream)

    def launch_groups(
        self,
        operands: tuple,
        mD: cute.Tensor,
        table: cute.Tensor,
        maps: cute.Tensor,
        blocks: Int32,
        groups: Groups,
        function: EpilogueFunction,
        shares: Any,
        stream: Any,
    ) -> None:
        """Launch both kernels for ``operands``, those of ``LOADED``."""
        config, problems = self.config, cute.size(maps, mode=[0])
        if shares is not None and config.cluster_size > 1:
            raise ConstraintError("pairs of blocks do not share tiles of groups: take single blocks, or data_parallel")
        stage_layouts = self.stage_layouts()
        loads = self.loads(operands, stage_layouts, config.cluster)
        tma_D, tD = self.epilogue.tma(mD)
        self.make_maps(loads[0][0], loads[1][0], tma_D, table, maps, groups).launch(
            grid=(problems, 1, 1), block=(32, 1, 1), stream=stream, use_pdl=True
        )
        self.multiply_all(
            loads,
            groups.rows,
            groups.cuts_tiles,
            tma_D,
            tD,
            table,
            maps,
            function,
            shares,
            stage_layouts,
            self.epilogue.layout,
            self.math.tiled_mma(),
            self.math.epilogue_mma(),
        ).launch(
            grid=(blocks, 1, 1),
            block=(config.threads, 1, 1),
            cluster=None if config.cluster_size == 1 else (config.cluster_size, 1, 1),
            stream=stream,
            min_blocks_per_mp=self.LEAST_BLOCKS,
            use_pdl=True,
        )

    @cute.kernel
    def make_maps(
        self,
        tma_A: cute.CopyAtom,
        tma_B: cute.CopyAtom,
        tma_D: cute.CopyAtom,
        table: cute.Tensor,
        maps: cute.Tensor,
        groups: Groups,
    ) -> None:
        """Block i makes the tensor maps of problem i, in shared memory: each change of one in global memory takes as
        long as a load from there."""
        problem, _, _ = cute.arch.block_idx()
        atoms = tma_A, tma_B, tma_D
        words = utils.SmemAllocator().allocate_tensor(Int64, cute.make_layout((MAP_WORDS, MAPS)), byte_alignment=BYTES)
        drafts = tuple(words[None, i].iterator for i in cutlass.range_constexpr(MAPS))
        for i in cutlass.range_constexpr(MAPS):
            MANAGER.init_tensormap_from_atom(atoms[i], drafts[i], 0)
        wait_then_let_next_begin()
        groups.fill(table, problem, self.config)
        A, B, D = self.mapped(table, problem, groups)
        places = tuple(self.map_of(maps, i)(problem) for i in cutlass.range_constexpr(MAPS))
        MANAGER.update_tensormap((A, B, D), atoms, places, 0, drafts)

    def mapped(self, table: cute.Tensor, problem: Any, groups: Groups) -> tuple:
        """The matrices that tensor maps of a problem are made for: A, B and D."""
        A, B, _, D = (stack(matrix) for matrix in matrices(table, problem, self.config, whole=False))
        return A, B, D

    @cute.kernel
    def multiply_all(
        self,
        loads: tuple,
        rows: Any,
        cuts_tiles: cutlass.Constexpr,
        tma_D: cute.CopyAtom,
        tD: cute.Tensor,
        table: cute.Tensor,
        maps: cute.Tensor,
        function: EpilogueFunction,
        shares: Any,
        stage_layouts: cutlass.Constexpr,
        sD_layout: cutlass.Constexpr,
        tiled_mma: cute.TiledMma,
        epilogue_mma: cute.TiledMma,
    ) -> None:
        """The tiles of all problems by persistent blocks: one warp loads, the other warpgroups multiply and store."""
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        warpgroup = cute.arch.make_warp_uniform(warp // 4)
        _, stages, sD = self.shared_memory(stage_layouts, sD_layout)
        scales, ring = ScaleStages.create(self.config), self.ring(stages)
        wait_then_let_next_begin()
        walk = partial(self.walk, table, cuts_tiles)
        if cutlass.const_expr(shares is not None):
            walk = partial(self.walk_shares, table, shares)
        applied, scaled = partial(function_of, function, table), block_scales(function) is not None
        group = GroupWork(table, maps, rows, loads, stages, ring, walk, applied, tiled_mma, scaled, scales, cuts_tiles)
        finish = partial(self.write_of_problem, epilogue_mma, tma_D, tD, sD, table)
        self.roles_of_groups(warp, warpgroup, group, finish)

    @cute.jit
    def roles_of_groups(self, warp: Any, warpgroup: Any, group: GroupWork, finish: Any) -> None:
        """What each warp does with the block's tiles."""
        config = self.config
        if warpgroup == 0:
            self.set_registers(0)
            self.produce(warp, group)
        else:
            self.set_registers(1)
            consumer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, config.stages)
            mine = warpgroup - 1
            part = (mine // config.split[1], mine % config.split[1])
            tiled_mma = group.tiled_mma
            mma = StagedMma(tiled_mma, *self.fragments(tiled_mma, group.stages, part), group.ring)
            piece = partial(self.multiply_of_problem, mma, group, mine, finish)
            group.walk((self.map_of(group.maps, 2),), piece, consumer)
            self.epilogue.finish(cute.arch.thread_idx()[0] % 128)

    def ring(self, stages: tuple) -> Any:
        """The ring of stages that TMA fills."""
        return pipeline.PipelineTmaAsync.create(
            num_stages=self.config.stages,
            producer_group=self.producers(),
            consumer_group=self.consumers(self.config.warpgroups),
            stage_tensors=stages,
        )

    @cute.jit
    def produce(self, warp: Any, group: GroupWork) -> None:
        """The warpgroup that loads: one warp of it, and one for scales of blocks."""
        if warp == 0:
            producer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.config.stages)
            by = self.map_of(group.maps, 0), self.map_of(group.maps, 1)
            producer = group.walk(by, partial(self.load_of_problem, group), producer)
            group.ring.producer_tail(producer)
        if cutlass.const_expr(group.scales is not None):
            if warp == 1:
                filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.config.stages)
                filled = group.walk((), partial(self.fill_scales_of_problem, group), filled)
                group.ring.producer_tail(filled)

    def map_of(self, maps: cute.Tensor, which: int) -> Any:
        """Gives the place of a problem's tensor map."""

        def place(problem: Any) -> Any:
            return MANAGER.get_tensormap_ptr(maps[problem, which, None].iterator)

        return place

    @cute.jit
    def walk(self, table: cute.Tensor, cuts_tiles: bool, maps: tuple, piece: Any, state: Any) -> Any:
        """``state = piece(one, descriptors, state)`` for each tile of this block, a :class:`GroupPiece`. The warps that
        call it copy by the tensor maps ``maps(problem)``."""
        first, blocks = self.worker()
        problem, last = Int32(0), Int32(-1)
        for tile in range(first, tiles_of(table), blocks, unroll=1):
            problem = problem_of(table, tile, problem, cuts_tiles)
            if problem != last:
                self.acquire(maps, problem)
                last = problem
            inside = tile - table[problem, FIRST].to(Int32)
            place, k_tiles = self.place_in(table, problem, inside)
            one = GroupPiece(problem, inside, place, 0, k_tiles, k_tiles)
            state = piece(one, self.descriptors(maps, problem), state)
        return state

    def worker(self) -> tuple[Any, Any]:
        """The number of this block, or pair of blocks, and how many there are."""
        (first, _, _), (blocks, _, _) = cute.arch.block_idx(), cute.arch.grid_dim()
        together = blocks_of_tile(self.config)
        return (first, blocks) if together == 1 else (first // together, blocks // together)

    @cute.jit
    def walk_shares(self, table: cute.Tensor, shares: GroupShares, maps: tuple, piece: Any, state: Any) -> Any:
        """The same of the parts of tiles that are this block's share, from its end."""
        even, begin, end = share_of(table)
        problem, last = cute.size(table, mode=[0]) - 2, Int32(-1)
        while end > begin:
            while table[problem, ITERATION] >= end:
                problem = problem - 1
            if problem != last:
                self.acquire(maps, problem)
                last = problem
            before, k_tiles = table[problem, ITERATION].to(Int32), self.k_tiles(table, problem)
            inside = (end - 1 - before) // k_tiles
            start = before + inside * k_tiles
            place, _ = self.place_in(table, problem, inside)
            shared = shares.of_problem(even, before, k_tiles)
            one = GroupPiece(problem, inside, place, cute.max(begin - start, 0), end - start, k_tiles, shared)
            state = piece(one, self.descriptors(maps, problem), state)
            end = cute.max(begin, start)
        return state

    def acquire(self, maps: tuple, problem: Any) -> None:
        """TMA has its own copy of what it has read, and tensor maps were made by a kernel before."""
        for one in maps:
            MANAGER.fence_tensormap_update(one(problem))

    def descriptors(self, maps: tuple, problem: Any) -> tuple:
        return tuple(MANAGER.get_tensormap_ptr(one(problem), cute.AddressSpace.generic) for one in maps)

    def extents(self, table: cute.Tensor, problem: Any) -> tuple[Any, ...]:
        """M, N and K of a problem."""
        ends, origin = numbers(table, problem, EXTENT), numbers(table, problem, ORIGIN)
        return tuple(end - begin for end, begin in zip(ends, origin, strict=True))

    def k_tiles(self, table: cute.Tensor, problem: Any) -> Any:
        """The k tiles of an output tile of ``problem``; one of zeros if its K is 0."""
        return least_iterations(cute.ceil_div(self.extents(table, problem)[2], self.config.tile[2]))

    def place_in(self, table: cute.Tensor, problem: Any, inside: Any) -> tuple[Any, Any]:
        """(tile_m, tile_n) of what this block has of tile ``inside`` of a problem, and its k tiles."""
        (bM, bN, _), together = whole_tile(self.config), blocks_of_tile(self.config)
        m, n, _ = self.extents(table, problem)
        place = self.raster.tile(inside, cute.ceil_div(m, bM), cute.ceil_div(n, bN))
        if together > 1:
            place = place[0] * together + cute.arch.block_idx()[0] % together, place[1]
        return place, self.k_tiles(table, problem)

    @cute.jit
    def load_of_problem(self, group: GroupWork, one: GroupPiece, descriptors: tuple, state: Any) -> Any:
        """The producer's part of one output tile."""
        operands = self.operands_of_problem(group, one, descriptors)
        return self.mainloop.load(operands, group.ring, state, *one.place, 0, one.k_begin, one.k_end)

    def fill_scales_of_problem(self, group: GroupWork, one: GroupPiece, descriptors: tuple, state: Any) -> Any:
        """The copies of the scales of one output tile."""
        assert group.scales is not None
        scales, first = block_scales(group.function(one.problem)), self.first_of_tile(group, one)
        return group.scales.fill(scales, group.ring, first, one.k_begin, one.k_end, state)

    def first_of_tile(self, group: GroupWork, one: GroupPiece) -> tuple[Any, Any]:
        """The first row and column of an output tile, among those of all problems."""
        m, n = numbers(group.table, one.problem, ORIGIN)[:2]
        return m + one.place[0] * self.config.tile[0], n + one.place[1] * self.config.tile[1]

    @cute.jit
    def operands_of_problem(self, group: GroupWork, one: GroupPiece, descriptors: tuple) -> tuple[TmaOperand, ...]:
        """What is loaded of a problem: A and B, from where they begin."""
        m, n, k = numbers(group.table, one.problem, ORIGIN)
        operands = []
        for mode in cutlass.range_constexpr(2):
            (atom, coordinates), begin = group.loads[mode], ((m, k, 0), (n, k, 0))[mode]
            operand = self.mainloop.operand(atom, cute.domain_offset(begin, coordinates), group.stages[mode], mode)
            operands.append(replace(operand, descriptor=descriptors[mode]))
        return tuple(operands)

    @cute.jit
    def multiply_of_problem(
        self,
        mma: StagedMma,
        group: GroupWork,
        mine: Any,
        finish: Any,
        one: GroupPiece,
        descriptors: tuple,
        state: Any,
    ) -> Any:
        """Consumer warpgroup ``mine``'s part of one output tile. Where the problem ends before it, the warpgroup only
        releases the stages, and the tensor cores are the others'."""
        part = (mine // self.config.split[1], mine % self.config.split[1])
        how = mma, group, part, partial(finish, mine, part), one, descriptors
        if cutlass.const_expr(one.shared is not None or self.config.split == (1, 1) or not group.cuts_tiles):
            state = self.multiply_part(*how, state)
        else:
            if self.has_part(group.table, one, part):
                state = self.multiply_part(*how, state)
            else:
                state = self.mainloop.pass_over(mma.ring, state, one.multiplied, self.barrier(mine))
        return state

    def has_part(self, table: cute.Tensor, one: GroupPiece, part: tuple) -> Any:
        """Whether a problem has elements in a warpgroup's part of a tile."""
        (m, n, _), config = self.extents(table, one.problem), self.config
        row, column = ((one.place[mode] * config.split[mode] + part[mode]) * config.part[mode] for mode in range(2))
        return (row < m) & (column < n)

    @cute.jit
    def multiply_part(
        self,
        mma: StagedMma,
        group: GroupWork,
        part: tuple,
        finish: Any,
        one: GroupPiece,
        descriptors: tuple,
        state: Any,
    ) -> Any:
        """Multiply and write a consumer warpgroup's part of one output tile."""
        acc, function = self.accumulators(mma.tiled_mma), group.function(one.problem)
        scales, coming = self.ahead_of_group(mma.tiled_mma, group.table, group.scales, part, function, one)
        coming.load()
        if cutlass.const_expr(scales is None):
            state = self.mainloop.multiply(mma, acc, state, one.multiplied)
        else:
            state = self.mainloop.multiply_promoted(mma, acc, state, one.multiplied, scales)
        write = partial(finish, one.problem, one.place, descriptors[0], function, coming)
        self.write_or_give(one, write, acc)
        return state

    @cute.jit
    def write_or_give(self, one: GroupPiece, write: Any, acc: cute.Tensor) -> None:
        """Write the sums of a part of a tile, with those of the blocks that share it, or hand them to the block that
        does."""
        tidx = cute.arch.thread_idx()[0] - 128 * self.config.producers
        if cutlass.const_expr(one.shared is None):
            write(acc)
        elif one.k_end < one.k_tiles:
            self.fixup.give(one.shared, one.inside, one.k_begin, tidx, acc)
        else:
            if one.k_begin > 0:
                self.fixup.take(one.shared, one.inside, tidx, acc)
            write(acc)

    def ahead_of_group(
        self,
        tiled_mma: cute.TiledMma,
        table: cute.Tensor,
        stages: ScaleStages | None,
        part: tuple,
        function: EpilogueFunction,
        one: GroupPiece,
    ) -> tuple[StagedScales | TileScales | None, ComingVectors]:
        """What a consumer warpgroup's part of an output tile wants of the problem's epilogue ``function`` before its
        sums are complete, as :meth:`ahead_of_tile`."""
        extent, origin = (numbers(table, one.problem, column)[:2] for column in (EXTENT, ORIGIN))
        at = tuple(one.place[mode] * self.config.split[mode] + part[mode] for mode in range(2))
        first = tuple(origin[mode] + at[mode] * self.config.part[mode] for mode in range(2))
        coming, scales = self.epilogue.coming(function, first, extent), block_scales(function)
        if scales is None:
            return None, coming
        if stages is not None:
            return self.staged_scales(tiled_mma, stages, part), coming
        whole = cute.domain_offset(origin, cute.make_identity_tensor(extent))
        held = self.held_part(tiled_mma, cute.local_tile(whole, self.config.part, at), extent)
        return TileScales(scales, held, one.k_begin, one.k_end), coming

    @cute.jit
    def write_of_problem(
        self,
        epilogue_mma: cute.TiledMma,
        tma_D: cute.CopyAtom,
        tD: cute.Tensor,
        sD: cute.Tensor,
        table: cute.Tensor,
        mine: Any,
        part: tuple,
        problem: Any,
        place: tuple,
        descriptor: Any,
        function: EpilogueFunction,
        coming: ComingVectors,
        acc: cute.Tensor,
    ) -> None:
        """Write a consumer warpgroup's sums of one output tile by the problem's epilogue ``function``."""
        config = self.config
        _, _, mC, _ = matrices(table, problem, config)
        extent, origin = (numbers(table, problem, column)[:2] for column in (EXTENT, ORIGIN))
        at = place[0] * config.split[0] + part[0], place[1] * config.split[1] + part[1]
        gD, gC, cD = (
            cute.local_tile(tensor, config.part, at)
            for tensor in (
                cute.domain_offset(origin, tD[None, None, 0]),
                mC,  # whose products begin at their addresses
                cute.domain_offset(origin, cute.make_identity_tensor(extent)),
            )
        )  # the warpgroup's part: (rows, columns)
        tidx = cute.arch.thread_idx()[0] % 128
        self.epilogue.run(
            epilogue_mma,
            tidx,
            self.epilogue.parts(acc),
            tma_D,
            gD,
            gC,
            cD,
            sD[None, None, None, mine],
            extent,
            function,
            self.barrier(mine),
            descriptor,
            coming=coming,
        )
