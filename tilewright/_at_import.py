"""Doing something as soon as a program has imported a module, without importing it for that."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class AtImport:  # no importlib.abc.MetaPathFinder: importing that takes 4 ms
    """Calls ``act()`` once: now if the module ``name`` is loaded, else when it has been imported. :meth:`cancel` before
    that prevents the call."""

    def __init__(self, name: str, act: Callable[[], Any]) -> None:
        self.name, self.act = name, act
        if name in sys.modules:
            act()
        else:
            sys.meta_path.insert(0, self)

    def cancel(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        self.cancel()
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_act(module: ModuleType) -> None:
            load(module)
            self.act()

        spec.loader.exec_module = load_and_act  # type: ignore[method-assign]  # on purpose: acts when it is loaded
        return spec
