"""Names of one object: what is written to it under one of them shows under the others.

Where the sides of a region leave two objects under one name, the name goes on with a third one, made of both. That is
Python's answer only if neither of the two has another name: a variable of any function on the stack, or a place behind
one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, ModuleType
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.lang.staging.builder import StagingBuilder
from tilewright.lang.staging.contents import Store, can_change, stores_of
from tilewright.lang.staging.lasting import gathered, is_lasting
from tilewright.lang.staging.liveness import HoldsUnnamed, read_later
from tilewright.lang.staging.location import ENTRIES, counts_as_user, fail, user_frame
from tilewright.lang.staging.nodes import TOOL
from tilewright.lang.staging.objects import codec, is_made_of_values, is_record, labels_of
from tilewright.lang.staging.region_state import RegionState
from tilewright.lang.staging.source import names_of
from tilewright.lang.staging.undefined import Undefined

ONE_OF_TWO = (
    "it is one of two objects that can change, and only the running program knows which; take a copy of each "
    "(`list(x)`, `x.clone()`), or choose between their numbers"
)

LASTING = (type, FunctionType, ModuleType)


class AliasPairs:
    """The objects of the names of ``state`` on the two sides of a region: ``of_two`` are the indices of those that hold
    one of two objects, one of which has another name; ``kept`` the identities of the objects that are the same."""

    def __init__(self, state: RegionState, pairs: Iterable[Sequence[Any]]) -> None:
        self._uses: dict[int, list[tuple[int, bool]]] = {}
        for i, (first, last) in enumerate(pairs):
            if first is not last:
                _refuse_watched(state.labels[i] if i < len(state.labels) else "the result", first, last)
            self._pair(i, first, last)
        self.kept = {key for key, uses in self._uses.items() if all(same for _, same in uses)}
        self.of_two = {i for uses in self._uses.values() if len(uses) > 1 for i, same in uses if not same}
        suspects = {key: i for key, uses in self._uses.items() for i, same in uses if not same}
        if suspects:
            others = _named_elsewhere(state)
            self.of_two |= {i for key, i in suspects.items() if key in others}

    def _pair(self, i: int, first: Any, last: Any) -> None:
        if isinstance(first, Undefined) or isinstance(last, Undefined):  # the name goes on without a value
            return
        if first is last:
            if can_change(first):
                self._uses.setdefault(id(first), []).append((i, True))
            else:
                for part in _parts(first):
                    self._pair(i, part, part)
            return
        for side in (first, last):
            if can_change(side) and not is_made_of_values(side):
                self._uses.setdefault(id(side), []).append((i, False))
        firsts, lasts = _parts(first), _parts(last)
        # Objects of different shapes have no parts in common: each part is paired with nothing.
        if type(first) is not type(last) or labels_of(first) != labels_of(last):
            firsts, lasts = [*firsts, *[None] * len(lasts)], [*[None] * len(firsts), *lasts]
        for a, b in zip(firsts, lasts, strict=True):
            self._pair(i, a, b)


def _refuse_watched(label: str, *sides: Any) -> None:
    """Refuse one of two objects that a weak reference watches: while staging both stay alive, because each side of the
    region still needs its own. Classes, functions and modules stay alive anyway, and Python itself has weak references
    to them."""
    for side in sides:
        if not isinstance(side, LASTING) and any(
            type(ref) is weakref.ref and ref.__callback__ is None for ref in weakref.getweakrefs(side)
        ):
            raise fail(
                f"'{label}' holds another object after the region, and a weak reference to the {type(side).__name__} "
                "tells whether it is gone, which differs from thread to thread: do without the weak reference"
            )


def _parts(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list, dict)) or is_record(value):
        return codec(value)[0](value)
    return []


def _named_elsewhere(state: RegionState) -> set[int]:
    """The identities of the objects that have a name: reached from the variables of the staged functions on the stack
    that these may still read, or from what the program was called with, but not through the variables and places that
    the region changes. The functions that called the program are not searched: what they have of its objects they gave
    it, and a script may have a model and its data in its variables."""
    return _reachable(_roots(state), state)


def _roots(state: RegionState) -> list[Any]:
    """What the variables of the staged functions on the stack hold that these may still read, and what the program was
    called with."""
    builder = Builder.current()
    roots: list[Any] = list(builder.given) if isinstance(builder, StagingBuilder) else []
    frame = user_frame(3)
    assigned = set(state.names)
    while frame is not None and id(frame.f_code) not in ENTRIES:
        if counts_as_user(frame.f_code):
            held, read = frame.f_locals, read_later(frame)
            live = [n for n in held if n in read and n not in assigned]
            roots += [held[n] for n in live if not n.startswith(TOOL)]
            roots += [x for n in live if isinstance(held[n], HoldsUnnamed) for x in held[n].unnamed()]
            roots += [frame.f_globals[n] for n in names_of(frame.f_code) & frame.f_globals.keys()]
            assigned = set()  # only the innermost function has the variables that the region changes
        frame = frame.f_back
    return roots


def _reachable(roots: list[Any], state: RegionState) -> set[int]:
    """The identities of all that can be reached from there, not through the places that the region changes:
    containers, records and objects with attributes, each visited once."""
    visited: set[int] = set()
    sequences: set[int] = set()
    written = {id(place.holder) for place in state.places.values()}
    todo = roots
    while todo:
        holder = todo.pop()
        if type(holder) in STEPS:
            inner, others = STEPS[type(holder)](holder)
            sequences.update(map(id, inner))
            todo += others
            continue
        stores = stores_of(type(holder))
        if not stores or id(holder) in visited:
            continue
        if is_lasting(holder) and written.isdisjoint((lasting := gathered(type(holder).__name__, holder)).members):
            visited.update(lasting.members)
            todo += [other for _, other, _ in lasting.others]
            continue
        visited.add(id(holder))
        todo += [x for store in stores for x in _held_in(store, holder, state)]
        todo.append(type(holder))
    return visited | sequences


def _held_in(store: Store, holder: Any, state: RegionState) -> Iterable[Any]:
    """What a store of an object holds, but for the places that the region changes."""
    if store.objects is not None:  # memory is not read: there may be much of it
        return store.objects(holder)
    if store.state:
        return ()
    held = store.read(holder)
    return [held[key] for key in held if (id(holder), id(store), key) not in state.places]


def _rest_of_sequence(iterator: Any) -> tuple[list[Any], list[Any]]:
    """For an iterator over a list or tuple: the sequence, unless it is at its end, and the elements still to come."""
    function, (sequence, *_), *index = iterator.__reduce__()
    if not index:
        return [], []
    rest = sequence[: index[0] + 1] if function is reversed else sequence[index[0] :]
    return ([sequence], [*rest]) if rest else ([], [])


def _drawn_from(iterator: Any) -> tuple[list[Any], list[Any]]:
    """What ``enumerate``, ``zip`` and the like iterate over. They do not hold the last tuple that they gave."""
    return [], [*iterator.__reduce__()[1]]


STEPS: dict[type, Callable[[Any], tuple[list[Any], list[Any]]]] = {
    **dict.fromkeys(map(type, (iter([]), iter(()), reversed([]), reversed(()))), _rest_of_sequence),
    **dict.fromkeys((enumerate, zip, map, filter), _drawn_from),
}
"""For iterators whose place can be asked for: what they may still give, as the sequences that they read on, which may
have names, and other values. Elements that have passed are left out."""
