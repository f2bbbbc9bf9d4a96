"""What a compiled function takes, as C: the parameters of its wrapper, the struct of each tensor, and the checks that a
call in Python makes, too.

A tensor is a pointer to a struct of its own: the address, then the extents and the strides that are not known when the
function is compiled. A pointer is ``void *``, a number its C type, a stream ``struct CUstream_st *`` (which
``cudaStream_t`` and ``CUstream`` both are). Tuples, named tuples, dataclasses, lists and dicts are passed part by part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.export.arithmetic import literal
from tilewright.export.names import Names
from tilewright.ir.types import I64, PtrType, ScalarType, Type
from tilewright.lang.arguments.dlpack import HostTensor
from tilewright.lang.arguments.kinds import Argument, CompoundArgument, ScalarArgument, StaticArgument, StreamArgument
from tilewright.lang.arguments.protocol import ProtocolArgument
from tilewright.lang.numbers.facts import EXTENT_BOUND
from tilewright.lang.numbers.numeric import Integer
from tilewright.lang.tensors.host_pointer import HostPointer
from tilewright.layout import cosize
from tilewright.layout.tuples import flatten_to_tuple

STREAM = "struct CUstream_st *"


@dataclass
class CParameter:
    """One parameter of the wrapper. ``values`` are the C expressions of the run-time values, in their order;
    ``fields`` those of a tensor's struct (with ``type`` its name); ``checks`` statements that refuse what the function
    was not compiled for. ``nbytes``: what an array takes whose layout is static."""

    name: str
    declaration: str
    values: list[str]
    type: str = ""
    fields: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    comment: str = ""
    nbytes: int | None = None


def parameters_of(executor: Any, prefix: str) -> list[CParameter]:
    """The C parameters of a compiled function; ArgumentError for arguments that have no C form."""
    names = Names("module", "place", prefix)
    leaves = (leaf for parameter in executor.parameters for leaf in _leaves(parameter.argument))
    return [_parameter(leaf, names.fresh(leaf.name), prefix) for leaf in leaves]


def _leaves(argument: Argument) -> Iterator[Argument]:
    if isinstance(argument, CompoundArgument):
        for part in argument.parts:
            yield from _leaves(part)
    elif not isinstance(argument, StaticArgument):
        yield argument


def _parameter(argument: Argument, name: str, prefix: str) -> CParameter:
    if isinstance(argument, StreamArgument):
        return CParameter(name, f"{STREAM}{name}", [f"(int64_t)(intptr_t){name}"], comment="the stream of the launches")
    if isinstance(argument, ScalarArgument):
        kind: ScalarType = argument.cls.ir_type
        bits = "" if kind.name in ("i1", "f32", "f64", "tf32") or kind.is_integer else ", as its bits"
        return CParameter(name, f"{kind.c} {name}", [name], comment=f"{argument.cls.__name__}{bits}")
    template = argument.template if isinstance(argument, ProtocolArgument) else None
    if isinstance(template, HostTensor):
        return _tensor(template, argument.types(), name, prefix)
    if isinstance(template, HostPointer):
        (kind_,) = argument.types()
        assert isinstance(kind_, PtrType)
        checks = [f'TW_TRY(tw_aligned((uint64_t)(uintptr_t){name}, {kind_.align}, "{name}"));']
        comment = f"pointer to {template.dtype.__name__}, a multiple of {kind_.align} bytes"
        return CParameter(name, f"void *{name}", [f"(uint64_t)(uintptr_t){name}"], checks=checks, comment=comment)
    raise ArgumentError(
        f"export_to_c: argument '{argument.name}' is {type(template or argument).__name__}, which has no C form; "
        "tensors, pointers, numbers, streams, and tuples and dataclasses of them have one"
    )


def _tensor(template: HostTensor, types: list[Type], name: str, prefix: str) -> CParameter:
    layout: Any = template.layout
    shape, stride = flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)
    pointer = types[0]
    assert isinstance(pointer, PtrType)
    made = CParameter(
        name,
        f"const {prefix}_Tensor_{name}_t *{name}",
        [f"(uint64_t)(uintptr_t){name}->data"],
        f"{prefix}_Tensor_{name}_t",
        ["void *data;"],
    )
    made.comment = f"{template.element_type.__name__}, layout {_text(layout)}, data a multiple of {pointer.align} bytes"
    made.checks = [
        f'if ({name} == NULL) return tw_fail(TW_INVALID_VALUE, "{name} is NULL");',
        f'TW_TRY(tw_aligned((uint64_t)(uintptr_t){name}->data, {pointer.align}, "{name}->data"));',
    ]
    reach: list[str] = []
    for part, leaves in (("dynamic_shapes", shape), ("dynamic_strides", stride)):
        dynamic = [leaf for leaf in leaves if isinstance(leaf, Integer)]
        wide = part == "dynamic_strides" or any(leaf.width == 64 for leaf in dynamic)
        if dynamic:
            made.fields.append(f"{'int64_t' if wide else 'int32_t'} {part}[{len(dynamic)}];")
        i = 0
        for leaf in leaves:
            if not isinstance(leaf, Integer):
                reach.append(literal(I64, leaf))
                continue
            place, facts = f"{name}->{part}[{i}]", leaf.facts
            low = 0 if facts.nonneg else -(1 << (leaf.width - 1))
            high = (facts.bound - 1) if facts.bound is not None else (1 << (leaf.width - 1)) - 1
            divisor = str(facts.divisibility)
            if facts.divisibility > 1 and part == "dynamic_strides":  # the stride of a single element says nothing
                divisor = f"{reach[len(reach) - len(shape)]} == 1 ? 1 : {divisor}"
            bounds = f"{literal(I64, low)}, {literal(I64, high)}, {divisor}"
            made.checks.append(f'TW_TRY(tw_leaf({place}, {bounds}, "{place}"));')
            made.values.append(f"({leaf.ir_type.c}){place}")
            reach.append(place)
            i += 1
    if len(made.values) == 1:  # the address alone
        made.nbytes = -(-cosize(layout) * template.element_type.width // 8)
    if not template.engine.wide and len(made.values) > 1:
        extents, steps = ", ".join(reach[: len(shape)]), ", ".join(reach[len(shape) :])
        made.checks.append(
            f"{{ const int64_t n[] = {{{extents}}}, d[] = {{{steps}}}; "
            f'TW_TRY(tw_reach({len(shape)}, n, d, {literal(I64, EXTENT_BOUND[32] - 1)}, "{name}")); }}'
        )
    return made


def _text(layout: Any) -> str:
    return str(layout).replace("*/", "* /")
