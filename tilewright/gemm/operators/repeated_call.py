"""Calls of PyTorch tensors that repeat an earlier one of the same geometry: only its launches are made again.

What an operator launches depends on the geometry of its tensors and on its options alone, and this is the key. The
first call of a key is recorded (``torch_recording``): its launches, which addresses among their arguments are those of
the tensors, the memory that it took for the result and in between. A call that did anything else with memory, as a copy
of an operand by PyTorch, is not kept. ``matmul`` and what is made of it have launches that are kept in another
way (:class:`~tilewright.gemm.operators.repeated.RepeatedProduct`), as these also change their number of rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

from tilewright.gemm.host.plan import simulated_gpu
from tilewright.gemm.host.recorded import current
from tilewright.gemm.operators.launches import Launches
from tilewright.gemm.operators.open_extents import Modes, OpenCall, closed, key_without, last_offset, opened
from tilewright.gemm.operators.repeated import WritesApart, torch_key
from tilewright.gemm.tuning import store

REMEMBERED = 4096
"""Calls that are kept; more than that are forgotten together."""
PAGE = 512
"""Bytes: memory for what is between launches has the remainder by it that it had at first."""
CALLS: dict[Any, RepeatedCall] = {}
"""The launches of calls, by geometry, options and operator."""
OPEN: dict[Any, OpenCall] = {}
"""The same without extents that are open."""


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
    disjoint: set[tuple[int, ...]] = field(default_factory=set, compare=False)

    def may_be_one(self, operand: int, written: int) -> bool:
        return (operand, written) in self.one

    def launch(self, given: Sequence[Any], out: Any) -> Any:
        """The result for other tensors of the geometry; None where they have to be looked at at length: one without
        memory, or a result that overlaps something."""
        addresses = [x.data_ptr() for x in given]
        if self.result is None:
            result = out
        else:
            result = self.result.make()
            addresses.append(result.data_ptr())
        if 0 in addresses or (self.is_guarded and not self.may_launch(given, addresses)):
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

    def may_launch(self, given: Sequence[Any], addresses: Sequence[int]) -> bool:
        """Whether the launches may be made for these tensors; ArgumentError for elements that are refused."""
        for one, other, distance in self.apart:
            if addresses[other] - addresses[one] != distance:
                return False
        if not self.may_write(tuple(addresses)):
            return False
        for check, operand in self.checks:
            check(given[operand])
        return True

    @cached_property
    def steps(self) -> list[tuple[Launches, Callable[[tuple[int, ...]], tuple[int, ...]] | None]]:
        """The launches, each with what picks its addresses out of all."""
        return [(launches, None if places is None else picked(places)) for launches, places in self.launches]


def span(x: Any) -> tuple[int, int]:
    """Where a tensor's elements begin and end, seen from its address."""
    return 0, (last_offset(x) + 1) * x.element_size() if x.numel() else 0


def picked(places: tuple[Place, ...]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """Gives the addresses at ``places``: at the beginnings of their tensors by one call of C, 0.5 us less."""
    if any(place.shift for place in places):
        return lambda addresses: tuple([addresses[operand] + shift for operand, shift in places])
    found: Any = itemgetter(*[place.operand for place in places])  # of four operands at least
    return found


def is_torch(a: Any) -> bool:
    """Whether a call with ``a`` is one of PyTorch tensors."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(a, torch.Tensor)


def repeated_call(
    operator: str,
    tensors: Sequence[Any],
    out: Any,
    options: Any,
    run: Callable[[], Any],
    open_modes: Callable[[Sequence[Any]], Sequence[Modes]] = closed,
) -> Any:
    """What ``run()`` gives: the result of an ``operator`` for PyTorch tensors (None: not given) and ``options``, which
    is ``out`` if that is given. Where such a call was made before, its launches are made again; ``open_modes`` names
    the modes whose extents may then be others (:mod:`~tilewright.gemm.operators.open_extents`)."""
    if current() is not None:  # a part of a call that is recorded
        return run()
    try:
        key = torch_key(*tensors), options, simulated_gpu() if tensors[0].is_cpu else None, operator
        known = CALLS.get(key)
    except (RuntimeError, TypeError, AttributeError):  # no strides, no hash: whatever it is, it is an error
        return run()
    given = [x for x in tensors if x is not None]
    others: OpenCall | None = None
    if known is None and (found := opened(tensors, open_modes(tensors))) is not None:
        others = OPEN.setdefault((key_without(tensors, found), *key[1:]), OpenCall())
        known = others.call(found.extents, tuple([span(x) for x in given]))
        if known is not None:
            keep(key, known)
    if known is not None:
        result = known.launch(given, out)
        if result is not None:
            return result
    from tilewright.gemm.operators.torch_recording import recorded

    result, made = recorded(run, given, out)
    if made is not None:
        keep(key, made)
        if others is not None and found is not None:
            others.learn(made, found.extents)
    return result


def keep(key: Any, call: RepeatedCall) -> None:
    """Keep a call for its repetition."""
    if len(CALLS) >= REMEMBERED:
        forget()
    CALLS[key] = call


def forget() -> None:
    """Keep no call: the next one of each geometry is planned at length."""
    CALLS.clear()
    OPEN.clear()


store.when_kept(forget)
