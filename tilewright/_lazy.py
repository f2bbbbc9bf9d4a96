"""Names that a module bears but others define: found at first use, so that importing the face costs nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

Getter = Callable[[str], Any]


def lazily(
    module: str, table: dict[str, str], submodules: Iterable[str] = ()
) -> tuple[Getter, Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` for ``module``.

    ``table`` maps a defining module to the names it gives, separated by spaces; ``here=there`` renames. ``submodules``
    are imported when they are asked for.
    """
    where: dict[str, tuple[str, str]] = {}
    for home, names in table.items():
        for name in names.split():
            here, _, there = name.partition("=")
            where[here] = (home, there or here)
    children = frozenset(submodules)

    def find(name: str) -> Any:
        if name in children:
            return importlib.import_module(f"{module}.{name}")
        if name not in where:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, there = where[name]
        found = getattr(importlib.import_module(home), there)
        setattr(sys.modules[module], name, found)
        return found

    public = sorted([*where, *children])
    return find, lambda: public, public
