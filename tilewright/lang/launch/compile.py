"""``cute.compile`` and the compilation that calling a ``@cute.jit`` function implies."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, TypeAlias, cast

from tilewright.errors import ArgumentError, LaunchError
from tilewright.lang.arguments.kinds import Argument, StaticArgument
from tilewright.lang.launch import options as opts
from tilewright.lang.launch.calls import MISS
from tilewright.lang.launch.dependencies import Dependencies
from tilewright.lang.launch.executor import Executor
from tilewright.lang.launch.jit import JitFunction
from tilewright.lang.launch.kernel import KernelFunction
from tilewright.lang.launch.stage import arguments_of, stage
from tilewright.lang.staging.user_errors import show_users_frames

Option: TypeAlias = opts.CompileOption | type[opts.CompileOption]


REMEMBERED = 64
"""Programs that a directly called function keeps for arguments of one kind: what they were staged from differed."""


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
            return _compile(target, (*owner, *args), kwargs, len(owner), chosen, self.key)
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


def _compile(
    target: JitFunction,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    skip: int,
    options: opts.CompileOptions,
    key: Any = None,
) -> Executor:
    bound = target.signature.bind(args, kwargs)
    arguments = arguments_of(target.signature, bound)
    if key is not None and options == opts.CompileOptions():
        from tilewright.lang.launch import stored  # here: hashing and the disk cache take 12 ms of a first launch

        program = stored.program(stored.name_of(key), arguments, partial(stage, target, bound, arguments))
    else:
        program = stage(target, bound, arguments)
    opts.apply(options, [program.host, *program.kernels])
    _mark(program.kernels, options)
    made = Executor(program, target.signature, bound, skip, options)
    made.release()
    opts.keep(options, program.kernels)
    if opts.is_set("CUTE_DSL_PRINT_IR"):
        print(made.__mlir__)
    return made


def _mark(kernels: list[Any], options: opts.CompileOptions) -> None:
    """Kernels carry options only when there are some: most have none, and print without."""
    if options != opts.CompileOptions():
        for kernel in kernels:
            kernel.attrs["options"] = options


def run(target: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a staged function from Python: compile it for such arguments, or take what was compiled before."""
    last = target.last
    if last is not None and not kwargs and len(args) == last.count and last.dependencies.hold():
        found = last.call(*args)
        if found is not MISS:
            return last.executor.result(found)
    fresh = kwargs.pop("no_cache", False) if "no_cache" not in target.signature.names else False
    bound = target.signature.bind(args, kwargs)
    arguments = arguments_of(target.signature, bound)
    key = tuple(argument.key() for argument in arguments)
    known = [] if fresh else [entry for entry in target.cache.get(key, ()) if entry.dependencies.hold()]
    entry = known[-1] if known else Specialisation(target, bound, arguments)
    if not known:
        kept = target.cache.setdefault(key, [])
        kept.append(entry)
        del kept[:-REMEMBERED]
    target.last = None if target.signature.variadic else entry
    given = [value for _, _, value in target.signature.parameters(bound)]
    return entry.executor.run([leaf for a, value in zip(arguments, given, strict=True) for leaf in a.read(value)])


class Specialisation:
    """What a direct call compiled: the executor, what it was staged from, and the ``call`` that takes all ``count``
    arguments and gives MISS for those of another specialisation."""

    def __init__(self, target: JitFunction, bound: inspect.BoundArguments, arguments: list[Argument]) -> None:
        fixed = [argument.value for argument in arguments if isinstance(argument, StaticArgument)]
        before = Dependencies([target.function], fixed)
        program = stage(target, bound, arguments)
        self.dependencies = Dependencies(program.functions, fixed, before)
        self.executor = Executor(program, target.signature, bound, 0, opts.CompileOptions())
        self.call, self.count = self.executor.direct(bound), len(arguments)
        self.executor.release()
