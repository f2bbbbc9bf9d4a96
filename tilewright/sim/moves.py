"""Copies between registers and memory that repeat one instruction: neighbours are moved together.

A copy of a thread's part of a tile is one instruction for each vector. Where the pointers of several differ by just the
bytes of one, and their registers follow each other, too, all of them are one gather of wider items. Observers are
notified of every instruction all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.atoms.copy import read_registers, write_registers
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.sim.access import WIDEST, VectorAccess, access_of
from tilewright.sim.columns import Columns
from tilewright.sim.events import no_values
from tilewright.sim.memory import Buffer
from tilewright.sim.values import Ptr, TypedPointer

if TYPE_CHECKING:
    from tilewright.ir.types import ScalarType
    from tilewright.sim.group import Group

Mask = Array | None


def move(
    group: Group,
    fragment: Array | Columns,
    registers: Sequence[tuple[int, ...]],
    pointers: Sequence[TypedPointer],
    masks: Sequence[Mask],
    store: bool,
) -> None:
    """Load or store ``registers`` of the fragment at the pointers, under the masks (None: all lanes)."""
    whole = _all_lanes(masks)
    if not any(mask is not None for mask in whole):
        origin = pointers[0].pointer
        if all(h.pointer.root is origin.root and h.buf is origin.buf for h in pointers):
            kinds = [(handle.elem, handle.align) for handle in pointers]
            distances = tuple([handle.pointer.add - origin.add for handle in pointers])
            if move_by_plan(group, fragment, registers, origin, distances, kinds, store):
                return
    if isinstance(fragment, Columns):
        fragment = fragment.array()
    if not any(mask is not None for mask in whole) and _move_each(group, fragment, registers, pointers, store):
        return
    for chosen, pointer, mask in zip(registers, pointers, whole, strict=True):
        access = access_of(pointer.elem, len(chosen), pointer.align, False)
        _access(group, fragment, chosen, pointer, mask, store, access)


def _all_lanes(masks: Sequence[Mask]) -> Sequence[Mask]:
    """The masks, None in the place of one of all lanes. Several are often the same array, which is tested once."""
    whole: dict[int, Mask] = {id(mask): None if mask is None or mask.all() else mask for mask in masks}
    return [whole[id(mask)] for mask in masks]


# -- by the plan of an earlier execution -------------------------------------------------------------------------------


class GroupedMove(NamedTuple):
    """Repetitions ``first`` to ``stop`` of a copy as one access, ``each`` of them alone, ``at`` bytes behind the
    pointer; the items ``where`` of each lane's registers, or (None) the registers ``chosen``."""

    first: int
    stop: int
    at: int
    access: VectorAccess
    each: VectorAccess
    chosen: tuple[int, ...]
    where: slice | None


class MovePlan(NamedTuple):
    """How the copies of one op are done without masks. It holds for these distances from a pointer (``reach``: from the
    lowest byte to the end of the highest) and this alignment (the low bits that are not zero everywhere), and registers
    of one stride."""

    distances: tuple[int, ...]
    aligned: int
    stride: int
    reach: tuple[int, int]
    parts: list[GroupedMove]


def move_by_plan(
    group: Group,
    fragment: Array | Columns,
    registers: Sequence[tuple[int, ...]],
    pointer: Ptr,
    distances: tuple[int, ...],
    kinds: Sequence[tuple[ScalarType, int]],
    store: bool,
) -> bool:
    """Move all registers, in all lanes, by the op's plan; False if it has none, or an access might be outside. The
    copies' pointers are ``distances`` in bytes from ``pointer``, and of these ``kinds``: element type and alignment."""
    publish = None if group.events is None else group.events.together
    root, buf, add = pointer.root, pointer.buf, pointer.add
    if root is None or not isinstance(buf, Buffer) or (group.events is not None and publish is None):
        return False
    if store and buf.read_only:
        return False
    # All pointers are one vector of offsets (root) plus a number each, so the range of the root bounds every access.
    low, high, bits = root.range
    aligned = (bits | add) & (WIDEST - 1)  # low bits that some lane may have set: 0 where all lanes are aligned
    plans, op = group.program.plans, group.lanes.op
    plan = plans.get(id(op))
    stride = fragment.strides[-1]
    if plan is None or plan.distances != distances or plan.aligned != aligned or plan.stride != stride:
        handles = [TypedPointer(pointer.plus(at), *kind) for at, kind in zip(distances, kinds, strict=True)]
        plan = plans[id(op)] = _plan(fragment, registers, handles, distances, aligned)
    if not plan.parts or low + add + plan.reach[0] < buf.low or high + add + plan.reach[1] > buf.high:
        return False
    if isinstance(fragment, Columns) and any(part.where is None for part in plan.parts):
        return False
    for part in plan.parts:
        if publish is not None:

            def values(k: int, first: int = part.first) -> Array | None:
                return _read(fragment, registers[first + k]) if store else None

            publish(
                "store" if store else "load", buf, group, pointer, distances[part.first : part.stop], part.each, values
            )
        items, index = buf.place(group, root, add + part.at, part.access, True)
        if store:
            items[index] = part.access.encode_as(items.dtype, _read(fragment, part.chosen))
        else:
            _write(fragment, part, items.take(index))
    return True


def _read(fragment: Array | Columns, chosen: tuple[int, ...]) -> Array:
    """Registers that are side by side, if the fragment is columns."""
    if isinstance(fragment, Columns):
        return fragment.registers(chosen[0], chosen[-1] + 1)
    return read_registers(fragment, chosen)


def _write(fragment: Array | Columns, part: GroupedMove, items: Array) -> None:
    """Put what a load has found into the registers."""
    if isinstance(fragment, Columns):
        fragment.add(part.chosen[0], part.access.decode(items))
    elif part.where is None:
        write_registers(fragment, part.chosen, part.access.decode(items), None)
    else:
        item = part.access.item
        fragment.view(item)[:, part.where] = items.view(item).reshape(-1, part.access.parts)


def _plan(
    fragment: Array | Columns,
    registers: Sequence[tuple[int, ...]],
    pointers: Sequence[TypedPointer],
    distances: tuple[int, ...],
    aligned: int,
) -> MovePlan:
    """A plan; one without parts where an access is not aligned, or not of whole items."""
    parts, low, high, size = [], min(distances), min(distances), fragment.itemsize
    for first, stop in _runs(registers, pointers):
        handle, chosen, at = pointers[first], sum(registers[first:stop], ()), distances[first]
        each = access_of(handle.elem, len(registers[first]), handle.align, False)
        # Neighbours merge to one access as wide as their common alignment; x & -x is the lowest bit that is set.
        together = (aligned | distances[first] | WIDEST) if stop - first > 1 else handle.align
        access = access_of(handle.elem, len(chosen), together & -together, False)
        beside = chosen == tuple(range(chosen[0], chosen[0] + len(chosen)))
        if each.bool_ or (aligned | at) & (max(each.width, access.width) - 1) or (stop - first > 1 and not beside):
            return MovePlan(distances, aligned, fragment.strides[-1], (0, 0), [])
        start, width, where = chosen[0] * size, access.width, None
        # Adjacent registers that begin at a whole item: the loaded items are written as a slice of each lane's row.
        if beside and fragment.strides[-1] == size and not (start | fragment.shape[1] * size) % width:
            where = slice(start // width, start // width + access.parts)
        parts.append(GroupedMove(first, stop, at, access, each, chosen, where))
        low, high = min(low, at), max(high, at + access.nbytes)
    return MovePlan(distances, aligned, fragment.strides[-1], (low, high), parts)


# -- moves of whole warps, in the order of what consumes them ----------------------------------------------------------


class Arrangement(NamedTuple):
    """An order of the accesses of a warp through several pointers: which ``pointer``, and which ``lane`` of the
    warp."""

    pointer: Array
    lane: Array


def gather_arranged(group: Group, pointers: Sequence[Ptr], access: VectorAccess, order: Arrangement) -> Array | None:
    """``[warps, n]`` items that all lanes load through the pointers, arranged; None where that is not one gather of
    accesses that are known to be inside and aligned."""
    distances = _distances(group, pointers, access)
    if distances is None:
        return None
    if group.events is not None:
        publish_loads(group, pointers[0], distances, access)
    items, index = _arranged(group, pointers[0], distances, access, order)
    return items.take(index)


def publish_loads(group: Group, pointer: Ptr, distances: Sequence[int], access: VectorAccess) -> None:
    """Tell the observers of loads by all lanes at these distances from a pointer, known to be inside and aligned."""
    events: Any = group.events
    events.together("load", pointer.buf, group, pointer, distances, access, no_values)


def scatter_arranged(
    group: Group, pointers: Sequence[Ptr], access: VectorAccess, order: Arrangement, items: Array
) -> bool:
    """Store items ``[warps, pointers * 32]``, those of each pointer side by side; False where it cannot be done so."""
    distances = None if pointers[0].buf.read_only else _distances(group, pointers, access)
    if distances is None:
        return False
    if group.events is not None:
        publish: Any = group.events.together

        def values(k: int) -> Array:
            return by_pointer(items, access, len(pointers))[k]

        publish("store", pointers[0].buf, group, pointers[0], distances, access, values)
    target, index = _arranged(group, pointers[0], distances, access, order)
    target[index] = items
    return True


def by_pointer(items: Array, access: VectorAccess, count: int) -> list[Array]:
    """``[L, n]`` of each of ``count`` pointers, of items ``[warps, count * 32]``."""
    parts = items.reshape(len(items), count, WARP)
    return [access.decode(np.ascontiguousarray(parts[:, k]).reshape(-1)) for k in range(count)]


def _distances(group: Group, pointers: Sequence[Ptr], access: VectorAccess) -> tuple[int, ...] | None:
    """The distances of the pointers from the first one, if they share their offsets, from which all accesses are known
    to be inside and aligned."""
    buf, root, start = pointers[0].buf, pointers[0].root, pointers[0].add
    if root is None or not isinstance(buf, Buffer) or access.parts > 1:
        return None
    if group.events is not None and group.events.quick is None:
        return None
    low, high, bits = root.range
    distances = []
    for pointer in pointers:
        if pointer.root is not root or pointer.buf is not buf:
            return None
        bits |= pointer.add
        distances.append(pointer.add - start)
    first = start + min(distances)
    if bits & (access.width - 1) or first < 0 or low < 0:
        return None
    inside = low + first >= buf.low and high + start + max(distances) <= buf.high - access.nbytes
    return tuple(distances) if inside else None


def _arranged(
    group: Group, pointer: Ptr, distances: tuple[int, ...], access: VectorAccess, order: Arrangement
) -> tuple[Array, Array]:
    """The items of the memory, and which of them each access is: ``[warps, n]``."""
    root: Any = pointer.root
    base = pointer.buf._base(group)
    least = min(distances)
    index = root.arranged(access, base, tuple([at - least for at in distances]) if least else distances, order)
    start = pointer.add + least if type(base) is not int else pointer.add + least + base
    return pointer.buf.views[access.shift][start >> access.shift :], index


# -- the parts of a plan, and single accesses --------------------------------------------------------------------------


def _runs(registers: Sequence[tuple[int, ...]], pointers: Sequence[TypedPointer]) -> Iterator[tuple[int, int]]:
    """Ranges of repetitions that read or write neighbours."""
    first = 0
    for k in range(1, len(registers) + 1):
        if k < len(registers):
            here, before = pointers[k].pointer, pointers[k - 1].pointer
            if (
                here.root is before.root is not None
                and here.add == before.add + len(registers[k]) * pointers[k].elem.bytes
                and here.buf is before.buf
                and registers[k][0] == registers[k - 1][-1] + 1
            ):
                continue
        yield first, k
        first = k


def publish_each(
    group: Group, pointers: Sequence[TypedPointer], access: VectorAccess, verb: str, values: Callable[[int], Any]
) -> bool:
    """Tell the observers of accesses by all lanes through several pointers of one type; False where they want to hear
    of each, or an access might be outside or not aligned."""
    first = pointers[0]
    each = None if group.events is None else group.events.each
    if each is None or not isinstance(first.buf, Buffer) or (verb == "store" and first.buf.read_only):
        return False
    for p in pointers:
        root, add = p.pointer.root, p.pointer.add
        if root is None or p.buf is not first.buf or p.elem != first.elem or p.align != first.align:
            return False
        low, high, bits = root.range
        if low + add < p.buf.low or high + add > p.buf.high - access.nbytes or (bits | add) & (access.width - 1):
            return False
    each(verb, first.buf, group, [p.pointer for p in pointers], access, values)
    return True


def _move_each(
    group: Group,
    fragment: Array,
    registers: Sequence[tuple[int, ...]],
    pointers: Sequence[TypedPointer],
    store: bool,
) -> bool:
    """Move the registers in all lanes, one access after the other, with the observers told once. False where that
    cannot be done, or without observers."""
    count = len(registers[0])
    access = access_of(pointers[0].elem, count, pointers[0].align, False)
    if any(len(chosen) != count for chosen in registers):
        return False

    def values(k: int) -> Array | None:
        return read_registers(fragment, registers[k]) if store else None

    if not publish_each(group, pointers, access, "store" if store else "load", values):
        return False
    for chosen, handle in zip(registers, pointers, strict=True):
        root: Any = handle.pointer.root
        items, index = handle.buf.place(group, root, handle.pointer.add, access, True)
        if store:
            items[index] = access.encode_as(items.dtype, read_registers(fragment, chosen))
        else:
            write_registers(fragment, chosen, access.decode(items.take(index)), None)
    return True


def _access(
    group: Group,
    fragment: Array,
    chosen: tuple[int, ...],
    handle: TypedPointer,
    mask: Mask,
    store: bool,
    access: VectorAccess,
) -> None:
    """One access."""
    if mask is not None and not mask.any():
        return
    if store:
        handle.buf.put(group, handle.pointer, read_registers(fragment, chosen), access, mask)
        return
    values = handle.buf.fetch(group, handle.pointer, access, mask)
    if values.ndim == 1:  # all lanes load from one place
        values = np.broadcast_to(values, (group.lanes_count, len(chosen)))
    write_registers(fragment, chosen, values, mask)
