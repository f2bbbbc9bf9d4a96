"""The straight ops as closures ``run(group, slots)``: each is built once per op, with everything static resolved.

``group`` holds the lanes that run together, ``slots`` its registers, by number. A builder gets the numbers of the op's
``operands`` and ``results``; in the closures ``a``, ``b``, ``c`` are those of operands and ``d`` is that of the result.
What is the same for all lanes is kept once (:mod:`.values`), so ``ndim`` says at no cost whether lanes differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir.arithmetic import DIVISIONS, TABLE, on_lanes
from tilewright.ir.casts import bytes_of, cast, codes_of
from tilewright.ir.core import Constant, Op
from tilewright.ir.types import I64, PtrType, VecType, element_of
from tilewright.sim import memory_steps
from tilewright.sim.divisions import integer_division
from tilewright.sim.faults import Fault
from tilewright.sim.output import assert_step, printf_step
from tilewright.sim.program import Closure
from tilewright.sim.values import FRAG, Ptr, blend, kind_of

Builder = Callable[[Op, list[int], list[int]], Closure]
STEPS: dict[str, Builder] = {"printf": printf_step, "assert": assert_step, **memory_steps.STEPS}


def step(*opcodes: str) -> Callable[[Builder], Builder]:
    def register(build: Builder) -> Builder:
        for opcode in opcodes:
            STEPS[opcode] = build
        return build

    return register


def apply1(function: Any, a: int, d: int) -> Closure:
    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = function(slots[a])

    return run


def apply2(function: Any, a: int, b: int, d: int) -> Closure:
    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = function(slots[a], slots[b])

    return run


def apply3(function: Any, a: int, b: int, c: int, d: int) -> Closure:
    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = function(slots[a], slots[b], slots[c])

    return run


# -- numbers -----------------------------------------------------------------------------------------------------------


@step(*TABLE)
def _elementwise(op: Op, operands: list[int], results: list[int]) -> Closure:
    kind = op.operands[0].type
    if isinstance(kind, PtrType):
        return _compare_pointers(op, operands, results)
    elem = element_of(kind)
    if op.opcode in DIVISIONS and elem.is_integer:
        return _divide(op, operands, results)
    apply: Any = (apply1, apply2, apply3)[len(operands) - 1]
    closure: Closure = apply(on_lanes(op.opcode, elem), *operands, *results)
    return closure


def _divide(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a, b), (d,), divisor = operands, results, op.operands[1]
    constant = int(divisor.value) if isinstance(divisor, Constant) else None
    divide = integer_division(op.opcode, element_of(op.result.type), constant)

    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = divide(group, slots[a], slots[b])

    return run


def _compare_pointers(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a, b), (d,) = operands, results
    compare = on_lanes(op.opcode, I64)

    def run(group: Any, slots: list[Any]) -> None:
        p, q = slots[a], slots[b]
        if p.buf is not q.buf:
            p, q = p.buf.space.anywhere(p), q.buf.space.anywhere(q)
        slots[d] = compare(np.int64(p.off), np.int64(q.off))

    return run


@step("cast")
def _cast(op: Op, operands: list[int], results: list[int]) -> Closure:
    return apply1(cast(element_of(op.operands[0].type), element_of(op.result.type)), operands[0], results[0])


@step("bitcast")
def _bitcast(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a,), (d,) = operands, results
    source, target = op.operands[0].type, op.result.type
    dtype = element_of(target).dtype
    into, outof = isinstance(target, VecType), isinstance(source, VecType)
    if into and outof and element_of(source).width != element_of(target).width:
        # Numbers below 8 bits share bytes, but each has an element of an array to itself.
        old, new = element_of(source).width, element_of(target).width
        if min(old, new) < 8:
            return _repacked(a, d, old, new, dtype)

    def run(group: Any, slots: list[Any]) -> None:
        v = slots[a]
        if into and not outof:
            v = v.reshape(*np.shape(v), 1)
        seen = np.ascontiguousarray(v).view(dtype) if np.ndim(v) else v.view(dtype)
        slots[d] = seen[..., 0] if outof and not into else seen
        # Registers that are the same for all lanes are NumPy scalars, never arrays without modes.
        if np.ndim(slots[d]) == 0:
            slots[d] = slots[d][()]

    return run


def _repacked(a: int, d: int, width: int, to: int, dtype: Any) -> Closure:
    """A bitcast where the numbers of one vector share bytes."""

    def run(group: Any, slots: list[Any]) -> None:
        v = np.ascontiguousarray(slots[a]).view(np.uint8)
        packed = bytes_of(v, width) if width < 8 else v
        slots[d] = (codes_of(packed, to) if to < 8 else packed).view(dtype)

    return run


@step("select")
def _select(op: Op, operands: list[int], results: list[int]) -> Closure:
    """Lane by lane, element by element of a vector, or one of two whole values if all lanes choose the same."""
    (c, a, b), (d,) = operands, results
    kind = kind_of(op.result.type)
    by_element = isinstance(op.operands[0].type, VecType)

    def run(group: Any, slots: list[Any]) -> None:
        cond = slots[c]
        if cond.ndim == 0:
            slots[d] = slots[a] if cond else slots[b]
        elif by_element:
            slots[d] = np.where(cond, slots[a], slots[b])
        elif kind == FRAG:
            raise Fault("a choice between fragments whose condition differs between threads", ~cond)
        else:
            slots[d] = blend(cond, slots[a], slots[b], kind)

    return run


# -- vectors -----------------------------------------------------------------------------------------------------------


@step("vec.build", "vec.concat")
def _build(op: Op, operands: list[int], results: list[int]) -> Closure:
    """Vectors and scalars one after another."""
    (d,) = results
    kind = op.result.type
    assert isinstance(kind, VecType)
    n, dtype = kind.n, kind.elem.dtype
    widths = [v.type.n if isinstance(v.type, VecType) else 0 for v in op.operands]
    plan, at = [], 0
    for slot, width in zip(operands, widths, strict=True):
        plan.append((slot, slice(at, at + width) if width else at, 2 if width else 1))
        at += width or 1

    def run(group: Any, slots: list[Any]) -> None:
        # One part that differs between lanes makes the whole vector differ.
        lanes = any(np.ndim(slots[slot]) == ndim for slot, _, ndim in plan)
        out = np.empty((group.lanes_count, n) if lanes else (n,), dtype)
        for slot, where, _ in plan:
            out[..., where] = slots[slot]
        slots[d] = out

    return run


@step("vec.splat")
def _splat(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a,), (d,) = operands, results
    kind = op.result.type
    assert isinstance(kind, VecType)
    n, dtype = kind.n, kind.elem.dtype

    def run(group: Any, slots: list[Any]) -> None:
        v = slots[a]
        slots[d] = np.full(n, v, dtype) if v.ndim == 0 else np.broadcast_to(v[:, None], (v.shape[0], n))

    return run


@step("vec.extract")
def _extract(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a,), (d,), index = operands, results, op.attrs["index"]

    def run(group: Any, slots: list[Any]) -> None:
        v = slots[a]
        slots[d] = v[index] if v.ndim == 1 else v[:, index]

    return run


@step("vec.shuffle")
def _shuffle(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a,), (d,), columns = operands, results, memory_steps.columns(op.attrs["indices"])

    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = slots[a][..., columns]

    return run


@step("vec.reduce")
def _reduce(op: Op, operands: list[int], results: list[int]) -> Closure:
    a, (d,) = operands[0], results
    init = operands[1] if len(operands) > 1 else None
    groups = op.attrs["groups"]
    scalar = not isinstance(op.result.type, VecType)
    function = on_lanes(op.attrs["kind"], element_of(op.result.type))
    # Groups are the elements of each result, in the order in which they are added: float sums depend on it.
    even = len({len(elements) for elements in groups}) == 1

    def fold(v: Any, elements: Any, start: Any) -> Any:
        rest = iter(elements)
        total = v[..., next(rest)] if start is None else start
        for i in rest:
            total = function(total, v[..., i])
        return total

    def run(group: Any, slots: list[Any]) -> None:
        v = slots[a]
        start = None if init is None else slots[init]
        # Groups of one size fold together: the i-th elements of all groups are one operand, [L, groups].
        if even and not scalar:
            total = None if start is None else start if np.ndim(start) == 0 else start[:, None]
            slots[d] = fold(v, [list(column) for column in zip(*groups, strict=True)], total)
            return
        totals = [fold(v, elements, start) for elements in groups]
        if scalar:
            slots[d] = totals[0][()] if np.ndim(totals[0]) == 0 else totals[0]
        else:
            slots[d] = np.stack(np.broadcast_arrays(*totals), -1)

    return run


# -- threads -----------------------------------------------------------------------------------------------------------


@step("sreg")
def _sreg(op: Op, operands: list[int], results: list[int]) -> Closure:
    (d,), name = results, op.attrs["name"]

    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = group.sreg(name)

    return run


@step("smem.alloc")
def _smem_alloc(op: Op, operands: list[int], results: list[int]) -> Closure:
    (d,), offset = results, int(op.attrs["offset"])

    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = Ptr(group.wave.shared, offset)

    return run
