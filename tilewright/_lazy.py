"""Public names that other modules define: found at first use, so that importing a public module costs nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import PathFinder
from types import FrameType
from typing import Any, TypeVar

Getter = Callable[[str], Any]


def lazily(
    module: str, table: dict[str, str], submodules: Iterable[str] = ()
) -> tuple[Getter, Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` for ``module``.

    ``table`` maps a defining module to the names it gives, separated by spaces; ``here=there`` renames. ``submodules``
    are imported when they are asked for.
    """
    where: dict[str, tuple[str, str]] = {}
    for source, names in table.items():
        for name in names.split():
            here, _, there = name.partition("=")
            where[here] = (source, there or here)
    children = frozenset(submodules)

    def find(name: str) -> Any:
        if name in children:
            return importlib.import_module(f"{module}.{name}")
        if name not in where:
            raise missing(module, name, (*where, *children), sys._getframe(1))
        source, there = where[name]
        found = getattr(importlib.import_module(source), there)
        setattr(sys.modules[module], name, found)
        return found

    public = sorted([*where, *children])
    return find, lambda: public, public


def unknown_names(module: str) -> None:
    """Give a public module that defines its names itself a ``__getattr__``: the error for any other name. (A module
    that defines ``__getattr__`` in its text has every name, to type checkers.)"""

    def find(name: str) -> Any:
        found = sys.modules[module]
        raise missing(module, name, getattr(found, "__all__", dir(found)), sys._getframe(1))

    sys.modules[module].__getattr__ = find  # type: ignore[method-assign]  # a module has no such method, to checkers


def names_of(other: str) -> tuple[Getter, Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of an older module that shows what the module ``other`` shows."""
    found = importlib.import_module(other)
    public: list[str] = list(found.__all__)
    return found.__getattribute__, lambda: public, public


def missing(module: str, name: str, known: Iterable[str], asker: FrameType) -> Exception:
    """The error of ``module.name``: a name that is documented and not here yet, or none at all (with the nearest).

    In ``from module import name`` Python puts a text of its own in the place of an AttributeError's, so that there it
    is an ImportError. ``asker`` is the frame that asks.
    """
    if name.startswith("__"):  # Python asks modules for such names itself
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    from tilewright.errors import MissingImportError, MissingNameError, nearest

    def text() -> str:
        if _is_documented(f"{module}.{name}".partition(".")[2]):
            return f"module {module!r} has no {name!r} yet: the CuTe DSL has it, Tilewright does not"
        return f"module {module!r} has no attribute {name!r}{nearest(name, known)}"

    import dis

    if dis.opname[asker.f_code.co_code[asker.f_lasti]] == "IMPORT_FROM":
        return MissingImportError(text(), name=module)
    return MissingNameError(text)


T = TypeVar("T", bound=type)


def explained(cls: T) -> T:
    """Decorator of a class whose objects say of an attribute that they do not have whether it is documented. (A
    ``__getattr__`` in the class would let type checkers believe in any attribute.)"""

    def refuse(self: Any, name: str) -> Any:
        if name.startswith("_"):  # Python and other libraries ask for such names
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        from tilewright.errors import MissingAttributeError

        raise MissingAttributeError(self, name, attribute_text)

    cls.__getattr__ = refuse  # type: ignore[attr-defined]  # see above: not in the text of the class
    return cls


def attribute_text(thing: Any, name: str) -> str:
    """What is wrong with ``thing.name``: not here yet, or unknown (with the nearest name)."""
    cls = thing if isinstance(thing, type) else type(thing)
    known = [n for n in dir(thing) if not n.startswith("_")]
    classes = {module.rpartition(".")[2]: names for module, names in _documented() if _is_class(module)}
    if any(name in classes.get(base.__name__, ()) for base in cls.__mro__):
        return f"{cls.__name__} has no {name!r} yet: the CuTe DSL has it, Tilewright does not"
    from tilewright.errors import nearest

    return f"{cls.__name__} has no attribute {name!r}{nearest(name, known)}"


class _DocumentedModules:  # no importlib.abc.MetaPathFinder: importing that takes longer than all the rest here
    """The last finder of modules: one that the CuTe DSL documents and that is not here is an error that says so."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
        package, _, name = fullname.partition(".")
        if package == __name__.partition(".")[0] and _is_documented(name) and not _is_here(fullname):
            from tilewright.errors import MissingImportError

            raise MissingImportError(
                f"there is no module {fullname!r} yet: the CuTe DSL has it, Tilewright does not", name=fullname
            )


def _is_here(fullname: str) -> bool:
    """Whether there is such a module after all: tools ask finders for modules by paths of their own."""
    parent = sys.modules.get(fullname.rpartition(".")[0])
    return PathFinder.find_spec(fullname, getattr(parent, "__path__", [])) is not None


sys.meta_path.append(_DocumentedModules())


def _is_documented(path: str) -> bool:
    """Whether ``cute.nvgpu.tcgen05`` is a documented name, or a module of documented names."""
    for module, names in _documented():
        if f"{module}.".startswith(f"{path}."):
            return True
        if path in [f"{module}.{name}".removeprefix("..") for name in names]:
            return True
    return False


def documented_modules() -> list[str]:
    """The modules that the CuTe DSL documents, without their ``cutlass.``"""
    return [module for module, _ in _documented() if module != "." and not _is_class(module)]


def _is_class(path: str) -> bool:
    """Whether a line of names is of a class: they are its attributes."""
    return path.rpartition(".")[2][:1].isupper()


def _documented() -> list[tuple[str, list[str]]]:
    from pathlib import Path

    lines = Path(__file__).with_name("documented_names.txt").read_text(encoding="utf-8").splitlines()
    split = [line.partition(": ") for line in lines if not line.startswith("#")]
    return [(module, names.split()) for module, _, names in split]
