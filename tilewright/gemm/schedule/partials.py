"""Partial sums of an output tile in memory: where each thread of a block puts its accumulators, and adds up others'.

A *slot* holds the accumulators of one block, thread by thread: neighbours in a warp have neighbouring vectors of 16
bytes, so that a warp's access is whole lines of global memory and free of bank conflicts in shared memory. The threads
of any block of the same kernel find the accumulators that belong to theirs at the same places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

import tilewright as cutlass
from tilewright import cute
from tilewright.gemm.addressing import aligned_pointer

READ_AT_ONCE = 32
"""Accumulators of one thread that are fetched before the first is needed."""


@dataclass(frozen=True)
class Partials:
    """``threads`` of a block hold ``accumulators`` of type ``dtype`` each."""

    threads: int
    accumulators: int
    dtype: Any

    @property
    def elements(self) -> int:
        """The elements of a slot."""
        return self.threads * self.accumulators

    @property
    def vector(self) -> int:
        """Elements of one access."""
        return 128 // int(self.dtype.width)

    def slot(self, base: Any, tidx: Any, number: Any = None) -> cute.Tensor:
        """Thread ``tidx``'s accumulators in the slot at ``base``, or ``number`` slots after it, as (vector,
        vectors)."""
        width = self.vector
        layout = cute.make_layout((width, self.accumulators // width), stride=(1, width * self.threads))
        # One sum of integers, not two steps of a pointer: these would hold two more registers.
        offset = tidx * width if number is None else number * self.elements + tidx * width
        return cute.make_tensor(aligned_pointer(base + offset, 16), layout)

    @cute.jit
    def store(self, base: Any, tidx: Any, acc: cute.Tensor, number: Any = None) -> None:
        """Put this thread's accumulators into a slot."""
        slot = self.slot(base, tidx, number)
        cute.autovec_copy(cute.make_tensor(acc.iterator, cute.make_layout(slot.shape)), slot)

    @cute.jit
    def add_to(self, acc: cute.Tensor, base: Any, tidx: Any, number: Any = None) -> None:
        """acc += what a slot has for this thread."""
        theirs = self.slot(base, tidx, number)
        ours = cute.make_tensor(acc.iterator, cute.make_layout(theirs.shape))
        vector, vectors = theirs.shape
        at_once = (vector, gcd(READ_AT_ONCE // vector, vectors))
        for part in cutlass.range_constexpr(vectors // at_once[1]):
            fetched = cute.make_rmem_tensor(at_once, self.dtype)  # (vector, vectors at once)
            cute.autovec_copy(cute.local_tile(theirs, at_once, (0, part)), fetched)
            sums = cute.local_tile(ours, at_once, (0, part))
            sums.store(sums.load() + fetched.load())

    def piece(self, base: Any, tidx: Any, index: Any, run: int, apart: int, number: Any = None) -> cute.Tensor:
        """This thread's accumulators in a slot that belong to part ``index`` of the tile, (vector, vectors of a run,
        runs): of every ``apart`` accumulators the ``run`` from ``index * run`` on."""
        step = self.vector * self.threads
        layout = cute.make_layout(
            (self.vector, run // self.vector, self.accumulators // apart), stride=(1, step, apart // self.vector * step)
        )
        start = index * (run // self.vector * step)
        offset = tidx * self.vector + start
        if number is not None:
            offset = number * self.elements + offset
        return cute.make_tensor(aligned_pointer(base + offset, 16), layout)

    @cute.jit
    def fetch(self, base: Any, tidx: Any, index: Any, run: int, apart: int, number: Any = None) -> cute.Tensor:
        """The same in registers."""
        theirs = self.piece(base, tidx, index, run, apart, number)
        here = cute.make_rmem_tensor(theirs.shape, self.dtype)
        cute.autovec_copy(theirs, here)
        return here

    @cute.jit
    def add_atomically(self, base: Any, tidx: Any, acc: cute.Tensor, number: Any = None) -> None:
        """Add this thread's accumulators to a slot, while other blocks may do so, too."""
        slot = self.slot(base, tidx, number)
        ours = cute.make_tensor(acc.iterator, cute.make_layout(slot.shape))
        for i in cutlass.range_constexpr(cute.size(slot)):
            cute.arch.atomic_add(slot.iterator + slot.layout(i), ours[i])

    @cute.jit
    def add_up(
        self, bases: Callable[[int], Any], count: int, tidx: Any, index: Any, run: int, apart: int
    ) -> cute.Tensor:
        """The sums of part ``index`` over the slots ``bases(0)``, ``bases(1)``, ... in this order, in registers:
        (vector, vectors of a run, runs). All are fetched before the first is added."""
        fetched = []
        for peer in cutlass.range_constexpr(count):
            fetched.append(self.fetch(bases(peer), tidx, index, run, apart))
        sums = fetched[0]
        for peer in cutlass.range_constexpr(1, count):
            sums.store(sums.load() + fetched[peer].load())
        return sums
