"""Calls that differ from earlier ones in an extent, as the number of tokens, of which launches are kept.

What an operator launches depends on such an open extent by its plan and by the extent itself. Plans are made for ranges
of it (``rows.planned_rows``), so in one range the launches of two calls differ in the extent alone: where a number is
not the same in both, it is the extent in both, or nothing is derived from these calls. The places of such numbers are a
property of the kernels, so in another range one call of the same kernels is enough. Then any extent of the range is
launched by the numbers of that call, with the extent in its places. An operator that notes all its
choices by the extent (``host.recorded.decided``) needs no call there: where they are the same, launches are derived.

An operator names the modes that are open. It plans for ``planned_rows`` of the first one, or says ``planned_alone``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from tilewright.gemm.operators.launches import CAPTURED, Binding, Launches, PreparedLaunch
from tilewright.gemm.operators.repeated import geometry
from tilewright.gemm.operators.rows import WIDE_OFFSET, planned_rows
from tilewright.ir.runtime import DevicePointer


class Place(NamedTuple):
    """A mode of a tensor. ``vector``: a matrix (n, 1) is read as a vector."""

    tensor: int
    mode: int = 0
    vector: bool = False


Modes = Sequence[Place]
"""The modes that have one extent: the first one says which; a mode of another extent is not open."""


def closed(tensors: Sequence[Any]) -> Sequence[Modes]:
    """No mode is open."""
    return ()


class Open(NamedTuple):
    """The open extents of a call, and which mode of a tensor has which: tensor to (mode, number of the extent)."""

    extents: tuple[int, ...]
    modes: dict[int, tuple[int, int]]


def opened(tensors: Sequence[Any], open_modes: Sequence[Modes]) -> Open | None:
    """What is open of the ``tensors`` (None: not given). None where an extent says more than how many there are: there
    is one, a matrix has them next to each other (then accesses are as wide as the extent allows), or so many that
    offsets have 64 bits."""
    extents, found = list[int](), dict[int, tuple[int, int]]()
    for number, modes in enumerate(open_modes):
        first = tensors[modes[0].tensor]
        if first is None or first.ndim <= modes[0].mode:
            return None
        extents.append(first.shape[modes[0].mode])
        if extents[-1] < 2:
            return None
        for tensor, at, vector in modes:
            x = tensors[tensor]
            if x is None or x.ndim <= at or x.shape[at] != extents[-1]:
                continue
            column = vector and x.numel() == x.shape[at]
            if (x.ndim > 1 and x.stride(at) <= 1 and not column) or last_offset(x) >= WIDE_OFFSET:
                return None
            found[tensor] = at, number
    return Open(tuple(extents), found) if extents else None


def ranks(*tensors: Any) -> tuple[int | None, ...]:
    """Their numbers of modes; None for what is not given."""
    return tuple([None if x is None else x.ndim for x in tensors])


def last_offset(x: Any) -> int:
    """Elements from the first to the last one of a tensor."""
    return sum((n - 1) * d for n, d in zip(x.shape, x.stride(), strict=True))


def key_without(tensors: Sequence[Any], found: Open) -> tuple[Any, ...]:
    """The geometry of the tensors, with the numbers of open extents in the place of these."""
    keys: list[Any] = []
    for number, x in enumerate(tensors):
        if number not in found.modes:
            keys.append(None if x is None else geometry(x))
            continue
        mode, which = found.modes[number]
        dtype, shape, *others = geometry(x)
        keys.append((dtype, (*shape[:mode], (which,), *shape[mode + 1 :]), *others))
    return tuple(keys)


class Numbers(NamedTuple):
    """The numbers of a call that may depend on an extent: those that may be one (of launches, the result's extents,
    those of checks), and where the memory of arrays begins and ends, seen from their addresses and from the beginnings
    and ends of the operands that they are a part of."""

    exact: list[Any]
    bounds: list[tuple[int, int]]


class Places(NamedTuple):
    """For each of :class:`Numbers`: the number of the extent that it is (None: it is the same for all); which of the
    bounds go with the operand's."""

    exact: list[int | None]
    bounds: list[bool]
    fixed: tuple[int, ...] = ()
    """The extents that have been one number in all calls, so that their places are not known."""


class Known(NamedTuple):
    """A recorded call, with what it is derived from."""

    call: Any
    extents: tuple[int, ...]
    numbers: Numbers

    @property
    def is_decided(self) -> bool:
        """Whether the call has noted its choices by its first extent, all of them."""
        decisions = self.call.decisions
        return bool(decisions) and all(one.extent == self.extents[0] for one in decisions)

    @property
    def like(self) -> Any:
        """Two calls with the same value differ in extents alone."""
        return tuple([one.value for one in self.call.decisions]) if self.is_decided else planned_rows(self.extents[0])

    def decides(self, extent: int) -> bool:
        """Whether the same is decided for another extent."""
        return all(one.again(extent) == one.value for one in self.call.decisions)


@dataclass
class OpenCall:
    """Calls that differ in their open extents alone."""

    places: dict[Any, Places] = field(default_factory=dict)
    """By what is launched, without numbers."""
    seen: dict[Any, Known] = field(default_factory=dict)
    """By :attr:`Known.like` and what is launched: a call of kernels whose places are not known."""
    known: dict[int, tuple[Known, Places]] = field(default_factory=dict)
    """By range."""
    decided: dict[Any, tuple[Known, Places]] = field(default_factory=dict)
    """By what is launched and decided."""

    def learn(self, call: Any, extents: tuple[int, ...]) -> None:
        """Take a recorded call."""
        what = launched(call)
        if call.alone or what is None or is_wide(call.result):
            return
        now = Known(call, extents, Numbers([*exact_numbers(call)], [*bounds(call)]))
        places = self.places.get(what)
        if places is None or places.fixed:
            before = self.seen.setdefault((now.like, what), now)
            found = None if before is now else places_of(before, now)
            if found is None:
                self.seen[now.like, what] = now  # the memory of blocks that share tiles may be another one since
            elif places is None or len(found.fixed) < len(places.fixed):
                self.places[what] = places = found
        if places is None:
            return
        if all(which is None or x == extents[which] for x, which in zip(now.numbers.exact, places.exact, strict=True)):
            if now.is_decided:
                self.decided[what, now.like] = now, places
            else:
                self.known[now.like] = now, places

    def call(self, extents: tuple[int, ...], spans: tuple[tuple[int, int], ...]) -> Any:
        """The call with these extents, whose given tensors have the ``spans``; None where none is known."""
        found = (one for one in self.decided.values() if one[0].decides(extents[0]))
        known = self.known.get(planned_rows(extents[0])) or next(found, None)
        if known is None:
            return None
        (call, before, _), places = known
        if any(extents[number] != before[number] for number in places.fixed):
            return None
        made = with_extents(call, places, extents, spans)
        return None if is_wide(made.result) else made


def is_wide(result: Any) -> bool:
    """Whether a new result wants offsets of 64 bits."""
    return result is not None and result.elements > WIDE_OFFSET


def places_of(first: Known, second: Known) -> Places | None:
    """Where the extents are in the numbers of calls of one range; None where that is not certain."""
    pairs = list(enumerate(zip(first.extents, second.extents, strict=True)))
    fixed = tuple([number for number, (one, other) in pairs if one == other])
    pairs = [pair for pair in pairs if pair[0] not in fixed]
    found = Places([], [], fixed)
    for x, y in zip(first.numbers.exact, second.numbers.exact, strict=True):
        extents = [number for number, pair in pairs if pair == (x, y)]
        if x != y and len(extents) != 1:
            return None
        found.exact.append(None if x == y else extents[0])
    for (x, of_x), (y, of_y) in zip(first.numbers.bounds, second.numbers.bounds, strict=True):
        if x != y and of_x != of_y:
            return None
        found.bounds.append(x != y)
    return found


# -- a call as what it launches, and numbers ---------------------------------------------------------------------------


def launched(call: Any) -> Any:
    """What a call launches and makes, but for its numbers. None where numbers are not enough: blocks share tiles, whose
    count is known for other extents only if the call has noted its choices."""
    result, steps = call.result, []
    for launches, places in call.launches:
        if launches.workspace and not (call.decisions and launches.bindings):
            return None
        for step in recorded_steps(launches):
            slots = tuple([(x.place, x.operand, x.shift, x.number) for x in step.slots])
            steps.append((step.code, places, slots, len(step.values), tuple([x[0] for x in step.exposed])))
    made = result and (result.stride, result.dtype, result.device, result.offset, result.spare)
    checks = tuple([(check.func, operand) for check, operand in call.checks])
    return tuple(steps), made, checks, call.written, call.scratch, call.one, call.apart


def recorded_steps(launches: Launches) -> Binding:
    """The launches of a call, on the stream where it was recorded."""
    return next(iter(launches.bindings.values()))


def exact_numbers(call: Any) -> Iterator[Any]:
    """In the order in which :func:`with_extents` takes them."""
    if call.result is not None:
        yield from call.result.shape
    for launches, _ in call.launches:
        for step in recorded_steps(launches):
            yield from [None if isinstance(x, DevicePointer) else x for x in numbers_of(step).values()]
    for check, _ in call.checks:
        yield from check.args


FIRST = 2
"""The number of the first argument among the values of host code."""


def numbers_of(step: PreparedLaunch) -> dict[int, Any]:
    """The arguments of a launch that are not addresses of operands, by their places; in the simulator also the memory
    that blocks share."""
    addresses = {slot.place for slot in step.slots}
    return {place: x for place, x in enumerate(step.values) if place >= FIRST and place not in addresses}


def bounds(call: Any) -> Iterator[tuple[int, int]]:
    """In the order in which :func:`with_extents` takes them."""
    for launches, places in call.launches:
        for step in recorded_steps(launches):
            for operand, low, high in parts(step):
                begin, end = part_of(operand, places, call.spans)
                yield from ((low, low - begin), (high, high - end))


def parts(step: PreparedLaunch) -> list[tuple[int, int, int]]:
    """The memory that a launch knows bounds of: whose it is, its beginning and end, seen from the address of that."""
    return [(slot.operand, slot.low, slot.high) for slot in step.slots] + list(step.exposed)


def part_of(operand: int, places: Any, spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The beginning and the end of what an operand of a launch is or is a part of: a tensor of the call; of other
    memory none."""
    at = operand if places is None else places[operand].operand
    return spans[at] if at < len(spans) else (0, 0)


class DerivedLaunches(Launches):
    """The launches ``like`` others, each with ``changed(number, step)`` in its place, on any stream."""

    def __init__(self, like: Launches, changed: Callable[[int, PreparedLaunch], PreparedLaunch]) -> None:
        super().__init__(like.device, like.workspace)
        self.like, self.changed = like, changed
        if not like.workspace:
            self.bind(0)

    def bind(self, stream: Any) -> Binding:
        steps = self.like.bindings.get(stream) or self.like.bind(stream)
        binding = [self.changed(number, step) for number, step in enumerate(steps)]
        if stream is not CAPTURED:
            self.bindings[stream] = binding
        return binding


def with_extents(call: Any, where: Places, extents: tuple[int, ...], spans: tuple[tuple[int, int], ...]) -> Any:
    """The call with other extents, for given tensors with these ``spans``."""
    exact, moves, result = iter(where.exact), iter(where.bounds), call.result

    def number(x: Any) -> Any:
        which = next(exact)
        return x if which is None else extents[which]

    if result is not None:
        result = result.with_shape(tuple([number(x) for x in result.shape]))
        size = result.dtype.itemsize
        spans = (*spans, (-result.offset * size, (result.elements - result.offset) * size))
    made = []
    for launches, places in call.launches:
        changes = []
        for step in recorded_steps(launches):
            new = {place: which for place in numbers_of(step) if (which := next(exact)) is not None}
            changes.append((new, [(next(moves), next(moves)) for _ in parts(step)]))
        edges = partial(part_of, places=places, spans=call.spans), partial(part_of, places=places, spans=spans)
        made.append((DerivedLaunches(launches, partial(step_with_extents, changes, edges, extents)), places))
    checks = tuple([(partial(check.func, *[number(x) for x in check.args]), at) for check, at in call.checks])
    return replace(call, launches=tuple(made), result=result, spans=spans, checks=checks, disjoint=set())


def step_with_extents(
    changes: Sequence[Any], edges: tuple[Any, Any], extents: Sequence[int], number: int, step: PreparedLaunch
) -> PreparedLaunch:
    """A launch with other extents. ``changes``: for each launch, which extent a value is, by place, and which bounds of
    each memory move; ``edges`` says from where to where."""
    new, moves = changes[number]
    values = step.values.copy()
    for place, which in new.items():
        values[place] = extents[which]
    if values[1] is None:  # no machine that checks bounds
        return step._replace(values=values)
    known = []
    for (operand, *limits), moved in zip(parts(step), moves, strict=True):
        ends = zip(limits, *(of(operand) for of in edges), moved, strict=True)
        known.append([x + now - before if moves_on else x for x, before, now, moves_on in ends])
    slots = [slot._replace(low=low, high=high) for slot, (low, high) in zip(step.slots, known, strict=False)]
    behind = zip(step.exposed, known[len(slots) :], strict=True)
    exposed = tuple([(operand, low, high) for (operand, _, _), (low, high) in behind])
    return step._replace(values=values, slots=slots, exposed=exposed)
