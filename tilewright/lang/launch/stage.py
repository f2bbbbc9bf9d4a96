"""Staging of a whole program: a host function with the kernels that it launches."""

from __future__ import annotations

import inspect
import time
from types import FunctionType
from typing import Any, NamedTuple

from tilewright.errors import ArgumentError
from tilewright.ir.core import Block, Function, Value
from tilewright.ir.passes.cse import eliminate_common_subexpressions
from tilewright.ir.passes.dce import eliminate_dead_code
from tilewright.ir.verify import verify
from tilewright.lang.arguments.argument import argument_of
from tilewright.lang.arguments.kinds import Argument
from tilewright.lang.arguments.signature import Signature
from tilewright.lang.launch.collector import without_collector
from tilewright.lang.launch.marked import MarkedFunction
from tilewright.lang.staging import objects
from tilewright.lang.staging import values as run_time
from tilewright.lang.staging.builder import HostBuilder
from tilewright.lang.staging.location import fail, register_entry
from tilewright.lang.staging.user_errors import blamed

STARTED = time.time_ns()
"""When the package was imported, about: a source that was written later is not what this process runs."""


class Program(NamedTuple):
    """A staged host function; ``result`` is the shape of what it returns, ``functions`` all that took part."""

    host: Function
    kernels: list[Function]
    arguments: list[Argument]
    result: run_time.Spec
    functions: list[FunctionType]


def arguments_of(signature: Signature, bound: inspect.BoundArguments) -> list[Argument]:
    return [argument_of(name, value, note) for name, note, value in signature.parameters(bound)]


def stage(target: MarkedFunction[Any, Any], bound: inspect.BoundArguments, arguments: list[Argument]) -> Program:
    """Trace ``target`` for these arguments."""
    params = [Value(t, label) for a in arguments for t, label in zip(a.types(), a.value_names(), strict=True)]
    host = Function(target.prefix + target.function.__name__, "host", Block(list(params)))
    builder = HostBuilder(host.body, any(a.on_cpu for a in arguments), list(bound.arguments.values()))
    builder.dependencies.append(target.function)
    rest = iter(params)
    with without_collector(), builder.activate(), blamed():
        returned = target.signature.call(target.code, bound, [a.rebuild(rest) for a in arguments])
        values, result = _result(target, returned)
        builder.emit("yield", values)
    for call, place in builder.waiting.items():
        raise fail(
            f"the kernel {call.kernel.name} is called but never launched: {call.kernel.name}(...).launch(grid=..., "
            "block=...)",
            place,
        )
    host.attrs["source"] = target.function.__code__.co_filename
    eliminate_common_subexpressions(host)
    eliminate_dead_code(host)
    verify(host)
    kernels = [made.function for specialisations in builder.kernels.values() for made in specialisations]
    return Program(host, kernels, arguments, result, list(dict.fromkeys(builder.dependencies)))


register_entry(stage.__code__)


def _result(target: MarkedFunction[Any, Any], returned: Any) -> tuple[list[Value], run_time.Spec]:
    values, spec = run_time.flatten(returned)
    if _has_foreign(spec):
        raise ArgumentError(
            f"{target.function.__qualname__} returns {objects.describe(returned)} to Python; a compiled function "
            "returns numbers (or tuples of them); results that are tensors go into arrays passed as arguments"
        )
    return values, spec


def _has_foreign(spec: run_time.Spec) -> bool:
    if isinstance(spec, run_time.CompoundSpec):
        return any(map(_has_foreign, spec.parts))
    return isinstance(spec, run_time.ProtocolSpec)


def python_result(spec: run_time.Spec, values: Any) -> Any:
    """The returned object with Python numbers in place of run-time ones."""
    if isinstance(spec, run_time.NumberSpec):
        return next(values)
    if isinstance(spec, run_time.CompoundSpec):
        return spec.make([python_result(part, values) for part in spec.parts])
    return spec.rebuild(values)
