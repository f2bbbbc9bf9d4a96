"""NumPy and ml_dtypes in the browser, where neither is: names without arrays.

The npm package of Pyodide is Python and its standard library alone. What the explorer shows is integer arithmetic:
modules that name arrays and their types when they are imported are imported, and a function that would make an array is
an error that says so.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

MODULES = ("numpy", "numpy.typing", "numpy.lib", "numpy.lib.stride_tricks", "ml_dtypes")
IMPORTING = "<frozen importlib._bootstrap>"  # the file of the code that runs a module


class _Name:
    """Something of NumPy's: it can be named, subscripted, inherited from, called while a module is imported."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return _attribute(self._name, name)

    def __call__(self, *_args: object, **_: object) -> _Name:
        caller = frame = sys._getframe(1)
        while frame.f_code.co_filename != IMPORTING:
            if frame.f_back is None:
                raise RuntimeError(f"{caller.f_code.co_name} needs NumPy ({self._name}), which is not in the browser")
            frame = frame.f_back
        return _Name(f"{self._name}()")

    def __getitem__(self, key: object) -> _Name:
        return self

    __iter__ = None  # Python would take one after the other without end

    def __or__(self, other: object) -> _Name:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return (object,)


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _attribute(self.__name__, name)


def _attribute(owner: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Name(f"{owner}.{name}")


def install() -> None:
    """Let imports of NumPy and ml_dtypes find the stand-ins; before anything has imported them."""
    for name in MODULES:
        sys.modules[name] = _Module(name)
