"""Which waits of a kernel the answers of ``mbarrier.try_wait`` decide over."""

from __future__ import annotations

from tilewright.ir.core import Constant, Function, Op, Value
from tilewright.sim.checks.provenance import handed_on


def guarded_waits(function: Function) -> dict[Op, frozenset[Op]]:
    """The waits that are alone in a branch which tokens decide, each with the ``try_wait`` that give those.

    Branches that anything else may decide, too, are left out: of those nothing can be said.
    """
    sources = _sources(function)
    guards = {}
    for branch in function.walk():
        for region in branch.regions if branch.opcode == "if" else ():
            # A branch that does anything else is no guarded wait: its condition may mean something else.
            acts = [op for op in region.walk() if op.opcode in ("call", "load", "store")]
            if len(acts) == 1 and acts[0].opcode == "call" and acts[0].attrs["atom"].name == "mbarrier.wait":
                tokens = _tokens(branch.operands[0], sources)
                if tokens:
                    guards[acts[0]] = tokens
    return guards


def _sources(function: Function) -> dict[Value, list[Value]]:
    """The values that regions hand to a value: to the results of branches and loops, and to what loops carry."""
    sources: dict[Value, list[Value]] = {}
    for op in function.walk():
        for value, source in handed_on(op):
            sources.setdefault(value, []).append(source)
    return sources


def _tokens(condition: Value, sources: dict[Value, list[Value]]) -> frozenset[Op]:
    """The ``try_wait`` whose answers alone decide a condition; empty where others do, or a token that is set false."""
    tokens, seen, todo = set(), set(), [condition]
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in sources:
            todo += sources[value]
        elif isinstance(value, Constant):
            # A token that the program sets to false asks for the wait, whatever try_wait has answered.
            if not value.value:
                return frozenset()
        elif value.op is not None and value.op.opcode in ("not", "and", "or"):
            todo += value.op.operands
        elif value.op is not None and value.op.opcode == "call" and value.op.attrs["atom"].name == "mbarrier.try_wait":
            tokens.add(value.op)
        else:
            return frozenset()
    return frozenset(tokens)
