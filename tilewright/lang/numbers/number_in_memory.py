"""Members of structs in memory, used as numbers."""

from __future__ import annotations

from typing import Any


class NumberInMemory:
    """A number in memory (the member of a struct). Where a program uses it as a number, ``load`` reads it."""

    __slots__ = ()

    def load(self) -> Any:
        raise NotImplementedError
