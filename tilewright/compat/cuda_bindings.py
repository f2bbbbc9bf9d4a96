"""Stand-ins for the modules of ``cuda.bindings``: put in place of them for programs that run on the CPU."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

from tilewright._at_import import AtImport

_PACKAGES = ("cuda", "cuda.bindings")
_MODULES = {
    "cuda.bindings.driver": "tilewright.compat.driver",
    "cuda.bindings.runtime": "tilewright.compat.runtime",
    "cuda.cuda": "tilewright.compat.driver",
    "cuda.cudart": "tilewright.compat.runtime",
}
_replaced: dict[str, ModuleType | None] = {}
_pending: list[AtImport] = []


def install(always: bool) -> None:
    """Serve ``cuda.bindings.driver`` and ``.runtime`` (and their older names) from here; unless ``always``, only where
    the package is not installed (programs import it for the names of types)."""
    if _replaced:
        return
    if not always and _is_here():
        if not _pending:
            _pending.append(AtImport("cuda.bindings", _with_modules))
        return
    paths = {name: _path(name) for name in _PACKAGES}
    for name in (*_PACKAGES, *_MODULES):
        _replaced[name] = sys.modules.pop(name, None)
    for name in _PACKAGES:
        package: Any = ModuleType(name, f"``{name}``, of which Tilewright serves the driver and the runtime.")
        package.__path__ = paths[name]
        sys.modules[name] = package
    for name, ours in _MODULES.items():
        sys.modules[name] = importlib.import_module(ours)
    for name in (*_PACKAGES, *_MODULES):
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, sys.modules[name])


def _with_modules() -> None:
    """``import cuda.bindings as cuda; cuda.runtime...``: programs find both modules there, as others import them."""
    for name in ("cuda.bindings.driver", "cuda.bindings.runtime"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def uninstall() -> None:
    while _pending:
        _pending.pop().cancel()
    for name, module in _replaced.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
    _replaced.clear()


def _is_here() -> bool:
    try:
        return importlib.util.find_spec("cuda.bindings.driver") is not None
    except ModuleNotFoundError:
        return False


def _path(name: str) -> list[str]:
    """Where the other modules of the package are, if it is installed."""
    try:
        spec = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):
        return []
    return list(spec.submodule_search_locations or ()) if spec else []
