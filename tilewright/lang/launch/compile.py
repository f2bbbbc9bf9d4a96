"""``cute.compile`` and the compilation that calling a ``@cute.jit`` function implies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, TypeAlias, cast

from tilewright.errors import ArgumentError, LaunchError
from tilewright.lang.launch import options as opts
from tilewright.lang.launch.executor import Executor
from tilewright.lang.launch.jit import JitFunction
from tilewright.lang.launch.kernel import KernelFunction
from tilewright.lang.launch.specialise import compile_for
from tilewright.lang.staging.user_errors import show_users_frames

Option: TypeAlias = opts.CompileOption | type[opts.CompileOption]


class Compiler:
    """``cute.compile``: compile a function for the given arguments, without any cache.

    ``compile(f, *args, options="--opt-level 2")`` or ``compile[OptLevel(2), KeepPTX](f, *args)``; ``check="all"`` is
    short for ``options="--check all"`` (where ``f`` has no parameter of that name). ``f`` is a
    ``@cute.jit`` function or method, an object whose ``__call__`` is one, or a ``functools.partial`` of these, whose
    arguments are bound. Gives an
    :class:`~tilewright.lang.launch.executor.Executor`.
    """

    def __init__(self, options: opts.CompileOptions, key: Any = None) -> None:
        """``key`` decides the program, and may name one that is kept on the disk: see :mod:`stored`."""
        self.options, self.key = options, key

    def __getitem__(self, options: Option | tuple[Option, ...]) -> Compiler:
        return Compiler(opts.gather(self.options, options))

    def __call__(self, function: Callable[..., Any], *args: Any, options: str = "", **kwargs: Any) -> Executor:
        __tracebackhide__ = True
        try:
            called: Any = function
            while isinstance(called, partial):  # its arguments come first, and names given here replace its own
                called, args, kwargs = called.func, (*called.args, *args), {**called.keywords, **kwargs}
            target, owner = target_of(called)
            chosen = opts.of_environment(self.options)
            chosen = opts.parse(chosen, options) if options else chosen
            if "check" in kwargs and "check" not in target.signature.names:
                chosen = opts.gather(chosen, opts.Check(kwargs.pop("check")))
            return compile_for(target, (*owner, *args), kwargs, len(owner), chosen, self.key)
        except LaunchError as error:
            show_users_frames(error)
            if "--enable-tvm-ffi" in options:  # documented: such functions are compiled, and fail when they are called
                return cast(Executor, Impossible(error))
            raise
        except Exception as error:
            show_users_frames(error)
            raise

    def __repr__(self) -> str:
        return "cute.compile"


class Impossible:
    """A compiled function whose launch no machine can do: calling it is the error."""

    def __init__(self, error: LaunchError) -> None:
        self.error = error

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise self.error

    def export_to_c(self, *args: Any, **kwargs: Any) -> None:
        raise self.error


compile = Compiler(opts.CompileOptions())


def target_of(function: Any) -> tuple[JitFunction, tuple[Any, ...]]:
    """The staged function behind something callable, and the object that it is bound to (if any)."""
    if isinstance(function, JitFunction):
        return function, ()
    if isinstance(function, MethodType):
        target, owner = target_of(function.__func__)
        return target, (function.__self__, *owner)
    if isinstance(function, KernelFunction):
        raise ArgumentError(
            f"{function!r} cannot be compiled alone: write a @cute.jit function that launches it and compile that"
        )
    if isinstance(function, FunctionType):
        return JitFunction(function), ()
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the attribute itself, not the bound method
    if isinstance(call, JitFunction):
        return call, (function,)
    hint = ""
    if isinstance(function, type):
        hint = f": make an object of it, cute.compile({function.__name__}(...), ...)"
    elif isinstance(call, KernelFunction):
        hint = (
            f": {type(function).__qualname__}.__call__ is a @cute.kernel; launch it in a method marked @cute.jit, "
            "and compile that method"
        )
    elif call is not None and isinstance(call, FunctionType):
        hint = f": mark {type(function).__qualname__}.__call__ with @cute.jit"
    elif function is None:
        hint = ": pass the function and its arguments, cute.compile(f, a, b); cute.compile(f(a, b)) runs f first"
    raise ArgumentError(
        f"cute.compile takes a @cute.jit function, or an object whose __call__ is one; got {function!r}{hint}"
    )
