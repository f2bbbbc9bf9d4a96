"""What a user's epilogue function reads besides its fields: globals, closures, attributes of its class.

Kernels are kept by the type and the fields of their epilogue function. Of the library's own functions these decide the
kernel. A user's function may read anything, so the state of what it reads is part of the key, too: a number that is
another one as soon as :class:`~tilewright.lang.launch.dependencies.Dependencies` finds a change.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from itertools import count
from typing import Any

import numpy as np

from tilewright.lang.arguments.arrays import is_array
from tilewright.lang.launch.dependencies import Dependencies
from tilewright.lang.launch.marked import MarkedFunction
from tilewright.lang.staging.class_modules import module_of
from tilewright.lang.staging.contents import stores_of, users_bases

REMEMBERED = 64
"""States of one function; more than that are forgotten together, and its kernels are compiled again."""
_NUMBERS = count(1)
_LOCK = threading.RLock()
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes))
MOST_FUNCTIONS = 1024
"""Functions whose states are known, with the objects in their fields; more than that are forgotten together."""
_STATES: dict[tuple[int, ...], list[tuple[int, Dependencies, tuple[Any, ...]]]] = {}
"""The states, by the identities of a class and of the objects in its fields, which are kept alive."""


def states_of(functions: Iterable[Any]) -> tuple[int, ...]:
    """The number of each user's function's state, those in fields of others included; () without such fields."""
    return tuple([_state(roots)[0] for function in functions for roots in _users(function)])


def note_staged(functions: Iterable[Any], numbers: tuple[int, ...]) -> None:
    """What staging itself changed (a list of what was staged) makes no other state than those with these ``numbers``,
    which :func:`states_of` gave before."""
    for roots, number in zip([roots for function in functions for roots in _users(function)], numbers, strict=True):
        with _LOCK:
            states = _STATES.get(tuple(map(id, roots)), [])
            for i, (other, before, kept) in enumerate(states):
                if other == number and not before.hold():
                    states[i] = number, Dependencies((), roots, before), kept


def _state(roots: tuple[Any, ...]) -> tuple[int, Dependencies, tuple[Any, ...]]:
    with _LOCK:
        if len(_STATES) >= MOST_FUNCTIONS:
            _STATES.clear()
        states = _STATES.setdefault(tuple(map(id, roots)), [])
        for state in reversed(states):
            if state[1].hold():
                return state
        if len(states) >= REMEMBERED:
            states.clear()
        states.append((next(_NUMBERS), Dependencies((), roots), roots))
        return states[-1]


def _users(function: Any) -> Iterator[tuple[Any, ...]]:
    """The class of an epilogue function that is not the library's, with what is in the fields of its object; and the
    same of the dataclasses in its fields."""
    cls = type(function)
    if not is_dataclass(cls):
        return
    values = [getattr(function, field.name, None) for field in fields(cls)]
    held = [x for value in values for x in _objects(value)]
    if held or not module_of(cls).startswith("tilewright."):
        yield cls, *held
    for value in values:
        for part in value if isinstance(value, tuple) else (value,):
            yield from _users(part)


def _objects(value: Any) -> Iterator[Any]:
    """What a field holds that may change while it stays the same object: functions, classes, modules, objects with
    attributes. The elements of containers are in the key of the kernel, and dataclasses have fields of their own."""
    kind = type(value)
    if kind in _PLAIN or is_array(value) or isinstance(value, np.generic):
        return
    if kind in (tuple, list, set, frozenset, dict):
        for part in (*value, *value.values()) if kind is dict else value:
            yield from _objects(part)
    elif isinstance(value, type):
        yield from (value,) if users_bases(value) else ()
    elif isinstance(value, MarkedFunction) or (not is_dataclass(kind) and stores_of(kind)):
        yield value
