"""Python's operations that a machine cannot do when the program runs: refused with the way to write them.

Rewritten functions call these where such a statement is; each costs nothing when all is known while staging.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.builder import Builder
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging.builder import depth
from tilewright.lang.staging.location import fail

_GUARD = "compute a flag and guard the rest of the body with `if`, or use a `while` with the condition in its head"
_INSTEAD = {
    "break": _GUARD,
    "continue": _GUARD,
    "return": "put what follows under the opposite condition, or assign the result to a variable that is returned at "
    "the end",
    "raise": "use `assert`",
}


def leave(word: str, statement: Any) -> None:
    """``break``, ``continue``, ``return`` and ``raise`` are allowed only where Python executes them: in no run-time
    region of what they leave (a loop, or the number of regions that were open before it)."""
    if depth() > (statement if isinstance(statement, int) else statement.level):
        region = Builder.current().regions[-1]
        raise fail(
            f"`{word}` inside a {region} is not possible: the machine's control flow is structured; {_INSTEAD[word]}"
        )


def known(value: Any, why: str) -> Any:
    """A value that Python uses while staging: the condition of a comprehension, a part of a text."""
    if is_dynamic(value):
        raise fail(f"a run-time {type(value).__name__} {why}")
    return value


def is_dynamic(value: Any) -> bool:
    """Whether ``value`` is a number that is known only when the program runs."""
    return isinstance(value, Numeric) and not value.is_static
