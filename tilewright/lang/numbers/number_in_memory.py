"""Members of structs in memory, used as numbers."""

from __future__ import annotations

from typing import Any


class NumberInMemory:
    """A number in memory (the member of a struct), at ``ptr``. Where a program uses it as a number, ``load`` reads it;
    where an instruction works on memory (an mbarrier), its address is meant."""

    __slots__ = ()
    ptr: Any

    def load(self) -> Any:
        raise NotImplementedError
