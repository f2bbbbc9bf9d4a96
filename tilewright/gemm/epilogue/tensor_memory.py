"""From accumulators in tensor memory to D: parts are loaded to registers one after the other, and leave as those of
wgmma do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
from tilewright import const_expr, cute, range_constexpr
from tilewright.cute.nvgpu import tcgen05
from tilewright.gemm.blackwell_config import BlackwellConfig
from tilewright.gemm.epilogue.tma_store import TmaStoreEpilogue
from tilewright.gemm.schedule.partials import Partials


@dataclass(frozen=True)
class TensorMemoryEpilogue(TmaStoreEpilogue):
    """Four warps, each of which reaches its 32 lanes, the rows of a tile."""

    config: BlackwellConfig

    def parts(self, acc: cute.Tensor) -> list[tuple[Any, Any]]:
        """The parts of a tile's accumulators (MMA, 1, 1) in tensor memory: each is loaded when its turn comes."""
        rows = acc[(None, None), 0, 0]  # (rows, columns)
        shape = self.config.tile[0], self.config.epilogue_columns
        return [(i, cute.local_tile(rows, shape, (0, i))) for i in range(self.config.parts)]

    @cute.jit
    def by_turns(self, sums: list[tuple[Any, cute.Tensor]], write: Callable[[list], None]) -> None:
        """In a loop whose turns fill every buffer once: tensor memory has addresses, which registers have not, and each
        part that is not written out saves NVRTC a sixth of its time."""
        each = self.config.epilogue_buffers
        if const_expr(len(sums) % each != 0 or len(sums) == each):
            write(sums)
        else:
            for turn in cutlass.range(len(sums) // each, unroll=1):
                write([self.part_at(sums, turn * each + i) for i in range_constexpr(each)])

    def part_at(self, sums: list[tuple[Any, cute.Tensor]], i: Any) -> tuple[Any, cute.Tensor]:
        """Part ``i`` of all ``sums``, whose number is known at run time."""
        first = sums[0][1]
        return i, cute.make_tensor(first.iterator + i * self.config.epilogue_columns, first.layout)

    @property
    def apart(self) -> int:
        return self.config.tile[1]

    def of_part(self, first: Any, apart: int) -> cute.Tensor:
        """Registers of a part, ((2, 2), 2, columns / 8), as the tiled MMA of the epilogue has them."""
        columns = self.config.epilogue_columns
        layout = cute.make_layout(((2, 2), 2, columns // 8), stride=((1, 2), columns // 2, 4))
        return cute.make_tensor(first, layout)

    @cute.jit
    def sums(self, part: Any) -> cute.Tensor:
        """The accumulators of a part in registers, where other blocks' sums have been added to them already."""
        if const_expr(part.memspace == cute.AddressSpace.rmem):
            return part
        registers = self.loaded(part)
        return self.of_part(registers.iterator, self.apart)

    def mover(self, op: Any, part: cute.Tensor) -> tuple[Any, Any]:
        """The tiled copy of a part between tensor memory and registers, and the calling thread's slice."""
        atom = cute.make_copy_atom(op(tcgen05.Repetition(self.config.epilogue_columns // 8)), self.config.acc_dtype)
        copy = tcgen05.make_tmem_copy(atom, part)
        return copy, copy.get_slice(cute.arch.thread_idx()[0] % 128)

    def room(self) -> cute.Tensor:
        """Registers for a part: (values, 2, 1), the warp's lower and upper 16 rows."""
        return cute.make_rmem_tensor((self.config.epilogue_columns // 2, 2, 1), self.config.acc_dtype)

    @cute.jit
    def loaded(self, part: Any) -> cute.Tensor:
        """Registers with a part: (values, 2, 1), the warp's lower and upper 16 rows."""
        load, mine = self.mover(tcgen05.Ld16x256bOp, part)
        registers = self.room()
        cute.copy(load, mine.partition_S(part), registers)
        cute.arch.fence_view_async_tmem_load()
        return registers

    @cute.jit
    def store_back(self, registers: cute.Tensor, part: Any) -> None:
        """Put what :meth:`loaded` gave back in its place."""
        store, mine = self.mover(tcgen05.St16x256bOp, part)
        cute.copy(store, registers, mine.partition_D(part))
        cute.arch.fence_view_async_tmem_store()


@dataclass(frozen=True)
class TensorMemoryPartials(Partials):
    """Sums of parts whose accumulators are in tensor memory: they pass through registers part by part of the
    ``epilogue``, in a loop."""

    epilogue: TensorMemoryEpilogue

    @cute.jit
    def store(self, base: Any, tidx: Any, acc: cute.Tensor, number: Any = None) -> None:
        """Put this thread's accumulators into a slot."""
        parts = self.epilogue.parts(acc)
        for i in cutlass.range(len(parts), unroll=1):
            _, part = self.epilogue.part_at(parts, i)
            slot = self.of_part(base, tidx, i, number)
            cute.autovec_copy(cute.make_tensor(self.epilogue.loaded(part).iterator, slot.shape), slot)

    @cute.jit
    def add_to(self, acc: cute.Tensor, base: Any, tidx: Any, number: Any = None) -> None:
        """acc += what a slot has for this thread."""
        parts = self.epilogue.parts(acc)
        for i in cutlass.range(len(parts), unroll=1):
            _, part = self.epilogue.part_at(parts, i)
            slot = self.of_part(base, tidx, i, number)
            theirs = cute.make_rmem_tensor(slot.shape, self.dtype)
            cute.autovec_copy(slot, theirs)
            registers = self.epilogue.loaded(part)
            ours = cute.make_tensor(registers.iterator, theirs.layout)
            ours.store(ours.load() + theirs.load())
            self.epilogue.store_back(registers, part)

    @cute.jit
    def add_atomically(self, base: Any, tidx: Any, acc: cute.Tensor, number: Any = None) -> None:
        """Add this thread's accumulators to a slot, while other blocks may do so, too."""
        parts = self.epilogue.parts(acc)
        for i in cutlass.range(len(parts), unroll=1):
            _, part = self.epilogue.part_at(parts, i)
            slot = self.of_part(base, tidx, i, number)
            ours = cute.make_tensor(self.epilogue.loaded(part).iterator, slot.shape)
            for j in range_constexpr(cute.size(slot)):
                cute.arch.atomic_add(slot.iterator + slot.layout(j), ours[j])

    def of_part(self, base: Any, tidx: Any, i: Any, number: Any) -> cute.Tensor:
        """The place of part ``i`` of a thread in a slot: (vector, vectors, 1)."""
        return self.piece(base, tidx, i, self.epilogue.run_length, self.epilogue.apart, number)
