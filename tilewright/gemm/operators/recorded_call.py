"""What is kept of a call of PyTorch tensors: its launches, and whose each address among their arguments is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

from tilewright.gemm.host.recorded import Decision
from tilewright.gemm.operators.launches import Launches
from tilewright.gemm.operators.repeated import WritesApart

PAGE = 512
"""Bytes: memory for what is between launches has the remainder by it that it had at first."""


class Place(NamedTuple):
    """An address: that of a given tensor, the result or a part of the memory in between, by number, and bytes after
    it."""

    operand: int
    shift: int


@dataclass(frozen=True)
class NewTensor:
    """A tensor in memory of its own, of ``elements``."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any
    device: Any
    elements: int
    offset: int

    @property
    def spare(self) -> int:
        """Elements of the memory that are not between the first and the last one."""
        return self.elements - 1 - sum((n - 1) * d for n, d in zip(self.shape, self.stride, strict=True))

    def with_shape(self, shape: tuple[int, ...]) -> NewTensor:
        """One of another shape, with as many spare elements."""
        reach = 1 + sum((n - 1) * d for n, d in zip(shape, self.stride, strict=True))
        return NewTensor(shape, self.stride, self.dtype, self.device, reach + self.spare, self.offset)

    @cached_property
    def make(self) -> Callable[[], Any]:
        """Makes one; a view only where it has to be one: it takes 1 us more."""
        from tilewright.gemm.operators.torch_memory import new_tensors

        kind = self.dtype, self.device
        if (self.offset, self.spare) == (0, 0):
            return new_tensors(self.shape, self.stride, *kind)
        make = new_tensors((self.elements,), (1,), *kind)
        return lambda: make().as_strided(self.shape, self.stride, self.offset)


class Scratch(NamedTuple):
    """Memory between the launches of a call: where its parts begin in one piece, and those of them that are zero."""

    bytes: int
    begins: tuple[int, ...]
    zeros: tuple[tuple[int, int], ...]
    device: Any

    def make(self) -> tuple[Any, list[int]]:
        """The memory, and the addresses of its parts."""
        torch = sys.modules["torch"]
        memory = torch.empty(self.bytes + PAGE, dtype=torch.uint8, device=self.device)
        before = -memory.data_ptr() % PAGE
        for begin, end in self.zeros:
            memory[before + begin : before + end].zero_()
        first = memory.data_ptr() + before
        return memory, [first + begin for begin in self.begins]


@dataclass(frozen=True)
class RepeatedCall(WritesApart):
    """What is left of a call: its launches, with the places of the addresses of each (None: all addresses as they are);
    the result, or None where that is a given tensor; where each tensor begins and ends, relative to its address, and
    which are written."""

    launches: tuple[tuple[Launches, tuple[Place, ...] | None], ...]
    result: NewTensor | None
    spans: tuple[tuple[int, int], ...]
    written: tuple[int, ...]
    scratch: Scratch | None = None
    apart: tuple[tuple[int, int, int], ...] = ()
    """(tensor, tensor, distance): an address belonged to both of these, which were so many bytes apart. Where they are
    at another distance it is not known whose it is."""
    one: tuple[tuple[int, int], ...] = ()
    """Tensors that were one array, of which one was written: the call allows that."""
    checks: tuple[tuple[partial[None], int], ...] = ()
    """Checks of the elements of a tensor, in the simulator."""
    alone: bool = False
    """Whether it is no example for calls with other extents."""
    decisions: tuple[Decision, ...] = ()
    disjoint: set[tuple[int, ...]] = field(default_factory=set, compare=False)

    def may_be_one(self, operand: int, written: int) -> bool:
        return (operand, written) in self.one

    def launch(self, tensors: Sequence[Any], out: Any) -> Any:
        """The result for other tensors of the geometry; None where they have to be looked at at length: one without
        memory, or a result that overlaps something."""
        addresses = [x.data_ptr() for x in tensors]
        if self.result is None:
            result = out
        else:
            result = self.result.make()
            addresses.append(result.data_ptr())
        if 0 in addresses or (self.is_guarded and not self.may_launch(tensors, addresses)):
            return None
        if self.scratch is not None:
            memory, parts = self.scratch.make()  # it is kept until everything is launched
            addresses += parts
        everything = tuple(addresses)
        for launches, of_launch in self.steps:
            launches.launch(everything if of_launch is None else of_launch(everything))
        return result

    @cached_property
    def is_guarded(self) -> bool:
        """Whether there is anything to ask before a launch: where a new result is all that is written, there is not."""
        return self.result is None or len(self.written) > 1 or bool(self.apart or self.checks)

    def may_launch(self, tensors: Sequence[Any], addresses: Sequence[int]) -> bool:
        """Whether the launches may be made for these tensors; ArgumentError for elements that are refused."""
        for one, other, distance in self.apart:
            if addresses[other] - addresses[one] != distance:
                return False
        if not self.may_write(tuple(addresses)):
            return False
        for check, operand in self.checks:
            check(tensors[operand])
        return True

    @cached_property
    def steps(self) -> list[tuple[Launches, Callable[[tuple[int, ...]], tuple[int, ...]] | None]]:
        """The launches, each with what picks its addresses out of all."""
        return [(launches, None if places is None else picked(places)) for launches, places in self.launches]


def picked(places: tuple[Place, ...]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """Gives the addresses at ``places``: at the beginnings of their tensors by one call of C, 0.5 us less."""
    if any(place.shift for place in places):
        return lambda addresses: tuple([addresses[operand] + shift for operand, shift in places])
    getter: Any = itemgetter(*[place.operand for place in places])  # of four operands at least
    return getter
