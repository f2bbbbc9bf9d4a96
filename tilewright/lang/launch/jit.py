"""``@cute.jit``: host functions that launch kernels, and functions that kernels call (they are inlined)."""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Any

from tilewright.errors import StagingError, unknown_keyword
from tilewright.ir.builder import Builder
from tilewright.lang.arguments.signature import Signature, adapt, numeric_annotation
from tilewright.lang.staging.blame import show_users_frames
from tilewright.lang.staging.build import staged
from tilewright.lang.staging.source import remember


class JitFunction:
    """A function marked ``@cute.jit``.

    Called while something is staged, it is inlined there. Called from Python it is compiled for its arguments, at the
    first call with such arguments, and run.
    """

    def __init__(self, function: FunctionType, preprocessor: bool = True) -> None:
        self.function = function
        self.preprocessor = preprocessor
        if preprocessor:
            remember(function)
        self.cache: dict[Any, Any] = {}
        self.recent: Any = None
        functools.update_wrapper(self, function)

    @functools.cached_property
    def signature(self) -> Signature:
        return Signature(self.function)

    @functools.cached_property
    def code(self) -> FunctionType:
        """The function that is called while staging."""
        return staged(self.function) if self.preprocessor else self.function

    @functools.cached_property
    def adapts(self) -> bool:
        return any(numeric_annotation(a) for a in self.signature.annotations.values())

    def __get__(self, owner: Any, cls: Any = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if Builder.active():
            return self.inline(args, kwargs)
        from tilewright.lang.launch.compile import run

        __tracebackhide__ = True
        try:
            return run(self, args, kwargs)
        except Exception as error:
            show_users_frames(error)
            raise

    def inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the body in the function that is being staged."""
        dependencies = getattr(Builder.current(), "dependencies", None)
        if dependencies is not None:
            dependencies.append(self.function)
        if not self.adapts:
            return self.code(*args, **kwargs)
        bound = self.signature.bind(args, kwargs)
        values = [adapt(name, value, note) for name, note, value in self.signature.parameters(bound)]
        return self.signature.call(self.code, bound, values)

    def __repr__(self) -> str:
        return f"<jit function {self.function.__qualname__}>"


def jit(function: Any = None, *, preprocessor: bool = True, **unknown: Any) -> Any:
    """Decorator, also with parentheses: ``@jit`` or ``@jit(preprocessor=False)`` (control flow is then left to
    Python)."""
    for name in unknown:
        raise unknown_keyword("jit", name, ("preprocessor",))
    if function is None:
        return lambda f: jit(f, preprocessor=preprocessor)
    if isinstance(function, JitFunction):
        return function
    if isinstance(function, staticmethod):
        return staticmethod(jit(function.__func__, preprocessor=preprocessor))
    if not isinstance(function, FunctionType):
        raise StagingError(f"@cute.jit marks functions, not {function!r}")
    return JitFunction(function, preprocessor)
