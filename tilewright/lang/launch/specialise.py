"""Staged functions compiled for the arguments of one call."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from tilewright.lang.arguments.kinds import Argument, StaticArgument
from tilewright.lang.launch import options as opts
from tilewright.lang.launch.dependencies import Dependencies
from tilewright.lang.launch.executor import Executor
from tilewright.lang.launch.marked import MarkedFunction
from tilewright.lang.launch.stage import arguments_of, stage


def compile_for(
    target: MarkedFunction[Any, Any],
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


class Specialisation:
    """What a direct call compiled: the executor, what it was staged from, and the ``call`` that takes all ``count``
    arguments and gives MISS for those of another specialisation."""

    def __init__(
        self, target: MarkedFunction[Any, Any], bound: inspect.BoundArguments, arguments: list[Argument]
    ) -> None:
        fixed = [argument.value for argument in arguments if isinstance(argument, StaticArgument)]
        before = Dependencies([target.function], fixed)
        program = stage(target, bound, arguments)
        self.dependencies = Dependencies(program.functions, fixed, before)
        self.executor = Executor(program, target.signature, bound, 0, opts.CompileOptions())
        self.call, self.count = self.executor.direct(bound), len(arguments)
        self.executor.release()
