"""Names of one object: what is written to it under one of them shows under the others.

Where the sides of a region leave two objects under one name, the name goes on with a third one, made of both. That is
Python's answer only if neither of the two has another name: a variable of any function on the stack, or a place behind
one.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Sequence
from functools import lru_cache
from types import CodeType, FrameType
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

JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
REGION_ENDS = ("swap", "join", "enter", "body", "leave")
"""Methods of regions that take all variables of a region and give them back (the templates of ``rewrite``)."""


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
    """The identities of the objects that have a name: reached from the variables of the functions on the stack that
    these may still read, but not through the variables and places that the region changes."""
    seen: set[int] = set()
    waiting: list[Any] = []
    frame = user_frame(2)
    assigned = set(state.names)
    while frame is not None and (counts_as_user(frame.f_code) or is_ours(frame.f_code)):
        if counts_as_user(frame.f_code):
            held, read = frame.f_locals, _read_later(frame)
            waiting += [held[n] for n in held if n in read and n not in assigned and not n.startswith(TOOL)]
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


def _read_later(frame: FrameType) -> frozenset[str]:
    """The variables that the function may read after the instruction that it is at."""
    return _reachable_reads(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=4096)
def _reachable_reads(code: CodeType, at: int) -> frozenset[str]:
    """The variables that instructions load that can follow the one at offset ``at``."""
    flow = _flow(code)
    found: set[str] = set()
    seen: set[int] = set()
    waiting = [at]
    while waiting:
        place = waiting.pop()
        while place not in flow:  # within the operands of an instruction that the interpreter has specialised
            place -= 2
        for follows in flow[place][0]:
            if follows not in seen:
                seen.add(follows)
                waiting.append(follows)
                found.update(flow[follows][1] if follows in flow else ())
    return frozenset(found)


@lru_cache(maxsize=1024)
def _flow(code: CodeType) -> dict[int, tuple[tuple[int, ...], tuple[str, ...]]]:
    """Of each instruction by its offset, those that can follow it and the variables that it loads.

    The variables that a region hands to its end (``variables = branch.join(variables)``) are not counted: what the
    program reads of them after the region is loaded once more.
    """
    instructions = list(dis.get_instructions(code))
    flow, handed = {}, False
    for one, after in zip(instructions, [*instructions[1:], None], strict=True):
        loads = one.opname.startswith("LOAD")
        handed = one.argval in REGION_ENDS if loads and not handed else handed and not one.opname.startswith("CALL")
        loaded = one.argval if isinstance(one.argval, tuple) else (one.argval,)  # two of them from Python 3.13 on
        names = tuple(name for name in loaded if isinstance(name, str)) if loads and not handed else ()
        ends = one.opname.startswith(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "RETURN", "RAISE", "RERAISE"))
        follows = (() if ends or after is None else (after.offset,)) + ((one.argval,) if one.opcode in JUMPS else ())
        flow[one.offset] = follows, names
    return flow
