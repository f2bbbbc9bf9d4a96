"""Names that the CuTe DSL has and Tilewright does not have yet, which programs import with names that are here.

``stand_ins.toml`` lists them. They can be imported, and written into annotations and base classes. Calling one is an
error that says why it is not here, and what to use in its place where there is something.
"""

from __future__ import annotations

import functools
import importlib
import tomllib
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError, MissingNameError, nearest

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
    here = _relative(module)
    if (entry := _names().get(here, {}).get(name)) is not None:
        return stand_in(f"cutlass.{here}.{name}".replace("..", "."), *entry)
    if f"{here}.{name}".lstrip(".") in modules():
        return importlib.import_module(f"{module}.{name}")
    if is_internal(here) and not name.lower().startswith(_HOOKS):
        return stand_in(f"cutlass.{here}.{name}", _data()["why"]["internal"])
    return None


def names(module: str) -> list[str]:
    """The stand-ins of ``module``, and its modules that have no file."""
    here = _relative(module)
    return [*_names().get(here, ()), *modules_under(here)]


def modules_under(path: str) -> list[str]:
    """The names of the modules without a file in the package ``path`` (``utils``)."""
    return [name for parent, _, name in (module.rpartition(".") for module in modules()) if parent == path]


def is_attribute(cls: type, name: str) -> bool:
    """Whether the class of this name has the attribute in the CuTe DSL."""
    return any(name in _data()["attributes"].get(base.__name__, "").split() for base in cls.__mro__)


def alias(path: str) -> str | None:
    """The module whose names the module ``path`` shows, if it has no names of its own."""
    same = _data()["alias"].get(path)
    return f"tilewright.{same}" if same else None


def is_internal(path: str) -> bool:
    """Whether ``path`` is a module of the CuTe DSL's compiler, of which any name can be imported."""
    return path in _internal()


@functools.cache
def modules() -> frozenset[str]:
    """The modules that have no file (``experimental.cuda``): stand-ins only, or another name of a module."""
    listed = {*_names(), *_data()["alias"], *_internal()}
    listed |= {path.rpartition(".")[0] for path in listed}
    root = Path(__file__).parent
    return frozenset(
        path for path in listed if not any(root.joinpath(path.replace(".", "/") + end).exists() for end in ("", ".py"))
    )


def find_spec(fullname: str) -> ModuleSpec | None:
    """How Python makes a module that has no file; None where it is no such module."""
    here = _relative(fullname)
    if here not in modules():
        return None
    has_modules = any(path.startswith(f"{here}.") for path in modules())
    return ModuleSpec(fullname, _Loader(), is_package=has_modules)


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        """None: Python makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        attach(module.__name__, like=alias(_relative(module.__name__)))


def _relative(module: str) -> str:
    return module.partition(".")[2]


@functools.cache
def _data() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _internal() -> list[str]:
    return [f"_mlir.{name}" for name in _data()["internal"]["modules"].split()]


@functools.cache
def _names() -> dict[str, dict[str, tuple[str, tuple[str, ...]]]]:
    """By module and name: why it is not here (and what to use), and its members."""
    found: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {}
    for group in _data()["names"]:
        why = _data()["why"].get(group["why"], group["why"])
        for text in group["names"].split():
            name, _, members = text.rstrip(")").partition("(")
            use = group.get("use", {}).get(name)
            reason = f"{why.partition('. ')[0]}; use {use}" if use else why
            found.setdefault(group["module"], {})[name] = reason, tuple(members.split(",")) if members else ()
    return found
