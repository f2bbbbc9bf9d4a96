"""Printing loops and branches. What a region carries is a mutable variable, assigned at the region's end."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.cuda.emitter import KernelEmitter, prints
from tilewright.cuda.expressions import ADD, prefix
from tilewright.cuda.vectors import Lazy, fill, materialise, recipe, settle
from tilewright.errors import CompileError
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.types import FragType, VecType


@prints("for")
def _for(e: KernelEmitter, op: Op) -> None:
    settle(e)
    lo, hi, step, *init = op.operands
    body = op.regions[0]
    index, *args = body.args
    carry_in(e, args, init, op.results)
    first, bound, stride = (e.expr(v) for v in (lo, hi, step))
    counter = e.name(index.hint or "n")
    e.alias(index, counter)
    if (pragma := _pragma(op.attrs.get("unroll"))) is not None:
        e.line(pragma)
    # A known step gives the plain form of a loop, which NVRTC can count and unroll.
    if isinstance(step, Constant):
        relation, advance = ("<", f"{counter} += {stride}") if step.value > 0 else (">", f"{counter} -= {-step.value}")
        advance = f"++{counter}" if step.value == 1 else f"--{counter}" if step.value == -1 else advance
        test = f"{counter} {relation} {bound.inside(ADD)}"
    else:
        advance = f"{counter} += {stride}"
        test = f"{stride.inside(ADD)} > 0 ? {counter} < {bound.inside(ADD)} : {counter} > {bound.inside(ADD)}"
    with e.block(f"for ({e.type_name(index.type)} {counter} = {first}; {test}; {advance})"):
        e.block_ops(body)
        assign(e, [e.value(a) for a in args], body.ops[-1].operands)
    _alias_all(e, op.results, args)


def _pragma(unroll: object) -> str | None:
    if unroll is None:
        return None
    if unroll in ("full", -1):
        return "#pragma unroll"
    return f"#pragma unroll {unroll}"


@prints("if")
def _if(e: KernelEmitter, op: Op) -> None:
    settle(e)
    condition = e.expr(op.operands[0])
    if (only := _predicable(op)) is not None:
        only.attrs["atom"].emit_if(e, only, condition.text)
        return
    carried = _differing(e, op)
    names = [e.declare(op.results[i]) for i in carried]
    sides = []
    for region in op.regions:
        with e.captured() as lines, e.indented():
            e.block_ops(region)
            assign(e, names, [region.ops[-1].operands[i] for i in carried])
        sides.append(lines)
    then, other = sides
    # Arms whose ops are all printed elsewhere, or not at all, leave nothing to branch over.
    if not then:
        if not other:
            return
        condition, then, other = prefix("!", condition), other, []
    e.line(f"if ({condition.text}) {{")
    e.replay(then)
    if other:
        e.line("} else {")
        e.replay(other)
    e.line("}")


def _predicable(branch: Op) -> Op | None:
    """The instruction that a branch consists of, if it can be predicated."""
    ops = [op for region in branch.regions for op in region.ops if op.opcode != "yield"]
    if branch.results or len(ops) != 1 or ops[0].opcode != "call" or ops[0] not in branch.regions[0].ops:
        return None
    return ops[0] if ops[0].attrs["atom"].predicable else None


def _differing(e: KernelEmitter, op: Op) -> list[int]:
    """Which results need a variable: those that are used and not the same value on both sides."""
    differing = []
    yields = [region.ops[-1].operands for region in op.regions]
    for i, result in enumerate(op.results):
        _no_fragment(result, op)
        then, other = (values[i] for values in yields)
        if not e.used(result):
            continue
        if then is other and not isinstance(then, Constant):
            e.same(result, then)
        else:
            differing.append(i)
    return differing


@prints("while")
def _while(e: KernelEmitter, op: Op) -> None:
    settle(e)
    before, after = op.regions
    carry_in(e, before.args, op.operands, op.results)
    names = [e.value(a) for a in before.args]
    condition, *carried = before.ops[-1].operands
    fresh = _leave_through(e, op, carried)
    with e.captured() as lines, e.indented():
        e.block_ops(before)
        test = e.expr(condition)
        assign(e, [name for name, _ in fresh], [value for _, value in fresh])
    _alias_all(e, after.args, op.results)
    # A condition that takes statements is computed at the top of each iteration; one expression is in the head.
    with e.block("while (true)" if lines else f"while ({test.text})"):
        if lines:
            e.replay(lines)
            e.line(f"if ({prefix('!', test).text}) break;")
        e.block_ops(after)
        assign(e, names, after.ops[-1].operands)


def _leave_through(e: KernelEmitter, op: Op, carried: Sequence[Value]) -> list[tuple[str, Value]]:
    """Results are the loop's own variables, or fresh ones (given back) where the condition computed something else."""
    fresh = []
    for result, value, arg in zip(op.results, carried, op.regions[0].args, strict=True):
        if value is arg:
            e.alias(result, e.value(arg))
        else:
            fresh.append((e.declare(result), value))
    return fresh


# -- carried values --------------------------------------------------------------------------------------------


def carry_in(e: KernelEmitter, args: Sequence[Value], init: Sequence[Value], results: Sequence[Value]) -> None:
    """Declare the variables of carried values with their first values."""
    for arg, value, result in zip(args, init, results, strict=True):
        _no_fragment(arg, None)
        text = e.value(value) if isinstance(value.type, VecType) else e.expr(value).text
        name = e.name(arg.hint or result.hint or value.hint or "carried")
        e.line(f"{e.declaration(arg.type, name)} = {text};")
        e.alias(arg, name)


def assign(e: KernelEmitter, names: Sequence[str], values: Sequence[Value]) -> None:
    """All ``names`` become ``values`` at once: through temporaries where one value reads a name assigned before it."""
    pending: list[tuple[str, Value, str | Lazy]] = []
    changed: list[str] = []
    for name, value in zip(names, values, strict=True):
        if isinstance(value.type, VecType) and value in e.lazy:
            lazy = recipe(e, value)
            pending.append((name, value, lazy))
            text = lazy.element("i").text
        else:
            text = materialise(e, value) if isinstance(value.type, VecType) else e.expr(value).text
            if text == name:
                continue
            pending.append((name, value, text))
        changed.append(name)
    for position, (name, value, how) in enumerate(pending):
        text = how.element("i").text if isinstance(how, Lazy) else how
        # `a, b = b, a`: the second would read what the first has just assigned.
        earlier = [other for other, _, _ in pending[:position] if other != name]
        if any(re.search(rf"\b{other}\b", text) for other in earlier):
            copy = e.name(f"next_{name}")
            _set(e, copy, value, how, declare=True)
            pending[position] = (name, value, copy)
    for name, value, how in pending:
        _set(e, name, value, how)


def _set(e: KernelEmitter, name: str, value: Value, how: str | Lazy, declare: bool = False) -> None:
    if isinstance(how, str):
        e.line(f"{e.declaration(value.type, name) if declare else name} = {how};")
        return
    if declare:
        e.line(f"{e.declaration(value.type, name)};")
    assert isinstance(value.type, VecType)
    fill(e, name, value.type.n, how)


def _alias_all(e: KernelEmitter, values: Sequence[Value], variables: Sequence[Value]) -> None:
    for value, variable in zip(values, variables, strict=True):
        e.alias(value, e.value(variable))


def _no_fragment(value: Value, op: Op | None) -> None:
    if isinstance(value.type, FragType):
        where = f" at {op.loc}" if op is not None and op.loc else ""
        raise CompileError(
            f"a fragment cannot be carried by a loop or a branch{where}: it is mutable, so write to it in place"
        )
