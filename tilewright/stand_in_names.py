"""The names and modules of ``stand_ins.toml``: what the CuTe DSL has and Tilewright does not have yet."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any


def names(module: str) -> list[str]:
    """The stand-ins of ``module``, and its modules that have no file."""
    here = relative(module)
    return [*reasons().get(here, ()), *modules_under(here)]


def modules_under(path: str) -> list[str]:
    """The names of the modules without a file in the package ``path`` (``utils``)."""
    return [name for parent, _, name in (module.rpartition(".") for module in modules()) if parent == path]


def is_attribute(cls: type, name: str) -> bool:
    """Whether the class of this name has the attribute in the CuTe DSL."""
    return any(name in data()["attributes"].get(base.__name__, "").split() for base in cls.__mro__)


def alias(path: str) -> str | None:
    """The module whose names the module ``path`` shows, if it has no names of its own."""
    same = data()["alias"].get(path)
    return f"tilewright.{same}" if same else None


def is_internal(path: str) -> bool:
    """Whether ``path`` is a module of the CuTe DSL's compiler, of which any name can be imported."""
    return path in _internal()


@functools.cache
def modules() -> frozenset[str]:
    """The modules that have no file (``experimental.cuda``): stand-ins only, or another name of a module."""
    listed = {*reasons(), *data()["alias"], *_internal()}
    listed |= {path.rpartition(".")[0] for path in listed}
    root = Path(__file__).parent
    return frozenset(
        path for path in listed if not any(root.joinpath(path.replace(".", "/") + end).exists() for end in ("", ".py"))
    )


def relative(module: str) -> str:
    """The path of a module inside the package."""
    return module.partition(".")[2]


@functools.cache
def data() -> dict[str, Any]:
    """``stand_ins.toml``."""
    return tomllib.loads(Path(__file__).with_name("stand_ins.toml").read_text(encoding="utf-8"))


def _internal() -> list[str]:
    return [f"_mlir.{name}" for name in data()["internal"]["modules"].split()]


@functools.cache
def reasons() -> dict[str, dict[str, tuple[str, tuple[str, ...]]]]:
    """By module and name: why it is not here (and what to use), and its members."""
    by_module: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {}
    for group in data()["names"]:
        why = data()["why"].get(group["why"], group["why"])
        for text in group["names"].split():
            name, _, members = text.rstrip(")").partition("(")
            use = group.get("use", {}).get(name)
            reason = f"{why.partition('. ')[0]}; use {use}" if use else why
            by_module.setdefault(group["module"], {})[name] = reason, tuple(members.split(",")) if members else ()
    return by_module
