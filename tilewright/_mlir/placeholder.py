"""Names that programs import or write into annotations without using them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.errors import StagingError

_HOOKS = ("__", "pytest", "setup", "teardown", "load_tests")  # what Python and test runners look for in modules


def placeholders(module: str) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that gives a class for every name; calling it, or reading from it, is an error."""

    def find(name: str) -> Any:
        if name.lower().startswith(_HOOKS):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return _Internal(name, (), {"__module__": module})

    return find


class _Internal(type):
    def _fail(cls) -> StagingError:
        name = f"{cls.__module__.replace('tilewright', 'cutlass', 1)}.{cls.__name__}"
        return StagingError(f"{name} is an internal of another compiler and does nothing here; "
                            "llvm.inline_asm writes PTX, cute.arch has the instructions")  # fmt: skip

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise cls._fail()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise cls._fail()
