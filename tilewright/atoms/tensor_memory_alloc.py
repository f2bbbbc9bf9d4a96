"""``tcgen05.alloc``, ``dealloc`` and ``relinquish_alloc_permit``: columns of tensor memory (PTX ISA, "tcgen05.alloc").

One warp executes each. The address of the allocated columns is written to shared memory, where the other warps read it
after a barrier. Of a pair of blocks (``ctas`` 2) one warp of each executes them, and both blocks get the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.mma import active_warps
from tilewright.atoms.tensor_memory import COLUMNS, DEALLOC
from tilewright.atoms.tensor_memory_state import TensorMemories, TensorMemory, allocate_in_all, uniform
from tilewright.ir.core import Constant, Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.types import I32, MemSpace, PtrType

TCGEN05 = (100, 103, 110)
"""The compute capabilities whose architecture-specific targets have the instructions of tensor memory."""
LEAST = 32


def allocatable(columns: int) -> bool:
    """Whether this number of columns can be allocated at once.

    >>> [n for n in range(600) if allocatable(n)]
    [32, 64, 128, 256, 512]
    """
    return LEAST <= columns <= COLUMNS and columns.bit_count() == 1


class _Columns(Instruction):
    """An instruction with a number of columns as its second operand. ``place`` is the end of its mnemonic, and how PTX
    writes the first operand."""

    place: ClassVar[str]
    ctas: int = 1
    min_arch = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05

    def verify(self, op: Op) -> None:
        need(op, len(op.operands) == 2 and op.operands[1].type == I32, f"{self.name}: takes a place and an Int32")
        count = op.operands[1]
        if isinstance(count, Constant):
            need(op, allocatable(int(count.value)), f"{self.name}: {_wrong_count(int(count.value))}")

    def mnemonic(self) -> str:
        return f"{self.name}.cta_group::{self.ctas}"

    def _counts(self, lanes: Lanes, value: Any) -> Any:
        active_warps(lanes, self)
        lanes.beside(TensorMemories).agree(lanes, self.mnemonic(), self.ctas)
        counts = uniform(lanes, f"{self.name}: the number of columns", value)
        for count in counts.tolist():
            if not allocatable(int(count)):
                raise lanes.fault(f"{self.name}: {_wrong_count(int(count))}", None)
        return counts

    def emit(self, out: Emitter, op: Op) -> None:
        place, count = op.operands
        address = out.shared_address(place) if isinstance(place.type, PtrType) else out.value(place)
        text = f"{self.mnemonic()}.sync.aligned.{self.place}, %1;"
        out.line(f'asm volatile("{text}" :: "r"({address}), "r"({out.value(count)}) : "memory");')


def _wrong_count(count: int) -> str:
    return f"{count} columns cannot be allocated: the number is a power of two from {LEAST} to {COLUMNS}"


@dataclass(frozen=True)
class TmemAlloc(_Columns):
    """``tcgen05.alloc``: allocate columns, and write their address to shared memory. Waits until they are free.

    Operands: the pointer into shared memory (of an i32), the number of columns.
    """

    ctas: int = 1

    name = "tcgen05.alloc"
    place = "shared::cta.b32 [%0]"
    blocking = True
    accesses = (Access("write", "destination", (MemSpace.SMEM,), bits=32),)

    def verify(self, op: Op) -> None:
        super().verify(op)
        kind = op.operands[0].type
        fits = isinstance(kind, PtrType) and kind.space is MemSpace.SMEM and kind.elem.width == 32 and kind.align >= 4
        need(op, fits, f"{self.name}: writes the address to 32 bits of shared memory, not to {kind}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        pointer, count = operands
        counts = self._counts(lanes, count)
        sides = lanes.beside(TensorMemories).sides(lanes, self.mnemonic(), self.ctas)
        own = {row: memory for row, _, memory in lanes.beside(TensorMemories).of(lanes)}
        for memory in own.values():
            if not memory.permit:
                raise lanes.fault(
                    "tcgen05.alloc after the block has given up its permit",
                    None,
                    "allocate everything first, then relinquish_tmem_alloc_permit",
                )
        done = np.ones(lanes.warps, bool)
        done[list(own)] = False
        act = lanes.issued()

        def ready() -> Any:
            for row, both in sides:
                if done[row]:
                    continue
                first = self._granted(lanes, op, own[row], int(counts[row]), [memory for _, memory in both])
                if first is None:
                    continue
                done[row] = True
                mask = np.zeros(32 * lanes.warps, bool)
                mask[32 * row] = True
                values = np.full((32 * lanes.warps, 1), first, np.int32)
                act(partial(lanes.store, pointer, values, mask))
            return done

        lanes.wait_until(
            ready,
            "columns of tensor memory to be freed" + (", or for the other block of the pair" if self.ctas == 2 else ""),
            fix="dealloc_tmem what is not needed, or allocate fewer"
            + ("; one warp of each block of the pair allocates" if self.ctas == 2 else ""),
        )
        return ()

    def _granted(self, lanes: Lanes, op: Op, own: TensorMemory, count: int, memories: list[TensorMemory]) -> int | None:
        """The first column that a warp of a block gets, once all blocks that allocate together have come. Warps of one
        block, which may execute this together, get theirs one after another."""
        if own.granted is None:
            own.asked = count
            if not all(memory.asked for memory in memories):
                return None
            if len({memory.asked for memory in memories}) > 1:
                requests = " and ".join(str(memory.asked) for memory in memories)
                raise lanes.fault(
                    f"{self.mnemonic()}: the blocks of a pair allocate {requests} columns",
                    None,
                    "let both allocate the same number",
                )
            first = allocate_in_all(memories, own.asked, op)
            if first is None:
                return None
            for memory in memories:
                memory.asked, memory.granted = 0, first
        first, own.granted = own.granted, None
        return first


@dataclass(frozen=True)
class TmemDealloc(_Columns):
    """``tcgen05.dealloc``: free columns. Operands: their address (i32), and how many they are."""

    ctas: int = 1

    name = DEALLOC
    place = "b32 %0"
    accesses = ()

    def verify(self, op: Op) -> None:
        super().verify(op)
        need(op, op.operands[0].type == I32, f"{self.name}: takes the address of tensor memory, an Int32")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        counts = self._counts(lanes, operands[1])
        addresses = uniform(lanes, "tcgen05.dealloc: the address", operands[0])
        for row, _, memory in lanes.beside(TensorMemories).of(lanes):
            address, count = int(addresses[row]), int(counts[row])
            wrong = memory.in_use(slice(address, address + count))
            if wrong is not None:
                raise lanes.fault(f"{self.mnemonic()} {wrong[0]}", None, wrong[1])
            if (address, count) in memory.allocated:
                # What other warps do there comes before: to free is to overwrite.
                lanes.tensor_memory(row, memory, True, [(slice(None), slice(address, address + count))])
            if not memory.free(address, count):
                if memory.was_freed(address, count) and self._harmless(lanes):
                    continue
                allocated = ", ".join(f"{n} from column {first} on" for first, n in memory.allocated) or "none"
                raise lanes.fault(
                    f"tcgen05.dealloc of {count} columns at {address:#x}, which are not allocated as such: {allocated}",
                    None,
                    "free each allocation once, by one warp, by its own address and number of columns",
                )
        return ()

    def _harmless(self, lanes: Lanes) -> bool:
        """Whether columns that are free may be freed again, which takes them away from a block of the same
        multiprocessor that has got them in between. Published kernels, which fill a multiprocessor, let each warp of
        their epilogue free them."""
        check = "tensor-memory"
        return lanes.lets_pass(check) or (lanes.alone_on_multiprocessor() and not lanes.is_thorough(check))


@dataclass(frozen=True)
class TmemRelinquish(Instruction):
    """``tcgen05.relinquish_alloc_permit``: this block allocates no more, so that others can."""

    ctas: int = 1

    name = "tcgen05.relinquish_alloc_permit"
    min_arch = 100
    features = TCGEN05
    accesses = ()

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        active_warps(lanes, self)
        lanes.beside(TensorMemories).agree(lanes, f"{self.name}.cta_group::{self.ctas}", self.ctas)
        for _, _, memory in lanes.beside(TensorMemories).of(lanes):
            memory.permit = False
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f'asm volatile("{self.name}.cta_group::{self.ctas}.sync.aligned;" ::: "memory");')
