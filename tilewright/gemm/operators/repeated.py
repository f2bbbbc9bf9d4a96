"""The short way: a PyTorch product that was launched before, launched again on other tensors of the same geometry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from tilewright.gemm.arrays import asks_for_gradient
from tilewright.gemm.operators.arrays import Unwritten
from tilewright.gemm.operators.epilogues import written_numbers
from tilewright.gemm.operators.launches import is_captured
from tilewright.gemm.operators.prepared import Prepared
from tilewright.lang.arguments.arrays import array_of

MOST_ADDRESSES = 512
"""Addresses of one geometry whose results are known to be apart from what they are made of."""

OFTEN = 64
"""Launches of one geometry by a kernel that is good for many numbers of rows, before it is worth its best one."""


class Repetitions:
    """Done when a geometry has been launched ``OFTEN`` times: each launch asks once."""

    def __init__(self) -> None:
        self.left = OFTEN

    def done(self) -> bool:
        self.left -= 1
        return self.left < 0


Until = Future[None] | Repetitions | None


class WritesApart:
    """Launches that write some of their operands, and must not write others."""

    spans: tuple[tuple[int, int], ...]
    """Where each operand begins and ends, relative to its address."""
    written: tuple[int, ...]
    disjoint: set[tuple[int, ...]]
    """Addresses for which :meth:`results_are_disjoint` said so: its answer depends on them alone."""

    def may_be_one(self, operand: int, written: int) -> bool:
        """Whether an operand may be one that is written, at the same address."""
        return False

    def may_write(self, addresses: tuple[int, ...]) -> bool:
        """:meth:`results_are_disjoint`, asked once for each of a few addresses: 1 us of the 7 of a repeated call."""
        if addresses in self.disjoint:
            return True
        if not self.results_are_disjoint(addresses):
            return False
        if len(self.disjoint) >= MOST_ADDRESSES:
            self.disjoint.clear()
        self.disjoint.add(addresses)
        return True

    def results_are_disjoint(self, addresses: tuple[int, ...]) -> bool:
        """Whether what is written overlaps with nothing else, but for what may be one array."""
        for written in self.written:
            low, high = self.spans[written]
            at = addresses[written]
            low, high = at + low, at + high
            for operand, ((first, last), address) in enumerate(zip(self.spans, addresses, strict=False)):
                if operand != written and address + first < high and low < address + last:
                    if address != addresses[written] or not self.may_be_one(operand, written):
                        return False
        return True


@dataclass(frozen=True)
class RepeatedProduct(WritesApart):
    """What is left of a product's geometry: its launch, what the result looks like, and where each operand begins and
    ends, relative to its address: A, B, C, D, and the vectors of the epilogue."""

    prepared: Prepared
    shape: tuple[int, ...]
    dtype: Any
    spans: tuple[tuple[int, int], ...]
    same: bool
    """Whether C and D have one layout, so that one may be the other."""
    written: tuple[int, ...] = (3,)
    """The operands that are written: D, and outputs of the epilogue."""
    until: Until = None
    """When a better kernel is compiled than the one that multiplies meanwhile, or is worth that; None where this is the
    one."""
    unwritten: tuple[int, tuple[int, ...], tuple[int, ...]] | None = None
    """For a result that no kernel writes: the number of elements of its memory, its shape and strides."""
    disjoint: set[tuple[int, ...]] = field(default_factory=set, compare=False)
    """Addresses for which :meth:`results_are_disjoint` said so: its answer depends on them alone."""

    @cached_property
    def empty(self) -> Callable[..., Any]:
        """Makes a new result."""
        from tilewright.gemm.operators.torch_memory import new_tensors

        kind = self.dtype, self.prepared.device
        if self.unwritten is not None:
            count, shape, steps = self.unwritten
            make = new_tensors((count,), (1,), *kind)
            return lambda: make().as_strided(shape, steps)
        strides = accumulate(self.shape[:0:-1], lambda step, extent: step * max(1, extent), initial=1)
        return new_tensors(self.shape, tuple(strides)[::-1][: len(self.shape)], *kind)  # of a number: no stride

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        shape: tuple[int, ...],
        dtype: Any,
        vectors: Sequence[Any],
        until: Until = None,
    ) -> RepeatedProduct:
        problem = prepared.problem
        arrays = [matrix.array for matrix in problem.matrices] + [array_of(vector) for vector in vectors]
        spans = [(low - array.address, high - array.address) for array in arrays for low, high in (array.bounds,)]
        written = (3, *(4 + number for number in written_numbers(prepared.function)))
        unwritten, D = None, problem.D
        if isinstance(D, Unwritten):
            (low, high), size = D.array.bounds, D.dtype.bytes
            unwritten = (high - low) // size, D.shape[:2], D.stride[:2]
        same = problem.C.stride == problem.D.stride
        return cls(prepared, shape, dtype, tuple(spans), same, written, until, unwritten)

    def may_be_one(self, operand: int, written: int) -> bool:
        return self.same and {operand, written} == {2, 3}


def torch_key(*tensors: Any) -> tuple[Any, ...]:
    """The key of a launch, without the addresses themselves."""
    return tuple([None if t is None else geometry(t) for t in tensors])


def geometry(t: Any) -> tuple[Any, ...]:
    """What launches of a PyTorch tensor depend on beside its address."""
    return t.dtype, t.shape, t.stride(), t.data_ptr() & 15, t.get_device(), t.is_neg()


def launch_repeated(repeated: RepeatedProduct, a: Any, b: Any, out: Any, c: Any, vectors: tuple[Any, ...]) -> Any:
    """The result; None where the operands have to be looked at once more: a result that overlaps something, or that
    asks for a gradient, tensors without memory, a better kernel that is compiled by now, or is worth that."""
    if repeated.until is not None and (repeated.until.done() or is_captured()):
        return None
    result = repeated.empty() if out is None else out
    at = result.data_ptr()
    addresses: tuple[int, ...] = a.data_ptr(), b.data_ptr(), at if c is None else c.data_ptr(), at
    if vectors:
        addresses += tuple([vector.data_ptr() for vector in vectors])
    if 0 in addresses:
        return None
    fresh = out is None and len(repeated.written) == 1
    if not fresh and (asks_for_gradient(result) or not repeated.may_write(addresses)):
        return None
    repeated.prepared.launch(addresses)
    return result
