"""Names that the CuTe DSL has and Tilewright does not have yet, which programs import with names that are here.

``stand_ins.toml`` lists them. They can be imported, and written into annotations and base classes. Calling one is an
error that says why it is not here, and what to use in its place where there is something.
"""

from __future__ import annotations

import functools
import importlib
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError, MissingNameError, nearest
from tilewright.stand_in_names import alias, data, is_internal, modules, reasons, relative

_HOOKS = ("pytest", "setup", "teardown", "load_tests")  # names that test runners look for in modules


class NotHereYet(type):
    """The class of stand-ins. ``members``: those of an enumeration, and the methods that programs name."""

    path: str
    why: str
    members: tuple[str, ...]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise ConstraintError(f"{cls.path} is not here yet: {cls.why}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):  # Python asks for such names itself
            raise AttributeError(name)
        if name in cls.members:
            return stand_in(f"{cls.path}.{name}", cls.why)
        near = nearest(name, cls.members)
        reason = near or f"; {cls.path} is not here yet: {cls.why}"
        raise MissingNameError(lambda: f"{cls.path} has no attribute {name!r}{reason}")

    def __getitem__(cls, item: Any) -> Any:  # annotations: GridConstant[TensorMap]
        return cls

    __iter__ = None  # Python would take one after the other without end

    def __repr__(cls) -> str:
        return f"<{cls.path}: not here yet>"


@functools.cache
def stand_in(path: str, why: str, members: tuple[str, ...] = ()) -> Any:
    """The stand-in for ``path``, ``cutlass...``."""
    return NotHereYet(path.rpartition(".")[2], (), {"path": path, "why": why, "members": members})


def find(module: str, name: str) -> Any | None:
    """The stand-in for ``module.name``, or the module of that name that has no file; None for other names."""
    here = relative(module)
    if (entry := reasons().get(here, {}).get(name)) is not None:
        return stand_in(f"cutlass.{here}.{name}".replace("..", "."), *entry)
    if f"{here}.{name}".lstrip(".") in modules():
        return importlib.import_module(f"{module}.{name}")
    if is_internal(here) and not name.lower().startswith(_HOOKS):
        return stand_in(f"cutlass.{here}.{name}", data()["why"]["internal"])
    return None


def find_spec(fullname: str) -> ModuleSpec | None:
    """How Python makes a module that has no file; None where it is no such module."""
    here = relative(fullname)
    if here not in modules():
        return None
    has_modules = any(path.startswith(f"{here}.") for path in modules())
    return ModuleSpec(fullname, _Loader(), is_package=has_modules)


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        """None: Python makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        attach(module.__name__, like=alias(relative(module.__name__)))
