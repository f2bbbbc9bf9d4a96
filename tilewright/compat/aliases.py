"""The import hook: ``cutlass``, ``cutlass.cute``, ... are the modules ``tilewright``, ``tilewright.cute``, ..."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from tilewright import stand_in_names
from tilewright._names import first_use
from tilewright.compat.distribution import VERSION
from tilewright.errors import OF_A_MODULE, ArgumentError, MissingImportError, nearest

OURS, THEIRS = "tilewright", "cutlass"
PICTURES = "cute_viz"  # the package that programs draw layouts with; one that is installed stays what it is


class Face(ModuleType):
    """The module ``cutlass``: that of Tilewright, but for its version, which is that of the names that are followed."""

    __carry_immutable__ = True  # to staging it is the library that it stands for

    def __init__(self, ours: ModuleType) -> None:
        super().__init__(THEIRS, ours.__doc__)
        own = {"_ours": ours, "__version__": VERSION, "__file__": ours.__file__, "__path__": ours.__path__}
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return self._ours.__all__
        names = vars(self._ours)
        return names[name] if name in names else first_use(OURS, name, sys._getframe(1))

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):  # the import system's
            super().__setattr__(name, value)
        else:
            setattr(self._ours, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._ours, name)

    def __dir__(self) -> list[str]:
        return dir(self._ours)


class AliasFinder(MetaPathFinder, Loader):
    """Finds ``cutlass.x`` as the module ``tilewright.x`` itself, so that both names give the same objects."""

    def __init__(self) -> None:
        self._own_specs: dict[str, ModuleSpec | None] = {}

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        served = fullname.partition(".")[0] == THEIRS or (fullname == PICTURES and not PathFinder.find_spec(PICTURES))
        if not served:
            return None
        try:
            found = _ours(fullname)
        except MissingImportError:
            if _is_only_asked():
                return None
            raise
        return ModuleSpec(fullname, self, is_package=hasattr(found, "__path__"))

    def find_distributions(self, context: Any) -> Iterator[Any]:
        """``importlib.metadata.version("nvidia-cutlass-dsl")``, which libraries ask for before they import it."""
        from tilewright.compat.distribution import distributions

        return distributions(context.name)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _ours(spec.name)
        if spec.name == THEIRS:
            return Face(module)
        self._own_specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already; the import system has written the alias's spec into it, which is undone."""
        if module.__spec__ is not None and not isinstance(module, Face):
            module.__spec__ = self._own_specs.pop(module.__spec__.name, module.__spec__)


def _is_only_asked() -> bool:
    """Whether a program asks ``importlib.util.find_spec`` if there is a module, and imports nothing."""
    frame = sys._getframe(2)  # who called the finder's find_spec
    while frame.f_back is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        frame = frame.f_back
    return frame.f_globals.get("__name__") == "importlib.util"


def _ours(alias: str) -> ModuleType:
    name = f"{OURS}.{PICTURES}" if alias == PICTURES else OURS + alias.removeprefix(THEIRS)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        parent, _, last = alias.rpartition(".")
        near = nearest(last, _children(parent), OF_A_MODULE)
        advice = near or "; use what cutlass, cutlass.cute and cutlass.utils document"
        raise MissingImportError(f"there is no module {alias!r}{advice}", name=alias) from None


def _children(alias: str) -> list[str]:
    """The modules under ``alias``, with and without files."""
    ours = OURS + alias.removeprefix(THEIRS)
    files = pkgutil.iter_modules(getattr(sys.modules.get(ours), "__path__", []))
    return [*(info.name for info in files), *stand_in_names.names(ours)]


_finder: AliasFinder | None = None


def install(replace: bool = False) -> None:
    """Put the finder before all others. A package ``cutlass`` that is installed stays what it is unless ``replace``."""
    global _finder
    if _finder is not None:
        return
    if not replace and (where := _other()):
        raise ArgumentError(
            f"a package `cutlass` is installed ({where}), which Tilewright does not hide unless asked: "
            "`tilewright run --replace`, or tilewright.compat.install(replace=True)"
        )
    _forget()
    _finder = AliasFinder()
    sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    global _finder
    if _finder is not None:
        sys.meta_path.remove(_finder)
        _finder = None
        _forget()


def is_installed() -> bool:
    return _finder is not None


def _forget() -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == THEIRS]:
        del sys.modules[name]


def _other() -> str | None:
    """Where another package ``cutlass`` is installed, or None; a folder of that name (a namespace package) does not
    count."""
    loaded = sys.modules.get(THEIRS)
    if loaded is not None:
        return (
            None
            if isinstance(loaded, Face) or loaded.__name__ == OURS
            else str(getattr(loaded, "__file__", None) or "imported already")
        )
    spec = importlib.util.find_spec(THEIRS)
    return spec.origin if spec is not None and spec.origin else None
