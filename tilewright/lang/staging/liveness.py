"""Which of its variables a running function may still read: a data flow over its bytecode.

Their present values are read by later instructions, or wait on the stack of the expression that is being evaluated: in
``f(x, g())`` the value of ``x`` while ``g`` runs.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Iterable
from functools import cache, lru_cache, reduce
from operator import or_
from types import CodeType, FrameType
from typing import Any

from tilewright.lang.staging.rewrite import REGION_ENDS

VARIABLE = r"(LOAD|STORE|DELETE)_(?:FAST|DEREF|CLOSURE|CLASSDEREF|NAME|FROM_DICT_OR_DEREF)"
JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
WITHOUT_RESULT = (
    "STORE_",
    "DELETE_",
    "POP_",
    "JUMP_",
    "RETURN_",
    "RAISE_",
    "END_",
    "LIST_APPEND",
    "LIST_EXTEND",
    "SET_ADD",
    "SET_UPDATE",
    "MAP_ADD",
    "DICT_UPDATE",
    "DICT_MERGE",
)
"""How the names of instructions begin that push nothing on the stack."""
INTO_A_CONTAINER = ("LIST_", "SET_", "MAP_", "DICT_")
"""The beginnings of those that put what they pop into a container further down the stack."""


class HoldsUnnamed:
    """A statement that is being run, of which Python holds objects without a name: iterators, context managers."""

    __slots__ = ()

    def unnamed(self) -> list[Any]:
        """These objects, as long as the statement runs."""
        raise NotImplementedError


def read_later(frame: FrameType) -> frozenset[str]:
    """The variables whose present values the function may still read: they are live after the instruction that it is
    at, in the flow of its bytecode, or their values wait on the stack."""
    (names, live), waits, at = _live(frame.f_code), _waiting(frame.f_code), frame.f_lasti
    while at not in live:  # within the operands of an instruction that the interpreter has specialised
        at -= 2
    bits = live[at] | waits.get(at, 0)
    return frozenset(name for name, bit in names.items() if bits & bit)


@lru_cache(maxsize=1024)
def _live(code: CodeType) -> tuple[dict[str, int], dict[int, int]]:
    """A bit for each variable, and the bits of those that are live after each instruction, by its offset."""
    names, flow = _flow(code)
    before = dict.fromkeys(flow, 0)
    after, changed = dict(before), True
    backward = [(at, *flow[at]) for at in reversed(flow)]
    # Liveness is a backward data flow: in reverse order a few passes reach the fixed point.
    while changed:
        changed = False
        for at, follows, loads, stores in backward:
            live = 0
            for place in follows:
                live |= before[place]
            after[at] = live
            if (live_before := loads | (live & ~stores)) != before[at]:
                before[at], changed = live_before, True
    return names, after


def _flow(code: CodeType) -> tuple[dict[str, int], dict[int, tuple[tuple[int, ...], int, int]]]:
    """A bit for each variable; by the offset of each instruction its possible successors, the bits of the variables
    that it loads, and of those that it stores.

    The variables that pass through the end of a region (``variables = branch.join(variables)``) count as neither: they
    are live before it if they are live after it.
    """
    instructions = list(dis.get_instructions(code))
    names: dict[str, int] = {}
    flow: dict[int, tuple[tuple[int, ...], int, int]] = {}
    handed, passing = False, 0
    for one, after in zip(instructions, [*instructions[1:], None], strict=True):
        name = one.opname
        # From the look-up of the method to its call, all loads are its arguments.
        method = name in ("LOAD_METHOD", "LOAD_ATTR") and one.argval in REGION_ENDS
        handed = method or handed and not name.startswith("CALL")
        loads, stores = (_bits(variables, names) for variables in _variables(one))
        if handed:
            passing |= loads
            loads = 0
        stores, passing = stores & ~passing, passing & ~stores
        ends = name.startswith(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "RETURN", "RAISE", "RERAISE"))
        follows = () if ends or after is None else (after.offset,)
        follows += (one.argval,) if one.opcode in JUMPS else ()
        flow[one.offset] = follows, loads, stores
    return names, flow


def _bits(variables: list[str], names: dict[str, int]) -> int:
    bits = 0
    for name in variables:
        bits |= names.setdefault(name, 1 << len(names))
    return bits


@cache
def _kinds(opname: str) -> list[str]:
    """What an instruction does to its variables, in order."""
    return re.findall(VARIABLE, opname)


def _variables(one: dis.Instruction) -> tuple[list[str], list[str]]:
    """The variables that an instruction loads and stores. From Python 3.13 on one instruction may do two of both, as
    its name says: STORE_FAST_LOAD_FAST."""
    kinds = _kinds(one.opname)
    if not kinds:
        return [], []
    named = one.argval if isinstance(one.argval, tuple) else (one.argval,)
    pairs = list(zip(kinds, named, strict=False))
    return [n for kind, n in pairs if kind == "LOAD"], [n for kind, n in pairs if kind != "LOAD"]


Stack = tuple[int, ...]
"""For each value on the stack, the bits of the variables that it was made of."""


@lru_cache(maxsize=1024)
def _waiting(code: CodeType) -> dict[int, int]:
    """By the offset of each instruction: the variables whose values are on the stack beside its operands, as bits."""
    names, _ = _flow(code)
    instructions = {one.offset: one for one in dis.get_instructions(code)}
    following = dict(zip(instructions, [*instructions][1:], strict=False))
    stacks: dict[int, Stack] = {next(iter(instructions)): ()}
    found: dict[int, int] = {}
    waiting = [*stacks]
    while waiting:
        at = waiting.pop()
        one, before = instructions[at], stacks[at]
        after = _after(one, before, False, names)
        ends = one.opname.startswith(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "RETURN", "RAISE", "RERAISE"))
        result = 0 if one.opname.startswith(WITHOUT_RESULT) else 1
        found[at] = _union(before[: max(len(after) - result, 0)])
        targets = [] if ends or at not in following else [(following[at], after)]
        if one.opcode in JUMPS:
            targets.append((one.argval, _after(one, before, True, names)))
        for place, stack in targets:
            stack_before = stacks.get(place)
            joined = stack if stack_before is None else tuple(map(or_, stack_before, stack))
            if joined != stack_before:
                stacks[place] = joined
                waiting.append(place)
    return found


def _after(one: dis.Instruction, before: Stack, jumps: bool, names: dict[str, int]) -> Stack:
    """The stack after an instruction. A result was made of all that the instruction takes."""
    name = one.opname
    loads, stores = _variables(one)
    if loads or stores:
        taken = sum(kind == "STORE" for kind in _kinds(name))
        return (*before[: len(before) - taken], *(_bits([variable], names) for variable in loads))
    effect = dis.stack_effect(one.opcode, one.arg if one.opcode >= dis.HAVE_ARGUMENT else None, jump=jumps)
    if name == "SWAP" and one.arg:
        swapped = list(before)
        swapped[-1], swapped[-one.arg] = swapped[-one.arg], swapped[-1]
        return tuple(swapped)
    if name == "COPY" and one.arg:
        return (*before, before[-one.arg])
    if name.startswith("BUILD_"):
        kept = len(before) - (1 - effect)
        return (*before[:kept], _union(before[kept:]))
    if effect >= 0:
        made_of = name.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER")) or not name.startswith(("LOAD_", "PUSH_"))
        return (*before, *[before[-1] if made_of and before else 0] * effect)
    left, taken_bits = before[:effect], _union(before[effect:])
    if name.startswith(INTO_A_CONTAINER) and one.arg:
        return tuple(bits | taken_bits if i == len(left) - one.arg else bits for i, bits in enumerate(left))
    if name.startswith(WITHOUT_RESULT) or not left:
        return left
    return (*left[:-1], left[-1] | taken_bits)


def _union(bits: Iterable[int]) -> int:
    return reduce(or_, bits, 0)
