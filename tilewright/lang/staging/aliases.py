"""Names of one object: what is written to it under one of them shows under the others.

Where the sides of a region leave two objects under one name, the name goes on with a third one, made of both. That is
Python's answer only if neither of the two has another name: a variable of any function on the stack, or a place behind
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.lang.staging.contents import can_change, stores_of
from tilewright.lang.staging.location import counts_as_user, is_ours, user_frame
from tilewright.lang.staging.nodes import TOOL
from tilewright.lang.staging.objects import codec, is_record, labels_of
from tilewright.lang.staging.places import State
from tilewright.lang.staging.source import names_of
from tilewright.lang.staging.undefined import Undefined

ONE_OF_TWO = (
    "it is one of two objects that can change, and only the running program knows which; take a copy of each "
    "(`list(x)`, `x.clone()`), or choose between their numbers"
)


class Pairs:
    """What the names of ``state`` hold on the two sides of a region: ``of_two`` are the indices of those that hold one
    of two objects, one of which has another name; ``kept`` the identities of the objects that are the same."""

    def __init__(self, state: State, pairs: Iterable[Sequence[Any]]) -> None:
        self._uses: dict[int, list[tuple[int, bool]]] = {}
        for i, (first, last) in enumerate(pairs):
            self._pair(i, first, last)
        self.kept = {key for key, uses in self._uses.items() if all(alike for _, alike in uses)}
        self.of_two = {
            i for uses in self._uses.values() if len(uses) > 1 for i, alike in uses if not alike
        }  # fmt: skip
        suspects = {key: i for key, uses in self._uses.items() for i, alike in uses if not alike}
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
            if can_change(side):
                self._uses.setdefault(id(side), []).append((i, False))
        firsts, lasts = _parts(first), _parts(last)
        if type(first) is not type(last) or labels_of(first) != labels_of(last):
            firsts, lasts = [*firsts, *[None] * len(lasts)], [*[None] * len(firsts), *lasts]
        for a, b in zip(firsts, lasts, strict=True):
            self._pair(i, a, b)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list, dict)) or is_record(value):
        return codec(value)[0](value)
    return []


def _named_elsewhere(state: State) -> set[int]:
    """The identities of the objects that have a name: reached from the variables of the functions on the stack, but not
    through the variables and places that the region changes."""
    seen: set[int] = set()
    waiting: list[Any] = []
    frame = user_frame(2)
    assigned = set(state.names)
    while frame is not None and (counts_as_user(frame.f_code) or is_ours(frame.f_code)):
        if counts_as_user(frame.f_code):
            held = frame.f_locals
            waiting += [held[n] for n in held if n not in assigned and not n.startswith(TOOL)]
            waiting += [frame.f_globals[n] for n in names_of(frame.f_code) & frame.f_globals.keys()]
            assigned = set()
        frame = frame.f_back
    while waiting:
        holder = waiting.pop()
        stores = stores_of(type(holder))
        if not stores or id(holder) in seen:
            continue
        seen.add(id(holder))
        for store in stores:
            if not store.state:
                held = store.read(holder)
                waiting += [held[key] for key in held if (id(holder), id(store), key) not in state.places]
        waiting.append(type(holder))
    return seen
