"""Launches that were made before, made again for operands at other addresses.

What a launch needs beside addresses does not change: extents, strides, the numbers of the decomposition. So a launch
copies the list of values, puts the new addresses in and calls the host code. After a few launches on a GPU even the
host code is spared (``cuda.moving``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from tilewright.ir.runtime import DevicePointer
from tilewright.lang.launch.host import HostCode
from tilewright.lang.launch.machine import machine_of

MOVING_AFTER = 4
"""Launches of a binding by its host code before its arguments are only moved: that takes some 100 us, and saves 8 to
20 us a launch."""
DISTANCE = 1 << 24
"""Bytes; a multiple of every alignment that host code may ask for."""


class Slot(NamedTuple):
    """A value of the host code that is an address: its place in the list, whose it is, where the array begins and ends,
    seen from there, and how many bytes after the operand's address it begins (a later batch). ``number``: it is an
    address in a number of 64 bits, not a pointer."""

    place: int
    operand: int
    low: int
    high: int
    shift: int
    number: bool = False


class PreparedLaunch(NamedTuple):
    """One launch: its host code, the values of that, and which of them are addresses of operands. ``exposed``: for a
    machine that checks bounds, the arrays (operand, first and last byte from its address on) that the kernel finds by
    addresses in numbers."""

    code: HostCode
    values: list[Any]
    slots: list[Slot]
    exposed: tuple[tuple[int, int, int], ...] = ()

    def with_rows(self, rows: int, made: Any, mode: Mapping[int, int]) -> PreparedLaunch:
        """The launch of ``made``, which has as many rows: mode ``mode[operand]`` of what the kernel sees of A, C, D.
        The extents of a tensor's modes are the values behind its address."""
        values, slots = self.values.copy(), self.slots.copy()
        for i, slot in enumerate(slots):
            if slot.operand in mode:
                values[slot.place + 1 + mode[slot.operand]] = rows
                if values[1] is not None:  # a machine that checks bounds
                    array = made.problem.matrices[slot.operand].array
                    low, high = array.bounds
                    slots[i] = slot._replace(low=low - array.address, high=high - array.address)
        return PreparedLaunch(self.code, values, slots)

    def at(self, addresses: Sequence[int]) -> list[Any]:
        """The values for operands at ``addresses``."""
        values = self.values.copy()
        if values[1] is None:
            for place, operand, _, _, shift, _ in self.slots:
                values[place] = addresses[operand] + shift
        else:  # a machine that checks bounds
            for place, operand, low, high, shift, number in self.slots:
                at = addresses[operand] + shift
                values[place] = at if number else DevicePointer(at, values[1], at + low, at + high, None)
        return values

    def run(self, addresses: Sequence[int]) -> None:
        """Launch by the host code."""
        with ExitStack() as known:
            if self.exposed and self.values[1] is not None:
                machine: Any = machine_of(self.values[1])
                for operand, low, high in self.exposed:
                    known.enter_context(machine.exposed(addresses[operand] + low, addresses[operand] + high))
            self.code.body(*self.at(addresses))


Binding = list[PreparedLaunch]
"""The launches of a product, in order."""


class Launches:
    """The launches of a product on ``device``, one binding for all streams or, with a ``workspace``, one for each."""

    def __init__(self, device: str, workspace: bool) -> None:
        self.device, self.workspace = device, workspace
        self.number = int(device.partition(":")[2] or 0)
        self.bindings: dict[Any, Binding] = {}
        self.launches: dict[Any, int] = {}
        """By binding: how often its host code has run."""
        self.moving: dict[Any, list[Callable[[int, Sequence[int]], None]]] = {}
        """By binding: its launches for operands at any addresses; none where there can be no such launch."""

    def bind(self, stream: Any) -> Binding:
        """The launches on a stream that has no binding yet."""
        raise NotImplementedError

    def launch(self, addresses: tuple[int, ...]) -> None:
        """Launch for operands at these addresses, on PyTorch's current stream, or the default one without PyTorch."""
        stream = current_stream(self.number, self.workspace)
        of_binding = stream if self.workspace else 0
        if moving := self.moving.get(of_binding):
            for move in moving:
                move(stream, addresses)
            return
        for step in self.bindings.get(of_binding) or self.bind(stream):
            step.run(addresses)
        if stream is not CAPTURED and of_binding not in self.moving:
            self.count(stream, of_binding, addresses)

    def count(self, stream: Any, of_binding: Any, addresses: tuple[int, ...]) -> None:
        """A launch by host code on a GPU is the last of its binding after a few."""
        binding, before = self.bindings[of_binding], self.launches.get(of_binding, 0)
        self.launches[of_binding] = before + 1
        if before >= MOVING_AFTER:
            checked = any(step.values[1] is not None for step in binding)  # by a machine that looks at bounds
            self.moving[of_binding] = [] if checked else self.moved(binding, stream, addresses)

    def moved(self, binding: Binding, stream: Any, addresses: tuple[int, ...]) -> list[Any]:
        """The launches of a binding for operands at any addresses, without running host code: that saves some 20 us of
        a launch at addresses that are not kept. Empty where a launch depends on addresses in another way."""
        further = [at + (number + 1) * DISTANCE for number, at in enumerate(addresses)]
        distances = {(number + 1) * DISTANCE: number for number in range(len(addresses))}
        copies: list[Any] = []
        for step in binding:
            values, moved = step.at(addresses)[2:], step.at(further)[2:]
            launches = step.code.moving(self.device, values, moved, stream, addresses, distances)
            if not launches:
                return []
            copies += launches
        return copies


class RecordedLaunches(Launches):
    """Launches of compiled functions, which need no workspace."""

    def __init__(self, device: str) -> None:
        super().__init__(device, workspace=False)
        self.bindings[0] = []

    def bind(self, stream: Any) -> Binding:
        return self.bindings[0]


CAPTURED = object()
_RAW_STREAM: list[Callable[[int], int]] = []
"""PyTorch's function for the handle of the current stream, from when PyTorch has begun with CUDA: it does not end, and
to ask takes 0.3 us of each launch."""


def current_stream(device: int, apart: bool) -> Any:
    """The handle of PyTorch's current stream of a device; with ``apart``, CAPTURED while a graph captures it. The
    default stream, 0, cannot be captured."""
    if not _RAW_STREAM:
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return 0
        _RAW_STREAM.append(torch._C._cuda_getCurrentRawStream)
    stream = _RAW_STREAM[0](device)
    return CAPTURED if apart and stream and is_captured() else stream


def is_captured() -> bool:
    """Whether what PyTorch's current stream is given now goes into a graph."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
