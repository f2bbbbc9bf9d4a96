"""The common part of functions marked ``@cute.jit`` and ``@cute.kernel``."""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Any, Generic, ParamSpec, TypeVar

from tilewright.errors import StagingError, unknown_keyword
from tilewright.lang.arguments.signature import Signature
from tilewright.lang.staging.build import staged
from tilewright.lang.staging.location import here
from tilewright.lang.staging.source import remember

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class MarkedFunction(Generic[P, R]):
    """A function that is staged. Without ``preprocessor`` its control flow is left to Python.

    To type checkers a marked function has the parameters ``P`` and the result ``R`` that were written.
    """

    word = ""
    __name__: str
    __qualname__: str
    prefix = ""
    """The prefix of its names: :meth:`set_name_prefix`."""
    __tilewright_marked__ = True
    """The mark by which :mod:`~tilewright.lang.staging.contents` recognises such functions."""

    def __init__(self, function: FunctionType, preprocessor: bool = True) -> None:
        self.function = function
        self.preprocessor = preprocessor
        if preprocessor:
            remember(function)
        functools.update_wrapper(self, function)
        # Attributes that programs read of any function: the code object, which identifies it, and the defaults.
        self.__code__, self.__globals__, self.__closure__ = (
            function.__code__,
            function.__globals__,
            function.__closure__,
        )
        self.__defaults__, self.__kwdefaults__ = function.__defaults__, function.__kwdefaults__

    def __reduce__(self) -> str:
        """Pickled by its name, as Python's functions are."""
        return self.__qualname__

    @functools.cached_property
    def signature(self) -> Signature:
        return Signature(self.function)

    @functools.cached_property
    def code(self) -> FunctionType:
        """The function that is called while staging."""
        return staged(self.function) if self.preprocessor else self.function

    def set_name_prefix(
        self, prefix: str, remove_cutlass_symbol: bool = False, *, loc: Any = None, ip: Any = None
    ) -> None:
        """Put ``prefix`` before the function's name in programs that are staged after this call. CUDA text, profilers
        and the IR show the names of kernels; the IR shows those of host functions. ``remove_cutlass_symbol``: names
        here have no such symbol, with it or without."""
        if not isinstance(prefix, str) or (prefix and not prefix.isidentifier()):
            raise StagingError(f"set_name_prefix({prefix!r}): letters, digits and _, no digit first")
        self.prefix = prefix

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __get__(self, owner: Any, cls: Any = None) -> Any:
        return self if owner is None else MethodType(self, owner)


M = TypeVar("M", bound=MarkedFunction[..., Any])


def mark(kind: type[M], function: Any, preprocessor: bool, unknown: dict[str, Any]) -> Any:
    """``function`` as a ``kind``; a decorator where there is no function yet (``@cute.jit(preprocessor=False)``)."""
    for name in unknown:
        raise unknown_keyword(kind.word, name, ("preprocessor",))
    if function is None:
        return lambda f: mark(kind, f, preprocessor, {})
    if isinstance(function, kind):
        return function
    if isinstance(function, staticmethod):
        return staticmethod(mark(kind, function.__func__, preprocessor, {}))
    if not isinstance(function, FunctionType):
        raise StagingError(f"@cute.{kind.word} marks functions, not {function!r} at {here(3)}")
    return kind(function, preprocessor)
