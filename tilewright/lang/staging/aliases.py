"""Names of one object: what is written to it under one of them shows under the others.

Where the sides of a region leave two objects under one name, the name goes on with a third one, made of both. That is
Python's answer only if neither of the two has another name: a variable of any function on the stack, or a place behind
one.
"""

from __future__ import annotations

import dis
import re
import weakref
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.lang.staging.builder import StagingBuilder
from tilewright.lang.staging.contents import can_change, stores_of
from tilewright.lang.staging.lasting import gathered, is_lasting
from tilewright.lang.staging.location import ENTRIES, counts_as_user, fail, user_frame
from tilewright.lang.staging.nodes import TOOL
from tilewright.lang.staging.objects import codec, is_record, labels_of
from tilewright.lang.staging.region_state import RegionState
from tilewright.lang.staging.rewrite import REGION_ENDS
from tilewright.lang.staging.source import names_of
from tilewright.lang.staging.undefined import Undefined

ONE_OF_TWO = (
    "it is one of two objects that can change, and only the running program knows which; take a copy of each "
    "(`list(x)`, `x.clone()`), or choose between their numbers"
)

LASTING = (type, FunctionType, ModuleType)
VARIABLE = r"(LOAD|STORE|DELETE)_(?:FAST|DEREF|CLOSURE|CLASSDEREF|NAME|FROM_DICT_OR_DEREF)"
JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


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
            if can_change(side):
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
    seen: set[int] = set()
    builder = Builder.current()
    waiting: list[Any] = list(builder.given) if isinstance(builder, StagingBuilder) else []
    frame = user_frame(2)
    assigned = set(state.names)
    while frame is not None and id(frame.f_code) not in ENTRIES:
        if counts_as_user(frame.f_code):
            held, read = frame.f_locals, _read_later(frame)
            waiting += [held[n] for n in held if n in read and n not in assigned and not n.startswith(TOOL)]
            waiting += [frame.f_globals[n] for n in names_of(frame.f_code) & frame.f_globals.keys()]
            # Only the innermost function has the variables that the region changes.
            assigned = set()
        frame = frame.f_back
    # All that can be reached from there, each object once: containers, records and objects with attributes.
    written = {id(place.holder) for place in state.places.values()}
    while waiting:
        holder = waiting.pop()
        stores = stores_of(type(holder))
        if not stores or id(holder) in seen:
            continue
        if is_lasting(holder) and written.isdisjoint((lasting := gathered(type(holder).__name__, holder)).members):
            seen.update(lasting.members)
            waiting += [other for _, other, _ in lasting.others]
            continue
        seen.add(id(holder))
        for store in stores:
            if store.objects is not None:  # memory is not read: of all arrays that anything names it may be much
                waiting += store.objects(holder)
            elif not store.state:
                held = store.read(holder)
                waiting += [held[key] for key in held if (id(holder), id(store), key) not in state.places]
        waiting.append(type(holder))
    return seen


def _read_later(frame: FrameType) -> frozenset[str]:
    """The variables whose present values the function may still read: they are live after the instruction that it is
    at, in the flow of its bytecode."""
    (names, live), at = _live(frame.f_code), frame.f_lasti
    while at not in live:  # within the operands of an instruction that the interpreter has specialised
        at -= 2
    return frozenset(name for name, bit in names.items() if live[at] & bit)


@lru_cache(maxsize=1024)
def _live(code: CodeType) -> tuple[dict[str, int], dict[int, int]]:
    """A bit for each variable, and the bits of those that are live after each instruction, by its offset."""
    names, flow = _flow(code)
    before = dict.fromkeys(flow, 0)
    after, changed = dict(before), True
    backward = [(at, *flow[at]) for at in reversed(flow)]
    # Liveness is a backward data flow: in reverse order a few passes reach the fixed point.
    while changed:
        changed = False
        for at, follows, loads, stores in backward:
            live = 0
            for place in follows:
                live |= before[place]
            after[at] = live
            if (found := loads | (live & ~stores)) != before[at]:
                before[at], changed = found, True
    return names, after


def _flow(code: CodeType) -> tuple[dict[str, int], dict[int, tuple[tuple[int, ...], int, int]]]:
    """A bit for each variable; by the offset of each instruction its possible successors, the bits of the variables
    that it loads, and of those that it stores.

    The variables that pass through the end of a region (``variables = branch.join(variables)``) count as neither: they
    are live before it if they are live after it.
    """
    instructions = list(dis.get_instructions(code))
    names: dict[str, int] = {}
    flow: dict[int, tuple[tuple[int, ...], int, int]] = {}
    handed, passing = False, 0
    for one, after in zip(instructions, [*instructions[1:], None], strict=True):
        name = one.opname
        # From the look-up of the method to its call, all loads are its arguments.
        method = name in ("LOAD_METHOD", "LOAD_ATTR") and one.argval in REGION_ENDS
        handed = method or handed and not name.startswith("CALL")
        loads, stores = (_bits(found, names) for found in _variables(one))
        if handed:
            passing |= loads
            loads = 0
        stores, passing = stores & ~passing, passing & ~stores
        ends = name.startswith(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "RETURN", "RAISE", "RERAISE"))
        follows = () if ends or after is None else (after.offset,)
        follows += (one.argval,) if one.opcode in JUMPS else ()
        flow[one.offset] = follows, loads, stores
    return names, flow


def _bits(found: list[str], names: dict[str, int]) -> int:
    bits = 0
    for name in found:
        bits |= names.setdefault(name, 1 << len(names))
    return bits


@cache
def _kinds(opname: str) -> list[str]:
    """What an instruction does to its variables, in order."""
    return re.findall(VARIABLE, opname)


def _variables(one: dis.Instruction) -> tuple[list[str], list[str]]:
    """The variables that an instruction loads and stores. From Python 3.13 on one instruction may do two of both, as
    its name says: STORE_FAST_LOAD_FAST."""
    kinds = _kinds(one.opname)
    if not kinds:
        return [], []
    named = one.argval if isinstance(one.argval, tuple) else (one.argval,)
    pairs = list(zip(kinds, named, strict=False))
    return [n for kind, n in pairs if kind == "LOAD"], [n for kind, n in pairs if kind != "LOAD"]
