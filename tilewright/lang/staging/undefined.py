"""The value of a variable that the run-time control flow left without a usable one.

Only variables of staged functions hold it: rewritten code asks each variable that may be without a value before it
reads it, so that such a value has no identity, type, truth or length that a program could see.
"""

from __future__ import annotations

from typing import Any

from tilewright.lang.staging.location import fail, here

UNASSIGNED = "it is read before anything was assigned to it"


class Undefined:
    """Stands for the value that the variable ``name`` does not have; ``reason`` says why."""

    __slots__ = ("name", "reason")

    def __init__(self, name: str, reason: str = "") -> None:
        self.name = name
        self.reason = reason or UNASSIGNED


def defined(value: Any) -> Any:
    """The value of a variable; an error where it has none."""
    if type(value) is Undefined:
        raise fail(f"the variable '{value.name}' has no value here: {value.reason}", here(2))
    return value


def deleted(names: tuple[str, ...]) -> tuple[Undefined, ...]:
    """One for each name: what ``del`` leaves."""
    return tuple(Undefined(name, "`del` took it away") for name in names)


def undefined(names: tuple[str, ...]) -> tuple[Undefined, ...]:
    """One for each name: what the locals of a staged function hold before their first assignment."""
    return tuple(map(Undefined, names))
