"""Loops: all lanes together, under a mask of those still inside, or split by warp around blocking instructions.

A loop is never unrolled over lanes: as long as one lane is inside, all lanes of the group execute the body, those that
have left with their mask off. That wastes their arithmetic, and saves the copies of a split in every iteration.

Invariants. While a loop runs, the register ``saved`` holds the mask that the group had when it came; ``group.mask`` is
the subset of lanes still inside. Lanes that have left rest: their carried registers keep the values they left with,
because every write to a carried register inside the loop is blended under the mask. When the last lane has left, the
mask is put back. A loop with a blocking instruction in it cannot let whole warps rest, for the barrier inside must not
wait for a warp that is waiting behind the loop: there, warps that have left become a group of their own behind the
loop.

Closures are as in :mod:`.branches`: ``control(group, slots)`` gives the number of the next node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.ir.core import Constant, Op
from tilewright.ir.target import WARP
from tilewright.sim.branches import join
from tilewright.sim.faults import Fault
from tilewright.sim.group import SplitSide
from tilewright.sim.program import PAUSE, SPLIT, Closure, EnclosingRegion, Label, flows
from tilewright.sim.progress import ended, idle_turns
from tilewright.sim.spins import SpinLoop
from tilewright.sim.values import blend

if TYPE_CHECKING:
    from tilewright.sim.lowering import Lowering

# Iterations of a while loop before other groups run. One at a time would make a lock of many warps a round trip
# through the schedule for each attempt; thousands would keep the warp that holds the lock from its work.
PATIENCE = 64


class Exits(NamedTuple):
    """Where the head of a loop sends lanes, and what it needs for that."""

    inside: Label
    end: Label
    saved: int
    """The register with the mask that the group had when it came."""
    splits: bool
    """Whether warps that leave become a group of their own, because there is a blocking instruction inside."""


# -- for ---------------------------------------------------------------------------------------------------------------


def lower_for(low: Lowering, op: Op) -> None:
    """The nodes of a ``for``: enter -> head -> body -> back -> head ...; the head leaves for the end."""
    body = op.regions[0]
    start, stop, step, *init = low.slots_of(op.operands)
    counter, *carried = low.slots_of(body.args)
    results = low.slots_of(op.results)
    saved = low.mask_slot()
    head = Label()
    exits = Exits(Label(), Label(), saved, low.blocks(body))

    enter = flows(_enter_for(start, counter, step, init, carried, saved), (start, stop, step), init, carried)
    low.step(enter, op, (start, step, *init), (counter, *carried, saved))

    low.place(head, op)
    step_value = op.operands[2]
    sign = int(np.sign(step_value.value)) if isinstance(step_value, Constant) else None
    ask = _head(counter, stop, step, sign, exits)
    low.control(ask, op, (counter, stop, step, saved), (), (exits.inside, exits.end))

    exits.inside.pc = low.here()
    low.region(body, EnclosingRegion(exits.end, saved, None))
    yielded = low.slots_of(body.ops[-1].operands)
    kinds = [low.kinds[c] for c in carried]
    back = flows(_back(counter, step, carried, yielded, kinds, saved, head), (), yielded, carried)
    low.control(back, op, (counter, step, saved, *yielded, *carried), (), (head,))

    exits.end.pc = low.here()
    # Warps that left a body with barriers early run apart from the others: they meet again here.
    if exits.splits:
        join(low, op)
    if results:
        low.step(flows(_assign(carried, results), (), carried, results), op, carried, results)


def _enter_for(start: int, counter: int, step: int, init: list[int], carried: list[int], saved: int) -> Closure:
    """The counter and the carried registers get what they begin with; a step of zero is refused."""

    def enter(group: Any, slots: list[Any]) -> None:
        if not np.all(slots[step]):
            zero = np.asarray(slots[step] == 0)
            bad = zero if group.mask is None or not zero.ndim else zero & group.mask  # lanes that rest may hold a zero
            if bad.any():
                raise Fault("the step of this loop is zero", bad if bad.ndim else None)
        # All are read before the first is written: one carried register may begin with another one's value.
        fresh = [slots[i] for i in init]
        slots[counter] = slots[start]
        for register, value in zip(carried, fresh, strict=True):
            slots[register] = value
        slots[saved] = group.mask

    return enter


def _head(counter: int, stop: int, step: int, sign: int | None, exits: Exits) -> Closure:
    """Whether there is another iteration. ``sign`` is the step's, where it is known: then one comparison decides."""
    inside, end, saved, _ = exits

    def control(group: Any, slots: list[Any]) -> int:
        if sign == 1:
            more = slots[counter] < slots[stop]
        elif sign == -1:
            more = slots[counter] > slots[stop]
        else:
            more = np.where(slots[step] > 0, slots[counter] < slots[stop], slots[counter] > slots[stop])
        if more.ndim == 0:  # the same bounds and counter in all lanes: none leaves before the others
            if more:
                return inside.pc
            group.mask = slots[saved]
            return end.pc
        return _divide(group, slots, more if group.mask is None else more & group.mask, exits)

    return control


def _back(
    counter: int, step: int, carried: list[int], yielded: list[int], kinds: list[int], saved: int, head: Label
) -> Closure:
    """The end of an iteration: what the body yields becomes the carried values, and the counter moves on."""

    def control(group: Any, slots: list[Any]) -> int:
        mask = group.mask
        # All are read before the first is written: the body may exchange carried values.
        fresh = [slots[i] for i in yielded]
        if mask is slots[saved]:
            for register, value in zip(carried, fresh, strict=True):
                slots[register] = value
        else:  # some lanes rest, and keep what they left the loop with
            for register, value, kind in zip(carried, fresh, kinds, strict=True):
                slots[register] = blend(mask, value, slots[register], kind)
        slots[counter] = slots[counter] + slots[step]  # of resting lanes, too, where it is not read
        return head.pc

    return control


def _assign(sources: list[int], targets: list[int]) -> Closure:
    def assign(group: Any, slots: list[Any]) -> None:
        for target, value in zip(targets, [slots[i] for i in sources], strict=True):
            slots[target] = value

    return assign


# -- leaving a loop ----------------------------------------------------------------------------------------------------


def _divide(group: Any, slots: list[Any], stay: np.ndarray, exits: Exits) -> int:
    """Lanes of ``stay`` go on inside the loop, the others leave it (or rest under the mask until all have left)."""
    # The two common answers, all stay and all leave, come first: they change no mask, and so keep the identity of
    # ``group.mask`` and the saved one, by which ``_back`` knows that nothing needs blending.
    if stay.all() if group.mask is None else (stay == group.mask).all():
        return exits.inside.pc
    if not stay.any():
        group.mask = slots[exits.saved]
        return exits.end.pc
    if exits.splits:
        # Only warps that have left with all their lanes can go on alone; in the others, the lanes that have left rest
        # under the mask, as on the device, where a warp's lanes reconverge behind the loop.
        staying_warps = np.logical_or.reduce(stay.reshape(-1, WARP), axis=1)
        if not staying_warps.all():
            group.parts = _split_leaving(group.mask, slots[exits.saved], stay, staying_warps, exits)
            return SPLIT
    group.mask = stay
    return exits.inside.pc


def _split_leaving(mask: Any, whole: Any, stay: np.ndarray, staying_warps: np.ndarray, exits: Exits) -> list[SplitSide]:
    """The part of a group that stays in the loop, and the part whose warps leave it. ``mask`` is the group's, ``whole``
    the one it came with."""
    lanes = np.repeat(staying_warps, WARP)
    leaving = SplitSide(np.flatnonzero(~staying_warps), exits.end.pc, None if whole is None else whole[~lanes], True)
    rows = np.flatnonzero(staying_warps)
    staying = stay[lanes]
    # ``_back`` recognises full masks by identity with the saved one, to spare the blending. Where every lane that
    # came into the loop stays in it, the part therefore takes its rows of the saved mask: they stay one object.
    if mask is not None and mask is whole and (staying == whole[lanes]).all():
        return [SplitSide(rows, exits.inside.pc), leaving]
    return [SplitSide(rows, exits.inside.pc, None if mask is None and staying.all() else staying, True), leaving]


# -- while -------------------------------------------------------------------------------------------------------------


def lower_while(low: Lowering, op: Op) -> None:
    """The nodes of a ``while``: enter -> head (the first region and its condition) -> the second region -> head ..."""
    before, after = op.regions
    init = low.slots_of(op.operands)
    carried, inner = low.slots_of(before.args), low.slots_of(after.args)
    results = low.slots_of(op.results)
    kinds = [low.kinds[r] for r in results]
    saved = low.mask_slot()
    head = Label()
    exits = Exits(Label(), Label(), saved, low.blocks(before) or low.blocks(after))
    inside, end, _, _ = exits

    low.step(
        flows(_enter_while(init, carried, results, saved), (), init, carried), op, init, (*carried, *results, saved)
    )

    low.place(head, op)
    low.region(before, EnclosingRegion(end, saved, None))
    condition, *values = low.slots_of(before.ops[-1].operands)
    spin = SpinLoop(low, op)
    ask = _condition(condition, values, results, inner, kinds, exits)
    ask = _let_others_run_first(ask, end) if spin.quiet and spin.reads else ask
    flows(ask, (condition,), (*values, *values), (*inner, *results))
    low.control(ask, op, (condition, *values, *results, saved), (), (inside, end))

    inside.pc = low.here()
    low.region(after, EnclosingRegion(end, saved, None))
    yielded = low.slots_of(after.ops[-1].operands)
    # Where a warp may rest while others spin here: behind this loop (it has left), or in a region around it, innermost
    # first. Their masks must stay alive in this loop, so that resting warps get their next place.
    around = [EnclosingRegion(end, saved, None), *reversed(low.enclosing)]
    states = [slot for e in around for slot in (e.saved, e.taken) if slot is not None]
    targets = (head, *(e.exit for e in around))
    seen = [slot for _, slot, _ in spin.reads] + spin.inputs.registers
    next_turn = flows(_next_turn(yielded, carried, around, head, spin), (), yielded, carried)
    low.control(next_turn, op, (*yielded, *results, *states, *seen), carried, targets)

    end.pc = low.here()
    low.step(_leave(op), op, (), ())
    join(low, op)


def _enter_while(init: list[int], carried: list[int], results: list[int], saved: int) -> Closure:
    def enter(group: Any, slots: list[Any]) -> None:
        fresh = [slots[i] for i in init]
        for register, value in zip(carried, fresh, strict=True):
            slots[register] = value
        for result in results:
            slots[result] = None  # set when the first lanes leave; until then there is nothing to blend with
        slots[saved] = group.mask

    return enter


def _condition(
    condition: int, values: list[int], results: list[int], inner: list[int], kinds: list[int], exits: Exits
) -> Closure:
    """The values that go with the condition are both: what the second region begins with, in lanes that stay, and the
    loop's results, in lanes that leave."""
    inside, end, saved, _ = exits

    def control(group: Any, slots: list[Any]) -> int:
        more, mask = slots[condition], group.mask
        fresh = [slots[i] for i in values]
        for register, value in zip(inner, fresh, strict=True):
            slots[register] = value
        if more.ndim == 0 and more:
            return inside.pc
        for result, value, kind in zip(results, fresh, kinds, strict=True):  # lanes that stay will set theirs again
            slots[result] = value if mask is slots[saved] else blend(mask, value, slots[result], kind)
        if more.ndim == 0:
            group.mask = slots[saved]
            return end.pc
        return _divide(group, slots, more if mask is None else more & mask, exits)

    return control


def _let_others_run_first(ask: Closure, end: Label) -> Closure:
    """Warps that are held back have seen what they polled for: first the others, who may have waited for the same."""

    def control(group: Any, slots: list[Any]) -> int:
        pc = ask(group, slots)
        launch = group.wave.launch
        if pc != end.pc or (id(group.wave), group.tag) not in launch.held_back:
            return pc
        for other in launch.groups:
            other.yielded = False
        group.pc, group.still = pc, False
        return PAUSE

    return control


def _leave(op: Op) -> Closure:
    def leave(group: Any, slots: list[Any]) -> None:
        group.still = False
        if group.wave.turning:
            ended(group, op)

    return leave


def _next_turn(
    yielded: list[int], carried: list[int], around: list[EnclosingRegion], head: Label, spin: SpinLoop
) -> Closure:
    """Back to the condition; now and then, and after an iteration that changed nothing, other groups get a turn, and
    warps that rest under a mask (they have left this loop, or are outside it in a region around it) stop waiting for
    those that spin."""
    polls = spin.quiet and bool(spin.reads)

    def control(group: Any, slots: list[Any]) -> int:
        fresh = [slots[i] for i in yielded]
        # An iteration is compared with the one before only where that can mean something (a quiet loop that reads
        # memory), or now and then: comparing costs more than an iteration.
        group.spins += 1
        due = not group.spins % PATIENCE
        changed = group.changed
        group.still = (polls or due) and spin.still(group, [slots[c] for c in carried], fresh)
        for register, value in zip(carried, fresh, strict=True):
            slots[register] = value
        if not due and not group.still:
            return head.pc
        group.yielded, group.spin = True, spin
        if due:
            group.wave.launch.bounded(group)
            idle = 0 if group.still else idle_turns(spin.inputs, group, slots, carried, spin.op, changed)
            if idle:
                group.wave.launch.waits(group, idle)
        if group.mask is not None:
            # Warps that rest may be the very ones that this loop waits for: as groups of their own they can go on.
            group.parts = _split_resting(group, slots, around, head)
            if len(group.parts) > 1:
                return SPLIT
        group.pc = head.pc
        return PAUSE

    return control


def _split_resting(group: Any, slots: list[Any], around: list[EnclosingRegion], head: Label) -> list[SplitSide]:
    """The spinning warps at ``head``, then those that rest, each where the region that they rest in lets them go on."""
    busy = group.mask.reshape(-1, WARP).any(1)
    parts = [SplitSide(np.flatnonzero(busy), head.pc)]
    unplaced = ~busy
    for region in around:
        if not unplaced.any():
            break
        if region.taken is not None and slots[region.taken] is None:
            continue  # a branch that the whole group took: no warp waits at its end
        whole = slots[region.saved]
        inside = unplaced if whole is None else unplaced & whole.reshape(-1, WARP).any(1)
        if inside.any():
            rows = np.flatnonzero(inside)
            mask = None if whole is None else whole[np.repeat(inside, WARP)]
            parts.append(SplitSide(rows, region.exit.pc, mask, region.taken is None))
            unplaced = unplaced & ~inside
    parts[0].rows = np.flatnonzero(busy | unplaced)  # lanes that do not exist rest in no region; they stay here
    return parts
