"""What a user's epilogue function reads besides its fields: globals, closures, attributes of its class.

Kernels are kept by the type and the fields of their epilogue function. Of the library's own functions these decide the
kernel. A user's function may read anything, so the state of what it reads is part of the key, too: a number that is
another one as soon as :class:`~tilewright.lang.launch.dependencies.Dependencies` finds a change.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import count
from types import FunctionType, MethodType
from typing import Any

from tilewright.lang.launch.dependencies import Dependencies
from tilewright.lang.launch.marked import MarkedFunction

REMEMBERED = 64
"""States of one function; more than that are forgotten together, and its kernels are compiled again."""
_NUMBERS = count(1)
_LOCK = threading.RLock()
_STATES: dict[tuple[int, ...], list[tuple[int, Dependencies, tuple[Any, ...]]]] = {}
"""By the identities of a class and of the functions in its object's fields, which are kept alive: the states."""


def states_of(functions: Iterable[Any]) -> tuple[int, ...]:
    """The number of each user's function's state, those in fields of others included; () without such fields."""
    return tuple([_state(roots)[0] for function in functions for roots in _users(function)])


def note_staged(functions: Iterable[Any]) -> None:
    """What staging itself changed (a list of what was staged) makes no other state."""
    for roots in [roots for function in functions for roots in _users(function)]:
        with _LOCK:
            known = _STATES.get(tuple(map(id, roots)), [])
            if known and not known[-1][1].hold():
                number, before, kept = known[-1]
                known[-1] = number, Dependencies((), roots, before), kept


def _state(roots: tuple[Any, ...]) -> tuple[int, Dependencies, tuple[Any, ...]]:
    with _LOCK:
        known = _STATES.setdefault(tuple(map(id, roots)), [])
        for state in reversed(known):
            if state[1].hold():
                return state
        if len(known) >= REMEMBERED:
            known.clear()
        known.append((next(_NUMBERS), Dependencies((), roots), roots))
        return known[-1]


def _users(function: Any) -> Iterator[tuple[Any, ...]]:
    """The class of an epilogue function that is not the library's, with the functions in the fields of its object; and
    the same of the objects in its fields."""
    cls = type(function)
    if not is_dataclass(cls):
        return
    values = [getattr(function, field.name, None) for field in fields(cls)]
    called = [x for x in values if isinstance(x, (FunctionType, MethodType, MarkedFunction, partial))]
    if called or not cls.__module__.startswith("tilewright."):
        yield cls, *called
    for value in values:
        for part in value if isinstance(value, tuple) else (value,):
            yield from _users(part)
