"""Errors that arise while a function is staged, brought to the user's line."""

from __future__ import annotations

import contextlib
import difflib
import linecache
import re
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple

from tilewright.errors import StagingError, TilewrightError
from tilewright.lang.staging.location import counts_as_user

_NAMES_A_LINE = re.compile(r"\.py:\d+|>:\d+")
_OF_OPERANDS = re.compile(
    r"unsupported operand type|not supported between instances|bad operand type for|loop of ufunc does not support"
    r"|object is not subscriptable|object does not support item|object is not callable|object is not iterable"
)


class Place(NamedTuple):
    file: str
    line: int
    innermost: bool
    """Whether the error was raised by that line itself, not in something that it called."""

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}" + (f": {source}" if source else "")


@contextlib.contextmanager
def blamed() -> Iterator[None]:
    """Name the user's line in errors of ours that do not, and make Python's complaints about operands (a tensor added
    to a string) and about attributes of our objects StagingErrors. Whatever else the user's code raises passes as it
    is."""
    try:
        yield
    except TilewrightError as wrong:
        place = place_of(wrong.__traceback__)
        if place is not None and not _NAMES_A_LINE.search(str(wrong)):
            wrong.args = (f"{wrong}\n  at {place}",)
        raise
    except TypeError as wrong:
        place = place_of(wrong.__traceback__)
        if place is None or not place.innermost or not _OF_OPERANDS.search(str(wrong)):
            raise
        advice = ""
        if "ufunc" in str(wrong):
            advice = "; NumPy computes while staging and knows no run-time values: take cute.math and the operators"
        raise StagingError(f"{wrong}{advice}\n  at {place}") from None


    except AttributeError as wrong:
        place = place_of(wrong.__traceback__)
        if place is None or not place.innermost or not type(wrong.obj).__module__.startswith("tilewright."):
            raise
        near = difflib.get_close_matches(wrong.name, dir(wrong.obj), 1)
        advice = f"; there is .{near[0]}" if near else ""
        raise StagingError(
            f"a {type(wrong.obj).__name__} has no attribute '{wrong.name}'{advice}\n  at {place}"
        ) from None


def place_of(traceback: TracebackType | None) -> Place | None:
    """The innermost line of user code that an error went through."""
    found: Place | None = None
    while traceback is not None:
        if counts_as_user(traceback.tb_frame.f_code):
            found = Place(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno, traceback.tb_next is None)
        traceback = traceback.tb_next
    return found
