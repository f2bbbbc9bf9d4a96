"""Branches: one side for all lanes, both sides under masks, or a split by warp around blocking instructions.

Running both sides under masks costs the time of both, but keeps all warps in one group; a split costs copies of the
registers, and keeps warps apart until they meet again behind the branch. So a split is made only where masks would be
wrong: around instructions at which a warp may have to wait, because a wait holds up the whole group.

Three registers hold the state of a branch that a group runs in both directions: ``taken`` and ``rest``, the lanes of
the two sides, and ``saved``, the mask before. ``taken`` is None while the group is on one side as a whole; that is how
the code behind each side knows whether the other side is still to be run, and why two groups with and without it must
not merge (these registers are *exact*, see ``Program.exact_at``).

The functions below make closures ``control(group, slots)``, the nodes of a program: ``group`` is the one that comes,
``slots`` its registers by number; a node gives the number of the node that follows, or ``SPLIT`` or ``PAUSE``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.target import WARP
from tilewright.sim.group import SplitSide
from tilewright.sim.program import PAUSE, SPLIT, Closure, EnclosingRegion, Label, flows
from tilewright.sim.values import blend

if TYPE_CHECKING:
    from tilewright.sim.lowering import Lowering


def lower_if(low: Lowering, op: Op) -> None:
    """The nodes of an ``if``: enter, the first side, between the sides, the second side, leave."""
    cond = low.slot(op.operands[0])
    then, other = op.regions
    results = low.slots_of(op.results)
    kinds = [low.kinds[r] for r in results]
    taken, rest, saved = low.mask_slot(exact=True), low.mask_slot(exact=True), low.mask_slot()
    states = (taken, rest, saved)
    then_at, between_at, other_at, leave_at, end = (Label() for _ in range(5))
    # A barrier inside needs whole warps on one side: then groups are split, else both sides run under masks.
    splits = low.blocks(then) or low.blocks(other)
    enter = (_enter_split if splits else _enter_masked)(cond, states, then_at, other_at)
    low.control(flows(enter, (cond,)), op, (cond,), states, (then_at, other_at))

    then_at.pc = low.here()
    low.region(then, EnclosingRegion(between_at, saved, taken))
    low.place(between_at, op)
    values = low.slots_of(then.ops[-1].operands)
    # Without an else there is nothing to run for the lanes that rest: control goes to the end at once.
    empty = len(other.ops) == 1 and not results
    between = flows(_between(states, values, results, empty, other_at, end), (), values, results)
    low.control(between, op, (*states, *values), results, (other_at, end))

    other_at.pc = low.here()
    low.region(other, EnclosingRegion(leave_at, saved, taken))
    low.place(leave_at, op)
    values = low.slots_of(other.ops[-1].operands)
    leave = flows(_leave(states, values, results, kinds, end), (), values, results)
    low.control(leave, op, (*states, *values, *results), (), (end,))
    end.pc = low.here()
    if splits:
        join(low, op)


def join(low: Lowering, op: Op) -> None:
    """A place where groups that went apart meet again: pause, so that those behind can come up."""
    # Without a pause the first group would run on to its next wait, and each of the others after it: work that could be
    # one step for all would be one for each. A group that is alone need not pause.
    following = low.here() + 1

    def control(group: Any, slots: list[Any]) -> int:
        if group.wave.cannot_merge(group):
            return following
        group.pc = following
        return PAUSE

    low.control(control, op, (), fallthrough=True)


def _sides(holds: np.ndarray, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The active lanes in which the condition holds, and those in which it does not."""
    return (holds, ~holds) if mask is None else (holds & mask, ~holds & mask)


def _enter_masked(cond: int, states: tuple[int, int, int], then_at: Label, other_at: Label) -> Closure:
    """Run the first side under the mask of the lanes whose condition holds; ``_between`` goes on with the others."""
    taken, rest, saved = states

    def control(group: Any, slots: list[Any]) -> int:
        holds, mask = slots[cond], group.mask
        slots[taken] = slots[rest] = None
        if holds.ndim == 0:  # one condition for all lanes
            return then_at.pc if holds else other_at.pc
        first, second = _sides(holds, mask)
        if not second.any():  # no lane on the other side: no masks, no second pass
            return then_at.pc
        if not first.any():
            return other_at.pc
        slots[taken], slots[rest], slots[saved] = first, second, mask
        group.mask = first
        return then_at.pc

    return control


def _enter_split(cond: int, states: tuple[int, int, int], then_at: Label, other_at: Label) -> Closure:
    """Split the group: the warps of one side, those of the other, and those whose lanes go both ways."""
    taken, rest, saved = states

    def control(group: Any, slots: list[Any]) -> int:
        holds, mask = slots[cond], group.mask
        slots[taken] = slots[rest] = None
        if holds.ndim == 0:
            return then_at.pc if holds else other_at.pc
        first, second = _sides(holds, mask)
        # A warp whose lanes all go one way becomes part of a group on that side alone, so that a barrier
        # there is met by whole warps and waits for no warp of the other side. A warp that diverges inside runs both
        # sides under masks, one after the other, as the device does.
        in_first, in_second = first.reshape(-1, WARP).any(1), second.reshape(-1, WARP).any(1)
        sides = []
        # Warps without active lanes go with the second side.
        for chosen, label in ((in_first & ~in_second, then_at), (~in_first, other_at)):
            if chosen.any():
                sides.append(SplitSide(np.flatnonzero(chosen), label.pc))
        both = in_first & in_second
        if both.any():
            rows = np.flatnonzero(both)
            lanes = np.repeat(both, WARP)
            masks = {taken: first[lanes], rest: second[lanes], saved: None if mask is None else mask[lanes]}
            sides.append(SplitSide(rows, then_at.pc, masks[taken], True, masks))
        if len(sides) > 1 or both.any():
            group.parts = sides
            return SPLIT
        return sides[0].pc

    return control


def _between(
    states: tuple[int, int, int], values: list[int], results: list[int], empty: bool, other_at: Label, end: Label
) -> Closure:
    """After the first side: continue behind the branch, or run the other side under the other mask."""
    taken, rest, saved = states

    def control(group: Any, slots: list[Any]) -> int:
        for result, value in zip(results, [slots[i] for i in values], strict=True):
            slots[result] = value
        if slots[taken] is None:  # the group came to this side as a whole
            return end.pc
        # Of a group that was split in between (see ``loops._split_resting``), a part may have no lanes for the other
        # side. It must not run that side: instructions and loops take it that some lane of a group is active.
        if empty or not slots[rest].any():
            group.mask = slots[saved]
            return end.pc
        group.mask = slots[rest]
        return other_at.pc

    return control


def _leave(
    states: tuple[int, int, int], values: list[int], results: list[int], kinds: list[int], end: Label
) -> Closure:
    """After the second side: results of both sides are blended, and all lanes go on."""
    taken, _, saved = states

    def control(group: Any, slots: list[Any]) -> int:
        first = slots[taken]
        fresh = [slots[i] for i in values]
        if first is None:
            for result, value in zip(results, fresh, strict=True):
                slots[result] = value
            return end.pc
        for result, value, kind in zip(results, fresh, kinds, strict=True):
            slots[result] = blend(first, slots[result], value, kind)  # the first side left its values there
        group.mask = slots[saved]
        return end.pc

    return control
