"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class found_once:
    """As ``functools.cached_property``, without the lock that Python 3.11 takes for each.

    >>> class Square:
    ...     side = 3
    ...     @found_once
    ...     def area(self):
    ...         return self.side**2
    >>> Square().area
    9
    """

    def __init__(self, find: Callable[[Any], Any]) -> None:
        self.find, self.name, self.__doc__ = find, find.__name__, find.__doc__

    def __get__(self, owner: Any, kind: type) -> Any:
        found = owner.__dict__[self.name] = self.find(owner)
        return found
