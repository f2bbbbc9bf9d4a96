"""Public names: found at first use, so that importing a public module costs nothing.

A public module calls ``attach(__name__)``. It shows the names of the stub beside it: ``cute/__init__.pyi`` says ``from
tilewright.layout import Layout as Layout``, to type checkers and to this module, which reads it when the first name is
asked for. A name that is another one where it is defined has a line of its own below the imports, ``OpError =
ConstraintError``: checkers do not take it from an import. Names that the CuTe DSL has and Tilewright does not are data
of :mod:`tilewright.stand_ins`.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)
_NAME = re.compile(r"(\w+)(?: as (\w+))?")
_ALIAS = re.compile(r"^(\w+) = (\w+)$", re.MULTILINE)


def attach(module: str, like: str | None = None) -> None:
    """Give ``module`` its public names: those of its stub, or all names of the module ``like``; stand-ins for names
    that are not here yet; and for other names an error with the nearest one."""
    public_module: Any = sys.modules[module]

    def find(name: str) -> Any:
        if name == "__all__":
            return public_names(module, like)
        return first_use(module, name, sys._getframe(1), like)

    public_module.__getattr__ = find
    public_module.__dir__ = lambda: public_names(module, like)


def first_use(module: str, name: str, asker: FrameType, like: str | None = None) -> Any:
    """The public name, which the module keeps; an error at the line that asks for a name that does not exist."""
    if name.startswith("__"):  # Python asks modules for such names itself
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    value = _find(module, like, name, asker)
    setattr(sys.modules[module], name, value)
    return value


def public_names(module: str, like: str | None = None) -> list[str]:
    """Own names (``__all__``), those of the stub, and stand-ins."""
    own = vars(sys.modules[module]).get("__all__", ())
    others = importlib.import_module(like).__all__ if like else _stub(module)
    return sorted({*own, *others, *importlib.import_module("tilewright.stand_in_names").names(module)})


def _find(module: str, like: str | None, name: str, asker: FrameType) -> Any:
    if like is not None:
        return getattr(importlib.import_module(like), name)
    if (place := _stub(module).get(name)) is not None:
        source, there = place
        if source == module:
            return importlib.import_module(f"{module}.{there}")
        return getattr(importlib.import_module(source), there)
    if _is_imported_next(module, name, asker):
        raise AttributeError(name)
    stand_in = _stand_ins().find(module, name)
    if stand_in is None:
        raise _missing(module, name, asker)
    return stand_in


def _is_imported_next(module: str, name: str, asker: FrameType) -> bool:
    """Whether ``from module import name`` asks, which imports the file of that name where there is no such attribute.
    Stand-ins need not be read for it (10 ms)."""
    if asker.f_code.co_name != "_handle_fromlist":
        return False
    folders = getattr(sys.modules[module], "__path__", ())
    return any(os.path.exists(f"{folder}/{name}{end}") for folder in folders for end in (".py", "/__init__.py"))


def _stand_ins() -> Any:
    return importlib.import_module("tilewright.stand_ins")  # `from tilewright import` would ask for a name again


@functools.cache
def _stub(module: str) -> dict[str, tuple[str, str]]:
    """The names that the stub of ``module`` imports: from which module, and what they are called there."""
    path = str(getattr(sys.modules[module], "__file__", None) or "") + "i"
    try:
        text = sys.modules[module].__spec__.loader.get_data(path).decode()  # type: ignore[union-attr]  # see except
    except (AttributeError, OSError):  # no file, or no stub: the module defines its names itself
        return {}
    imports = [(statement[1], _NAME.findall(statement[2] or statement[3])) for statement in _IMPORT.finditer(text)]
    public = {here: (source, there) for source, names in imports for there, here in names if here}
    places = {here or there: (source, there) for source, names in imports for there, here in names}
    return public | {here: places[there] for here, there in _ALIAS.findall(text)}


def _missing(module: str, name: str, asker: FrameType) -> Exception:
    """The error of ``module.name``. In ``from module import name`` Python replaces the text of an AttributeError by its
    own, so there it is an ImportError. ``asker`` is the frame that asks."""
    import dis

    from tilewright.errors import OF_A_MODULE, MissingImportError, MissingNameError, nearest

    place = f"{asker.f_code.co_filename}:{asker.f_lineno}"

    def text() -> str:
        near = _of_module(module, name) or nearest(name, public_names(module), OF_A_MODULE)
        aliases = sys.modules.get("tilewright.compat.aliases")
        if aliases is None or not aliases.is_installed():
            return f"module {module!r} has no attribute {name!r}{near}"
        theirs = aliases.THEIRS + module.removeprefix(aliases.OURS)
        return f"module {theirs!r} has no attribute {name!r}, nor a stand-in for it, at {place}{near}"

    if dis.opname[asker.f_code.co_code[asker.f_lasti]] == "IMPORT_FROM":
        return MissingImportError(text(), name=module)
    return MissingNameError(text)


def _of_module(module: str, name: str) -> str:
    """Where a name that ``module`` does not have is, or what it is called here; empty where neither is known.

    >>> _of_module("tilewright.cute", "thread_idx"), _of_module("tilewright.cute", "program_id")
    ('; it is cute.arch.thread_idx', '; here it is cute.arch.block_idx()')
    >>> _of_module("tilewright.cute", "make_layuot")
    ''
    """
    from tilewright.foreign_names import OF_MODULES, PLACES

    for place in PLACES:
        there = f"{_PACKAGE}.{place}"
        if there != module and name in public_names(importlib.import_module(there).__name__):
            return f"; it is {place}.{name}"
    return f"; here it is {OF_MODULES[name]}" if name in OF_MODULES else ""


class _ModulesWithoutFiles:  # no importlib.abc.MetaPathFinder: importing that takes longer than all the rest here
    """The last finder: modules that have only names, see :mod:`tilewright.stand_ins`."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if fullname.partition(".")[0] != _PACKAGE:
            return None
        return _stand_ins().find_spec(fullname)


sys.meta_path.append(_ModulesWithoutFiles())
