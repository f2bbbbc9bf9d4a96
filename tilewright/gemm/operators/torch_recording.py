"""The first call of a geometry, recorded: what it launches, and whose each address among the arguments is.

Every address is looked up in the memory of the given tensors and in what PyTorch allocated during the call. An address
from anywhere else, and any operation of PyTorch's but views and allocations, means that the call cannot be repeated by
its launches alone: it is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tilewright.gemm.host.recorded import Record, RecordedLaunch, RecordedProduct, recording
from tilewright.gemm.operators.epilogues import written_numbers
from tilewright.gemm.operators.launches import Launches, PreparedLaunch, RecordedLaunches, Slot
from tilewright.gemm.operators.recorded_call import PAGE, NewTensor, Place, RepeatedCall, Scratch
from tilewright.ir.runtime import DevicePointer

EMPTY = ("aten::empty", "aten::new_empty", "aten::empty_strided", "aten::new_empty_strided", "aten::empty_like")
ZEROS = ("aten::zeros", "aten::new_zeros")
LEAST_ADDRESS = 1 << 32
"""No extent, stride or count of a launch is as large and equals the address of a tensor."""


class NotKept(Exception):
    """The call did something that is not a launch on known memory."""


class Region(NamedTuple):
    """Memory from ``low`` to ``high``, of what begins at ``address``."""

    address: int
    low: int
    high: int


class MemoryOfCall(TorchDispatchMode):
    """What PyTorch allocates, and whether it does anything else with memory."""

    def __init__(self) -> None:
        super().__init__()
        self.fresh: list[tuple[torch.Tensor, bool]] = []
        """New tensors, kept so that none has the address of another, and whether they are zero."""
        self.only_launches = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name
        if name in EMPTY or name in ZEROS:
            self.fresh.append((result, name in ZEROS))
        elif not func.is_view:
            self.only_launches = False
        return result


def recorded(run: Callable[[], Any], tensors: Sequence[torch.Tensor], out: Any) -> tuple[Any, RepeatedCall | None]:
    """The result of ``run()``, and how to repeat it for other tensors than those of ``tensors``; None where that cannot
    be."""
    with recording() as record, MemoryOfCall() as memory:
        result = run()
    if not record.launches or not memory.only_launches or not isinstance(result, torch.Tensor):
        return result, None
    try:
        return result, Attribution(tensors, memory.fresh, out, result).call(record)
    except NotKept:
        return result, None


class Attribution:
    """Whose the addresses of a recorded call are. Operands are numbered: the given tensors, a new result, then what was
    allocated in between."""

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        fresh: Sequence[tuple[torch.Tensor, bool]],
        out: Any,
        result: torch.Tensor,
    ) -> None:
        self.given, self.result, self.new = tensors, result, None
        self.regions = [region_of(x) for x in tensors]
        of_result = result.untyped_storage().data_ptr()
        if out is None:
            self.new = new_tensor(result, fresh)
            self.regions.append(storage_region(result))
        elif result is not out:
            raise NotKept
        self.written = {next(i for i, x in enumerate(tensors) if x is out) if out is not None else len(tensors)}
        between = [(x, zero) for x, zero in fresh if x.untyped_storage().data_ptr() != of_result and x.numel()]
        self.fixed = len(self.regions)
        self.regions += [storage_region(x) for x, _ in between]
        self.scratch = scratch_of(self.regions[self.fixed :], [zero for _, zero in between], result.device)
        if any(region.address == 0 for region in self.regions):
            raise NotKept
        self.apart: set[tuple[int, int, int]] = set()
        self.device = "cpu" if result.is_cpu else f"cuda:{result.get_device()}"

    def place(self, address: int) -> Place:
        """The owner of an address: of the memory that begins there, or that it lies in."""
        holders = [i for i, x in enumerate(self.regions) if x.address == address or x.low <= address < x.high]
        if not holders:
            raise NotKept
        holders.sort(key=lambda i: self.regions[i].address != address)
        first, *others = holders
        for other in others:
            self.apart.add((first, other, self.regions[other].address - self.regions[first].address))
        return Place(first, address - self.regions[first].address)

    def call(self, record: Record) -> RepeatedCall:
        """The call, to be repeated."""
        launches: list[tuple[Launches, tuple[Place, ...] | None]] = []
        for made in record.launches:
            if isinstance(made, RecordedProduct):
                launches.append(self.product(made))
                continue
            if not launches or not isinstance(launches[-1][0], RecordedLaunches):
                launches.append((RecordedLaunches(self.device), None))
            launches[-1][0].bindings[0].append(self.launch(made))
        for made in record.launches:
            made.prepared.release() if isinstance(made, RecordedProduct) else made.executor.release()
        checks = tuple([(check, next(i for i, y in enumerate(self.given) if y is x)) for check, x in record.checks])
        fixed = self.regions[: self.fixed]
        spans = tuple([(low - address, high - address) for address, low, high in fixed])
        written = tuple(sorted(i for i in self.written if i < self.fixed))
        apart = tuple(sorted(self.apart))
        one = tuple([(i, j) for j in written for i, x in enumerate(fixed) if i != j and x == fixed[j]])
        known = tuple(launches), self.new, spans, written, self.scratch, apart, one, checks
        return RepeatedCall(*known, record.alone, tuple(record.decisions))

    def launch(self, made: RecordedLaunch) -> PreparedLaunch:
        """A compiled function with the places of its pointers, and of addresses in numbers."""
        code = made.executor._code
        values: list[Any] = list(code.ready(self.device))
        checked, slots = values[1] is not None, []
        for number, value in enumerate(made.values):
            if isinstance(value, DevicePointer):
                place = self.place(value.address)
                low, high = value.low - value.address, value.high - value.address
                slots.append(Slot(len(values), place.operand, low, high, place.shift))
                value = value._replace(owner=None) if checked else value.address
                if number in code.written:
                    self.written.add(place.operand)
            elif isinstance(value, int) and value >= LEAST_ADDRESS and any(x.address == value for x in self.regions):
                slots.append(Slot(len(values), self.place(value).operand, 0, 0, 0, number=True))
            values.append(value)
        exposed = []
        for low, high in made.exposed:
            place = self.place(low)
            exposed.append((place.operand, place.shift, place.shift + high - low))
        return PreparedLaunch(code, values, slots, tuple(exposed))

    def product(self, made: RecordedProduct) -> tuple[Launches, tuple[Place, ...]]:
        """A prepared product, and the places of its operands."""
        prepared = made.prepared
        places = tuple(map(self.place, made.addresses))
        first = 4 + len(prepared.problem.parts)
        numbers = 3, *(first + number for number in written_numbers(prepared.function))
        self.written.update(places[number].operand for number in numbers)
        return prepared, places


def region_of(x: torch.Tensor) -> Region:
    """The memory of a tensor's elements."""
    address = x.data_ptr()
    if 0 in x.shape:
        return Region(address, address, address)
    last = sum((n - 1) * d for n, d in zip(x.shape, x.stride(), strict=True))
    return Region(address, address, address + (last + 1) * x.element_size())


def storage_region(x: torch.Tensor) -> Region:
    """All memory behind a tensor."""
    storage = x.untyped_storage()
    return Region(x.data_ptr(), storage.data_ptr(), storage.data_ptr() + storage.nbytes())


def new_tensor(result: torch.Tensor, fresh: Sequence[tuple[torch.Tensor, bool]]) -> NewTensor:
    """A result in memory that was allocated in the call, and that launches alone have written."""
    storage, size = result.untyped_storage(), result.element_size()
    if not any(x.untyped_storage().data_ptr() == storage.data_ptr() and not zero for x, zero in fresh):
        raise NotKept
    shape, stride = tuple(result.shape), tuple(result.stride())
    return NewTensor(shape, stride, result.dtype, result.device, storage.nbytes() // size, result.storage_offset())


def scratch_of(regions: Sequence[Region], zeros: Sequence[bool], device: torch.device) -> Scratch | None:
    """One piece of memory for all regions, each of which has the remainder that it had."""
    if not regions:
        return None
    begins: list[int] = []
    of_zeros: list[tuple[int, int]] = []
    end = 0
    for region, zero in zip(regions, zeros, strict=True):
        begin = end + (region.address - end) % PAGE
        end = begin + region.high - region.address
        begins.append(begin)
        if zero:
            of_zeros.append((begin, end))
    return Scratch(end, tuple(begins), tuple(of_zeros), device)
