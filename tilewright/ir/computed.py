"""Properties in place of values that a base class declares."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


def computed(method: Callable[[Any], T]) -> T:
    """A property in place of a value that the base class declares, for facts that depend on what an object was made
    with. (To type checkers it is that value: they let no property take a variable's place.)

    >>> class Instruction:
    ...     min_arch: int = 80
    >>> class Load(Instruction):
    ...     bits = 128
    ...     min_arch = computed(lambda self: 90 if self.bits > 64 else 80)
    >>> Load().min_arch
    90
    """
    return property(method)  # type: ignore[return-value]  # what it gives, where checkers see it


def computed_once(method: Callable[[Any], T]) -> T:
    """As :func:`computed`, found when it is first asked for and kept: of objects that do not change.

    >>> class Load:
    ...     accesses = computed_once(lambda self: ["read"])
    >>> load = Load()
    >>> load.accesses is load.accesses
    True
    """
    return cached_property(method)  # type: ignore[return-value]  # what it gives, where checkers see it
