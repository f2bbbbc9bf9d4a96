"""Whether a program is being timed: the contents of its arrays are not checked then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_depth = 0


@contextmanager
def measuring() -> Iterator[None]:
    """Calls inside are made for their time.

    >>> with measuring():
    ...     is_measuring()
    True
    """
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def is_measuring() -> bool:
    return _depth > 0
