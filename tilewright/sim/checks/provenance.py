"""Which allocation of shared memory an address, or the word of a matrix descriptor, was derived from."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir.core import Function, Op, Value

ADDRESSES = frozenset("ptr.add ptr.cast ptr.toint ptr.fromint add sub and or xor shl shr cast bitcast".split())
"""Ops that make an address, or a word of a descriptor, of another one."""

NOTHING: frozenset[Op] = frozenset()


def makes_address(op: Op) -> bool:
    """Whether its results are addresses if an operand is one; warps read them from a lane, too."""
    return op.opcode in ADDRESSES or (op.opcode == "call" and op.attrs["atom"].shuffles)


def derived_from(function: Function) -> dict[Value, frozenset[Op]]:
    """The ``smem.alloc`` ops that each address was derived from, through loops and branches."""
    found: dict[Value, frozenset[Op]] = {}
    flows = [flow for op in function.walk() for flow in _flows(op)]
    for op in function.walk():
        if op.opcode == "smem.alloc":
            found[op.result] = frozenset((op,))
    grows = True
    while grows:
        grows = False
        for to, source in flows:
            new = found.get(source, NOTHING)
            if not new <= found.get(to, NOTHING):
                found[to] = found.get(to, NOTHING) | new
                grows = True
    return found


def _flows(op: Op) -> Iterator[tuple[Value, Value]]:
    """(a value, one that it may be made of) of an op."""
    yield from handed_on(op)
    if op.opcode == "select" or makes_address(op):
        yield from ((result, value) for result in op.results for value in op.operands)


def handed_on(op: Op) -> Iterator[tuple[Value, Value]]:
    """(a result of a loop or branch or a value that it carries, one that it may be)."""
    ends = [region.ops[-1].operands if region.ops else [] for region in op.regions]
    if op.opcode == "for":
        init, args = op.operands[3:], op.regions[0].args[1:]
        for groups in ((args, init), (args, ends[0]), (op.results, init), (op.results, ends[0])):
            yield from zip(*groups, strict=False)
    elif op.opcode == "while":
        before, after = (region.args for region in op.regions)
        going = ends[0][1:]
        for groups in ((before, op.operands), (before, ends[1]), (after, going), (op.results, going)):
            yield from zip(*groups, strict=False)
    elif op.opcode == "if":
        for end in ends:
            yield from zip(op.results, end, strict=False)
