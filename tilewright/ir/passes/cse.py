"""Common subexpression elimination: equal pure ops in one scope (or an enclosing one) are computed once."""

from __future__ import annotations

from collections.abc import Hashable

from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.ops import PURE

SHARED = PURE | {"sreg"}
_ASIDE = ("wraps", "within")
"""Attributes of which the result does not depend: the same numbers give the same."""
Key = tuple[Hashable, ...]


def eliminate_common_subexpressions(function: Function) -> None:
    _scope(function.body, {}, function.replaced)


def _scope(block: Block, outer: dict[Key, Op], replaced: dict[Value, Value]) -> None:
    available = dict(outer)
    kept: list[Op] = []
    for op in block.ops:
        op.operands = [replaced.get(v, v) for v in op.operands]
        if "within" in op.attrs:
            pairs = op.attrs["within"]
            op.attrs["within"] = tuple([(replaced.get(c, c), replaced.get(e, e), step) for c, e, step in pairs])
        if op.opcode in SHARED and op.attrs.get("name") != "clock":
            key = _key(op)
            first = available.setdefault(key, op)
            if first is not op:
                _keep_common(first, op)
                replaced.update(zip(op.results, first.results, strict=True))
                continue
        for region in op.regions:
            _scope(region, available, replaced)
        kept.append(op)
    block.ops[:] = kept


def _keep_common(first: Op, op: Op) -> None:
    """Of two slices at one address, which may be of two tensors: what must hold for both of them."""
    if "within" in first.attrs:
        first.attrs["within"] = tuple([pair for pair in first.attrs["within"] if pair in op.attrs.get("within", ())])


def _key(op: Op) -> Key:
    operands = tuple([(v.type, repr(v.value)) if isinstance(v, Constant) else id(v) for v in op.operands])
    results = tuple([r.type for r in op.results])
    if not op.attrs:
        return op.opcode, operands, results, ()
    attrs = tuple(sorted([(k, str(v)) for k, v in op.attrs.items() if k not in _ASIDE]))
    return op.opcode, operands, results, attrs
