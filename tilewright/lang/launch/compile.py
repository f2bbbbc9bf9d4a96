"""``cute.compile`` and the compilation that calling a ``@cute.jit`` function implies."""

from __future__ import annotations

import inspect
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from tilewright.errors import ArgumentError
from tilewright.lang.arguments.kinds import Fixed
from tilewright.lang.launch import options as opts
from tilewright.lang.launch.calls import MISS
from tilewright.lang.launch.dependencies import Outside, moves, snapshot
from tilewright.lang.launch.executor import Executor
from tilewright.lang.launch.jit import JitFunction
from tilewright.lang.launch.kernel import KernelFunction
from tilewright.lang.launch.stage import arguments_of, stage
from tilewright.lang.staging.user_errors import show_users_frames


class Compiler:
    """``cute.compile``: compile a function for the given arguments, without any cache.

    ``compile(f, *args, options="--opt-level 2")`` or ``compile[OptLevel(2), KeepPTX](f, *args)``. ``f`` is a
    ``@cute.jit`` function or method, or an object whose ``__call__`` is one. Gives an
    :class:`~tilewright.lang.launch.executor.Executor`.
    """

    def __init__(self, options: opts.CompileOptions) -> None:
        self.options = options

    def __getitem__(self, options: Any) -> Compiler:
        return Compiler(opts.gather(self.options, options))

    def __call__(self, function: Any, *args: Any, options: str = "", **kwargs: Any) -> Executor:
        __tracebackhide__ = True
        try:
            target, owner = target_of(function)
            chosen = opts.parse(self.options, options) if options else self.options
            return _compile(target, (*owner, *args), kwargs, len(owner), chosen)
        except Exception as error:
            show_users_frames(error)
            raise

    def __repr__(self) -> str:
        return "cute.compile"


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
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the attribute itself is wanted
    if isinstance(call, JitFunction):
        return call, (function,)
    raise ArgumentError(
        f"cute.compile takes a @cute.jit function, or an object whose __call__ is one; got {function!r}"
    )


def _compile(
    target: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any], skip: int, options: opts.CompileOptions
) -> Executor:
    bound = target.signature.bind(args, kwargs)
    program = stage(target, bound, arguments_of(target.signature, bound))
    opts.apply(options, [program.host, *program.kernels])
    _mark(program.kernels, options)
    made = Executor(program, target.signature, bound, skip, options)
    made.release()
    opts.keep(options, program.kernels)
    return made


def _mark(kernels: list[Any], options: opts.CompileOptions) -> None:
    """Kernels carry options only when there are some: most have none, and print without."""
    if options != opts.CompileOptions():
        for kernel in kernels:
            kernel.attrs["options"] = options


def run(target: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a staged function from Python: compile it for such arguments, or take what was compiled before."""
    if not kwargs and target.recent is not None:
        found = target.recent(args)
        if found is not MISS:
            return found
    fresh = kwargs.pop("no_cache", False) if "no_cache" not in target.signature.names else False
    bound = target.signature.bind(args, kwargs)
    arguments = arguments_of(target.signature, bound)
    key = tuple(argument.key() for argument in arguments)
    entry = None if fresh else _known(target, key, arguments)
    if entry is None:
        before, around = _fingerprint(arguments), Outside([target.function])
        program = stage(target, bound, arguments)
        executor = Executor(program, target.signature, bound, 0, opts.CompileOptions())
        outside = Outside(program.functions, around)
        kept = target.cache.setdefault(key, [])
        after = _fingerprint(arguments)
        kept += [Entry(state, executor, outside) for state in ([before, after] if after != before else [after])]
        entry = kept[-1]
        target.recent = _recent(target, entry, bound, arguments)
        executor.release()
    given = [value for _, _, value in target.signature.parameters(bound)]
    values = [leaf for argument, value in zip(arguments, given, strict=True) for leaf in argument.read(value)]
    return entry.executor.run(values)


class Entry(NamedTuple):
    """One compiled specialisation: the state of the objects that it was staged from, and what it read from outside."""

    state: list[Any]
    executor: Executor
    outside: Outside


def _recent(target: JitFunction, entry: Entry, bound: Any, arguments: list[Any]) -> Any:
    """The short way for a call like the last: no keys, no signature; MISS when anything is different."""
    if target.signature.variadic:
        return None
    direct, count = entry.executor.direct(bound), len(arguments)
    defaults = tuple(p.default for p in target.signature.python.parameters.values())
    objects = [a for a in arguments if isinstance(a, Fixed) and moves(a.value)]
    variables, moving, contents = entry.outside.variables, entry.outside.moving, entry.outside.contents
    state, result = entry.state, entry.executor.result

    def recent(args: tuple[Any, ...]) -> Any:
        if len(args) != count:
            missing = defaults[len(args) :]
            args += missing
            if len(args) != count or any(value is inspect.Parameter.empty for value in missing):
                return MISS
        if objects and _fingerprint(objects) != state:
            return MISS
        for scope, name, value in variables:
            if (scope.get(name) if type(scope) is dict else scope.cell_contents) is not value:
                return MISS
        if moving and entry.outside.contain() != contents:
            return MISS
        values = direct(*args)
        return MISS if values is MISS else result(values)

    return recent


def _known(target: JitFunction, key: Any, arguments: list[Any]) -> Entry | None:
    """What was compiled for such arguments, if everything that it was staged from is still as it was."""
    state = _fingerprint(arguments)
    for entry in reversed(target.cache.get(key, ())):
        if entry.state == state and entry.outside.holds():
            return entry
    return None


def _fingerprint(arguments: list[Any]) -> list[Any]:
    """What the objects contain that a program was specialised for: when it changes, so does the program."""
    return [snapshot(a.value) for a in arguments if isinstance(a, Fixed) and moves(a.value)]
