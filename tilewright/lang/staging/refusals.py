"""What Python does while staging, and a machine cannot do when the program runs: refused with the way to write it.

Rewritten functions call these where such a statement stands; each costs nothing when all is known while staging.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging.builder import depth
from tilewright.lang.staging.location import fail

_AT_RUN_TIME = (ZeroDivisionError, OverflowError, FloatingPointError, IndexError, AssertionError)
"""Errors by which Python's operations say what a machine's operations do not say."""
_STRUCTURED = "the machine's control flow is structured"


def _region(level: int) -> Any:
    """The innermost run-time region that was opened since ``level`` regions were open."""
    return Builder.current().regions[-1] if depth() > level else None  # type: ignore[attr-defined]


def jump(word: str, loop: Any) -> None:
    """``break`` and ``continue`` are allowed only where Python executes them: in no run-time region of the loop."""
    if region := _region(loop if isinstance(loop, int) else loop.level):
        raise fail(
            f"`{word}` inside a {region} is not possible: {_STRUCTURED}; compute a flag and guard the rest of the body "
            "with `if`, or use a `while` with the condition in its head"
        )


def leave(word: str, level: int) -> None:
    """``return`` and ``raise``, likewise, seen from the whole function."""
    if region := _region(level):
        advice = "assign the result to a variable and return it at the end" if word == "return" else "use `assert`"
        raise fail(f"`{word}` inside a {region} is not possible: {_STRUCTURED}; {advice}")


def outer(name: str, level: int) -> None:
    """A ``nonlocal`` variable lives in Python: a run-time region cannot assign it each time that it runs."""
    if region := _region(level):
        raise fail(
            f"the variable '{name}' of an outer scope is assigned inside a {region}, which is staged once and "
            "runs many times or never; use a local variable, or an element of a tensor"
        )


def caught(level: int) -> None:
    """An exception must not leave a run-time region by way of a handler."""
    if depth() > level:
        raise fail(
            "an exception left a run-time region and was caught outside it; catch it inside or decide with const_expr"
        )


def recorded() -> tuple[Block, int] | None:
    """How many operations the program has at this point."""
    return (Builder.current().block, len(Builder.current().block.ops)) if Builder.active() else None


def attempted(before: tuple[Block, int] | None, *kinds: Any) -> None:
    """The body of a ``try`` has ended: if it recorded operations, no handler catches what they do at run time."""
    if before == recorded():
        return
    for kind in (k for listed in kinds for k in (listed if isinstance(listed, tuple) else (listed,))):
        if any(issubclass(error, kind) for error in _AT_RUN_TIME):
            raise fail(
                f"`except {kind.__name__}` catches nothing when the program runs: the machine has no exceptions; "
                "test for the case with `if` before it arises (`if b != 0:`), and leave only what Python does now in "
                "the `try`"
            )


def matched(subject: Any) -> Any:
    """The subject of ``match``, whose cases Python tries while staging."""
    if is_dynamic(subject):
        raise fail(
            f"a run-time {type(subject).__name__} has no truth value while staging, when `match` looks for its case: "
            "write `if n == 0:`, `elif n == 1:`, ..."
        )
    return subject


def filtered(test: Any) -> Any:
    """The condition of a comprehension, by which Python chooses the items while staging."""
    if is_dynamic(test):
        raise fail(
            f"a run-time {type(test).__name__} has no truth value while staging, when a comprehension chooses its "
            "items: write a `for` loop with an `if`, or choose values, `[x if p else 0 for ...]`"
        )
    return test


def decided(test: Any) -> Any:
    """What decides whether Python evaluates an expression with ``:=``."""
    if is_dynamic(test):
        raise fail(
            f"`:=` after a run-time {type(test).__name__}, which may keep it from being evaluated: assign the variable "
            "in a statement before, or in an `if` statement"
        )
    return test


def formatted(value: Any, instead: str) -> Any:
    """A value in a text that ``printf`` gets ready-made."""
    if is_dynamic(value):
        raise fail(
            f"a run-time {type(value).__name__} in a text is only a question mark: the text is made while staging, "
            f"before its number is known; write {instead}"
        )
    return value


def is_dynamic(value: Any) -> bool:
    """Whether ``value`` is a number that is known only when the program runs."""
    return isinstance(value, Numeric) and not value.is_static
