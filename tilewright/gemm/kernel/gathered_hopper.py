"""Groups of products on Hopper whose rows of A are found by index: the tokens of each expert, without a copy before.

TMA reads rows one after the other. Here all four warps of the warpgroup that loads copy A by cp.async, 16 bytes a
thread, and one of them B by TMA, into the same stages. The mbarrier *full* of a stage waits for the bytes of B, and
for each thread's copies: ``cp.async.mbarrier.arrive.noinc`` arrives when they have landed. Threads wrote A through the
generic proxy and wgmma reads through the async proxy, so the warps that multiply have a proxy fence behind their wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tilewright as cutlass
from tilewright import Boolean, Int32, Int64, cute, pipeline
from tilewright.gemm.addressing import moved
from tilewright.gemm.config import Major
from tilewright.gemm.epilogue.scales import block_scales
from tilewright.gemm.kernel.group_table import ADDRESS, EXTENT, ORIGIN, PITCH, numbers
from tilewright.gemm.kernel.grouped_hopper import GroupedHopperGemm, GroupWork
from tilewright.gemm.mainloop.tma import TmaMainloop
from tilewright.gemm.schedule.group_shares import GroupPiece
from tilewright.gemm.tiles import vectors_along

LOADERS = 128
"""Threads that copy A."""

MOST_GATHERED_ROWS = 128
"""Rows of a tile: beyond, threads that load spill."""

REGISTERS = {1: None, 2: (56, 224), 3: (56, 152)}
"""Registers of a thread that loads and of one that multiplies, by the number of warpgroups that multiply: those that
load hold where eight rows are."""


@dataclass(frozen=True)
class GatheredMainloop(TmaMainloop):
    """The main loop behind stages that threads have filled in part."""

    def landed(self) -> None:
        cute.arch.fence_proxy("async.shared", space="cta")


class GatheredHopperGemm(GroupedHopperGemm):
    """D_i = f(A[rows_i] @ B_i, C_i) for each problem i of a table."""

    def make_mainloop(self) -> GatheredMainloop:
        return GatheredMainloop(self.config, self.math)

    def set_registers(self, role: int) -> None:
        registers = REGISTERS[self.config.warpgroups]
        if registers is not None:
            change = cute.arch.setmaxregister_increase if role else cute.arch.setmaxregister_decrease
            change(registers[role])

    def ring(self, stages: tuple) -> Any:
        """The ring of stages, each filled by the bytes of B and the copies of the threads."""
        return pipeline.PipelineTmaAsync.create(
            num_stages=self.config.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 1 + LOADERS),
            consumer_group=self.consumers(self.config.warpgroups),
            stage_tensors=stages[1:],
        )

    @cute.jit
    def produce(self, warp: Any, group: GroupWork) -> None:
        """The warpgroup that loads: all of it copies A, its first warp also B."""
        producer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.config.stages)
        producer = group.walk((self.map_of(group.maps, 1),), partial(self.gather_of_problem, warp, group), producer)
        group.ring.producer_tail(producer)

    @cute.jit
    def gather_of_problem(self, warp: Any, group: GroupWork, one: GroupPiece, descriptors: tuple, state: Any) -> Any:
        """The part of one output tile of the warps that load."""
        ring, loads, stages, table, rows = group.ring, group.loads, group.stages, group.table, group.rows
        (bM, _, bK), dtype = self.config.tile, self.config.a.dtype
        problem, place = one.problem, one.place
        (m, n, k), (last_m, _, last_k) = numbers(table, problem, ORIGIN), numbers(table, problem, EXTENT)
        atom, coordinates = loads[1]
        B = self.mainloop.operand(atom, cute.domain_offset((n, k, 0), coordinates), stages[1], 1)
        B = replace(B, descriptor=descriptors[0])
        op = cute.nvgpu.cpasync.CopyG2SOp(cache_mode=cute.nvgpu.LoadCacheMode.GLOBAL)
        copy_atom = cute.make_copy_atom(op, dtype, num_bits_per_copy=128)
        vector = 128 // dtype.width
        copy = vectors_along(copy_atom, (bM, bK), Major.K, vector, LOADERS)
        thread = copy.get_slice(cute.arch.thread_idx()[0] % LOADERS)
        first = cute.make_ptr(dtype, table[problem, ADDRESS], cute.AddressSpace.gmem, assumed_align=16)
        # Each row is at an offset of its own from the first one.
        source = thread.partition_S(cute.make_tensor(first, cute.make_layout((bM, bK), stride=(0, 1))))
        target = thread.partition_D(stages[0][None, None, 0, None])  # (CPY, CPY_M, CPY_K, stages)
        own = thread.partition_S(cute.make_identity_tensor((bM, bK)))  # (CPY, CPY_M, CPY_K)
        count, columns = cute.size(target, mode=[1]), cute.size(target, mode=[2])
        found, pitch = cute.make_rmem_tensor(count, Int32), table[problem, PITCH]  # -1: there is no such row
        for i in cutlass.range_constexpr(count):
            row = m + place[0] * bM + own[0, i, 0][0]
            index = rows.index[cute.min(row, last_m - 1)]
            found[i] = cute.where((row < last_m) & (index >= 0) & (index < rows.count), index, -1)
        inside = cute.make_rmem_tensor(cute.make_layout((1, columns)), Boolean)
        for k_tile in cutlass.range(one.k_begin, one.k_end, unroll=1):
            begin = k + k_tile * bK
            full = ring.producer_get_barrier(state)
            if warp == 0:
                ring.producer_acquire(state)
                self.mainloop.load_operand(B, full, state.index, place[1], k_tile, 0)
            else:
                ring.sync_object_empty.wait(state.index, state.phase)
            if cutlass.const_expr(group.scales is not None):
                if warp == 1:
                    self.copy_scales(group, one, k_tile, state.index)
            for i in cutlass.range_constexpr(count):
                for column in cutlass.range_constexpr(columns):
                    inside[0, column] = (found[i] >= 0) & (begin + own[0, 0, column][1] < last_k)
                shift = cute.max(found[i], 0).to(Int64) * pitch + begin
                here = moved(source[None, i, None], shift, vector)
                cute.copy(copy, here, target[None, i, None, state.index], pred=inside)
            cute.arch.cp_async_mbarrier_arrive_noinc(full)
            state.advance()
        return state

    def copy_scales(self, group: GroupWork, one: GroupPiece, k_tile: Any, stage: Any) -> None:
        """The copies of the scales of one k tile, by one warp, before its arrival at the stage's mbarrier."""
        assert group.scales is not None
        scales = block_scales(group.function(one.problem))
        group.scales.copy(scales, self.first_of_tile(group, one), k_tile, stage)
