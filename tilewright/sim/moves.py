"""Copies between registers and memory that repeat one instruction: neighbours are moved together.

A copy of a thread's part of a tile is one instruction for each vector. Where the pointers of several differ by just the
bytes of one, and their registers follow each other, too, all of them are one gather of wider items. Observers hear of
every instruction all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.copy import read_registers, write_registers
from tilewright.sim.access import WIDEST, Access, access_of

if TYPE_CHECKING:
    from tilewright.sim.group import Group
    from tilewright.sim.values import Handle

Array = np.ndarray[Any, Any]
Mask = Array | None


def move(
    group: Group, fragment: Array, registers: Sequence[tuple[int, ...]], pointers: Sequence[Handle],
    masks: Sequence[Mask], store: bool,
) -> None:  # fmt: skip
    """Load or store ``registers`` of the fragment at the pointers, under the masks (None: all lanes)."""
    whole = [None if mask is None or mask.all() else mask for mask in masks]
    for first, stop in _runs(registers, pointers, whole):
        if stop - first == 1 or not _together(group, fragment, registers, pointers, whole[first], store, first, stop):
            for k in range(first, stop):
                access = access_of(pointers[k].elem, len(registers[k]), pointers[k].align, False)
                _one(group, fragment, registers[k], pointers[k], whole[k], store, access)


def _runs(
    registers: Sequence[tuple[int, ...]], pointers: Sequence[Handle], masks: Sequence[Mask]
) -> Iterator[tuple[int, int]]:
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
                and _equal(masks[k], masks[k - 1])
            ):
                continue
        yield first, k
        first = k


def _equal(a: Mask, b: Mask) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _together(
    group: Group, fragment: Array, registers: Sequence[tuple[int, ...]], pointers: Sequence[Handle], mask: Mask,
    store: bool, first: int, stop: int,
) -> bool:  # fmt: skip
    """Do the repetitions ``first`` to ``stop`` as one access, if it is known to be inside and aligned."""
    handle, chosen = pointers[first], sum(registers[first:stop], ())
    root = handle.pointer.root
    if root is None or chosen != tuple(range(chosen[0], chosen[0] + len(chosen))):
        return False
    aligned = root.range[2] | handle.pointer.add | WIDEST
    access = access_of(handle.elem, len(chosen), aligned & -aligned, False)
    each = access_of(handle.elem, len(registers[first]), handle.align, False)
    return _one(group, fragment, chosen, handle, mask, store, access, each)


def _one(
    group: Group, fragment: Array, chosen: tuple[int, ...], handle: Handle, mask: Mask, store: bool, access: Access,
    each: Access | None = None,
) -> bool:  # fmt: skip
    """One access; with ``each``, one that stands for several: False if it cannot."""
    if mask is not None and not mask.any():
        return True
    if store:
        done: bool = handle.buf.put(group, handle.pointer, read_registers(fragment, chosen), access, mask, each)
        return done
    found = handle.buf.fetch(group, handle.pointer, access, mask, each)
    if found is None:
        return False
    if found.ndim == 1:  # all lanes load from one place
        found = np.broadcast_to(found, (group.lanes_count, len(chosen)))
    write_registers(fragment, chosen, found, mask)
    return True
