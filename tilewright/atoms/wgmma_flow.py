"""What wgmma needs of a whole kernel: which registers are in flight at a wait, and where a fence is missing.

Both follow the kernel's regions from top to bottom; loops are visited twice, so that the second pass sees what the
first left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.core import Block, Function, Op, Value
from tilewright.ir.instruction import Instruction
from tilewright.ir.types import FragType

AGENT = "wgmma"
"""The unit that executes it, as effects name it."""
Fragments = dict[Value, Any]
"""An ordered set, or what is known of each."""


def in_flight(function: Function, agent: str) -> dict[Op, tuple[Value, ...]]:
    """For each wait of a kernel for ``agent`` the fragments that its instructions issued before, and not waited for,
    read or write."""

    flying_at: dict[Op, Fragments] = {}

    def step(op: Op, flying: Fragments) -> Fragments:
        atom = op.attrs.get("atom")
        if atom is not None and atom.in_flight and agent in atom.agents:
            return flying | fragments_of(op)
        ends = None if atom is None else atom.orders_through("group", agent)
        if atom is not None and ends is not None and ends.acquire:
            flying_at.setdefault(op, {}).update(flying)
            return {} if atom.pending == 0 else flying
        return flying

    follow(function.body, {}, step)
    return {op: tuple(fragments) for op, fragments in flying_at.items()}


def missing_fences(function: Function) -> dict[Op, Op]:
    """The instructions of a kernel before which a fence is missing, each with the access to its registers that the
    fence would come after.

    PTX ISA, "wgmma.fence": it is needed before the first instruction and between an access of a register and an
    instruction that uses it. What instructions do to their own accumulators is in order.
    """
    accesses: dict[Op, Op] = {}

    def step(op: Op, accessed: Fragments) -> Fragments:
        """``accessed``: the fragments that other code has accessed since the last fence, each with the access."""
        atom = op.attrs.get("atom")
        if is_fence(atom):
            return {}
        if is_wgmma(atom):
            for fragment in fragments_of(op):
                if fragment in accessed:
                    accesses.setdefault(op, accessed[fragment])
            return accessed
        made = [v for v in op.results if isinstance(v.type, FragType)]
        return accessed | dict.fromkeys([*fragments_of(op), *made], op)

    follow(function.body, {}, step)
    return accesses


def handed_over(function: Function) -> dict[Op, tuple[Value, ...]]:
    """For each fence the fragments that other code has accessed before it and instructions behind it use."""
    touched: dict[Op, Fragments] = {}
    used: dict[Op, Fragments] = {}

    def before(op: Op, state: Fragments) -> Fragments:
        atom = op.attrs.get("atom")
        if is_fence(atom):
            touched.setdefault(op, {}).update(state)
            return {}
        return state if is_wgmma(atom) else state | fragments_of(op)

    def behind(op: Op, fences: dict[Any, None]) -> dict[Any, None]:
        atom = op.attrs.get("atom")
        if is_fence(atom):
            return {op: None}
        if is_wgmma(atom):
            for fence in fences:
                used.setdefault(fence, {}).update(fragments_of(op))
        return fences

    follow(function.body, {}, before)
    follow(function.body, {}, behind)
    return {op: tuple(f for f in fragments if f in used.get(op, {})) for op, fragments in touched.items()}


def is_wgmma(atom: Instruction | None) -> bool:
    """Whether it is a matrix instruction of warpgroups."""
    return atom is not None and AGENT in atom.agents


def is_fence(atom: Instruction | None) -> bool:
    """Whether it is ``wgmma.fence``."""
    return atom is not None and atom.orders_through("", AGENT) is not None


def fragments_of(op: Op) -> Fragments:
    """The fragments among an op's operands."""
    return {v: None for v in op.operands if isinstance(v.type, FragType)}


def follow(block: Block, state: Fragments, step: Callable[[Op, Fragments], Fragments]) -> Fragments:
    """The state after a block, from the state before: ``step`` by ``step``; what either arm of a branch may leave."""
    for op in block.ops:
        if not op.regions:
            state = step(op, state)
            continue
        if op.opcode == "if":
            arms = [follow(region, dict(state), step) for region in op.regions]
            state = _union(arms if len(arms) == 2 else [state, *arms])
            continue
        for _ in range(2):  # a loop: no iteration, one, or more
            state = _union([state, *(follow(region, dict(state), step) for region in op.regions)])
    return state


def _union(states: list[Fragments]) -> Fragments:
    whole: dict[Any, None] = {}
    for state in states:
        whole |= state
    return whole
