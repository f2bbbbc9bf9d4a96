"""Numbers that lie in memory and are used as numbers."""

from __future__ import annotations

from typing import Any


class Held:
    """A number that lies in memory (the member of a struct): ``load`` reads it, where it is used as a number."""

    __slots__ = ()

    def load(self) -> Any:
        raise NotImplementedError
