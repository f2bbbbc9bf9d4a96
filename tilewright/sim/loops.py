"""Loops: all lanes together, under a mask of those still inside, or split by warp around blocking instructions.

A loop is never unrolled over lanes: as long as one lane is inside, all lanes of the group execute the body, those that
have left with their mask off. That wastes their arithmetic, and saves the copies of a split in every iteration.

Invariants. While a loop runs, ``saved`` holds the mask that the group had when it came; ``g.mask`` is the subset of
lanes still inside. Lanes that have left rest: their carried registers keep the values they left with, because every
write to a carried register inside the loop is blended under the mask. When the last lane has left, the mask is put
back. A loop with a blocking instruction in it cannot let whole warps rest, for the barrier inside must not wait for a
warp that is waiting behind the loop: there, warps that have left become a group of their own behind the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def lower_for(low: Lowering, op: Op) -> None:
    body = op.regions[0]
    lo, hi, step, *init = low.slots_of(op.operands)
    counter, *carried = low.slots_of(body.args)
    results = low.slots_of(op.results)
    saved = low.mask_slot()
    head, inside, end = Label(), Label(), Label()
    step_value = op.operands[2]
    # With a known step one comparison decides whether a lane goes on.
    sign = int(np.sign(step_value.value)) if isinstance(step_value, Constant) else None
    # Nodes: enter -> head -> body -> back -> head ...; the head leaves for ``end``. ``saved`` is the mask outside.
    enter = flows(_enter_for(lo, counter, step, init, carried, saved), (lo, hi, step), init, carried)
    low.step(enter, op, (lo, step, *init), (counter, *carried, saved))
    low.place(head, op)
    uses = (counter, hi, step, saved)
    low.control(_head(counter, hi, step, sign, saved, low.blocks(body), inside, end), op, uses, (), (inside, end))
    inside.pc = low.here()
    low.region(body, EnclosingRegion(end, saved, None))
    values = low.slots_of(body.ops[-1].operands)
    back = flows(
        _next(counter, step, carried, values, [low.kinds[c] for c in carried], saved, head), (), values, carried
    )
    low.control(back, op, (counter, step, saved, *values, *carried), (), (head,))
    end.pc = low.here()
    # Warps that left a body with barriers early run apart from the others: they meet again here.
    if low.blocks(body):
        join(low, op)
    if results:
        low.step(flows(_assign(carried, results), (), carried, results), op, carried, results)


def _enter_for(lo: int, counter: int, step: int, init: list[int], carried: list[int], saved: int) -> Closure:
    def enter(g: Any, s: list[Any]) -> None:
        if not np.all(s[step]):
            zero = np.asarray(s[step] == 0)
            bad = zero if g.mask is None or not zero.ndim else zero & g.mask  # lanes that rest may hold a zero
            if bad.any():
                raise Fault("the step of this loop is zero", bad if bad.ndim else None)
        fresh = [s[i] for i in init]  # read first: what one carried value starts from may be another one's register
        s[counter] = s[lo]
        for c, v in zip(carried, fresh, strict=True):
            s[c] = v
        s[saved] = g.mask

    return enter


def _head(
    counter: int, hi: int, step: int, sign: int | None, saved: int, splits: bool, inside: Label, end: Label
) -> Closure:
    def control(g: Any, s: list[Any]) -> int:
        if sign == 1:
            c = s[counter] < s[hi]
        elif sign == -1:
            c = s[counter] > s[hi]
        else:
            c = np.where(s[step] > 0, s[counter] < s[hi], s[counter] > s[hi])
        if c.ndim == 0:  # the same bounds and counter in all lanes: none leaves before the others
            if c:
                return inside.pc
            g.mask = s[saved]
            return end.pc
        m = g.mask
        stay = c if m is None else c & m
        return _divide(g, s, stay, saved, splits, inside, end)

    return control


def _divide(g: Any, s: list[Any], stay: np.ndarray, saved: int, splits: bool, inside: Label, end: Label) -> int:
    """Lanes of ``stay`` go on inside the loop, the others leave it (or rest under the mask until all have left)."""
    # The two common answers, all stay and all leave, come first: they change no mask, and so keep the identity of
    # ``g.mask`` and ``saved`` by which ``_next`` knows that nothing needs blending.
    m = g.mask
    if stay.all() if m is None else (stay == m).all():
        return inside.pc
    if not stay.any():
        g.mask = s[saved]
        return end.pc
    if splits:
        # Only warps that have left with all their lanes can go on alone; in the others, the lanes that have left rest
        # under the mask, as on the device, where a warp's lanes reconverge behind the loop.
        by_warp = np.logical_or.reduce(stay.reshape(-1, WARP), axis=1)
        if not by_warp.all():
            g.parts = _split_leaving(g, s, stay, by_warp, saved, inside, end)
            return SPLIT
    g.mask = stay
    return inside.pc


def _split_leaving(
    g: Any, s: list[Any], stay: np.ndarray, by_warp: np.ndarray, saved: int, inside: Label, end: Label
) -> list[SplitSide]:
    """The parts of a group whose warps ``~by_warp`` leave the loop while the others stay."""
    lanes = np.repeat(by_warp, WARP)
    whole = s[saved]
    staying = stay[lanes]
    if g.mask is None and staying.all():
        staying = None
    # ``_next`` recognises full masks by identity (``m is s[saved]``), to spare the blending. Where every lane that
    # came into the loop stays in it, the part therefore takes its rows of ``saved`` as its mask: they stay one object.
    elif g.mask is not None and g.mask is whole and (staying == whole[lanes]).all():
        return [
            SplitSide(np.flatnonzero(by_warp), inside.pc),
            SplitSide(np.flatnonzero(~by_warp), end.pc, whole[~lanes], True),
        ]
    return [
        SplitSide(np.flatnonzero(by_warp), inside.pc, staying, True),
        SplitSide(np.flatnonzero(~by_warp), end.pc, None if whole is None else whole[~lanes], True),
    ]


def _next(
    counter: int, step: int, carried: list[int], values: list[int], kinds: list[int], saved: int, head: Label
) -> Closure:
    def control(g: Any, s: list[Any]) -> int:
        m = g.mask
        fresh = [s[v] for v in values]  # read all before the first is written: the body may exchange carried values
        if m is s[saved]:
            for c, v in zip(carried, fresh, strict=True):
                s[c] = v
        else:  # some lanes rest, and keep what they left the loop with
            for c, v, kind in zip(carried, fresh, kinds, strict=True):
                s[c] = blend(m, v, s[c], kind)
        s[counter] = s[counter] + s[step]  # of resting lanes, too, where it is not read
        return head.pc

    return control


def _assign(sources: list[int], targets: list[int]) -> Closure:
    def assign(g: Any, s: list[Any]) -> None:
        for t, v in zip(targets, [s[i] for i in sources], strict=True):
            s[t] = v

    return assign


def lower_while(low: Lowering, op: Op) -> None:
    before, after = op.regions
    init = low.slots_of(op.operands)
    carried, inner = low.slots_of(before.args), low.slots_of(after.args)
    results = low.slots_of(op.results)
    kinds = [low.kinds[r] for r in results]
    saved = low.mask_slot()
    head, inside, end = Label(), Label(), Label()

    def enter(g: Any, s: list[Any]) -> None:
        fresh = [s[i] for i in init]
        for c, v in zip(carried, fresh, strict=True):
            s[c] = v
        for r in results:
            s[r] = None  # set when the first lanes leave; until then there is nothing to blend with
        s[saved] = g.mask

    low.step(flows(enter, (), init, carried), op, init, (*carried, *results, saved))
    low.place(head, op)
    low.region(before, EnclosingRegion(end, saved, None))
    cond, *values = low.slots_of(before.ops[-1].operands)
    splits = low.blocks(before) or low.blocks(after)
    spin = SpinLoop(low, op)
    ask = _condition(cond, values, results, inner, kinds, saved, splits, inside, end)
    ask = _let_others_run_first(ask, end) if spin.quiet and spin.reads else ask
    flows(ask, (cond,), (*values, *values), (*inner, *results))
    low.control(ask, op, (cond, *values, *results, saved), (), (inside, end))
    inside.pc = low.here()
    low.region(after, EnclosingRegion(end, saved, None))
    yielded = low.slots_of(after.ops[-1].operands)
    # Where a warp may rest while others spin here: behind this loop (it has left), or in a region around it, innermost
    # first. Their masks must stay alive in this loop, so that resting warps can be told where they go on.
    around = [EnclosingRegion(end, saved, None), *reversed(low.enclosing)]
    states = [slot for e in around for slot in (e.saved, e.taken) if slot is not None]
    targets = (head, *(e.exit for e in around))
    seen = [slot for _, slot, _ in spin.reads] + spin.inputs.registers
    next_turn = flows(_next_turn(yielded, carried, around, head, spin), (), yielded, carried)
    low.control(next_turn, op, (*yielded, *results, *states, *seen), carried, targets)
    end.pc = low.here()
    low.step(_leave(op), op, (), ())
    join(low, op)


def _condition(
    cond: int,
    values: list[int],
    results: list[int],
    inner: list[int],
    kinds: list[int],
    saved: int,
    splits: bool,
    inside: Label,
    end: Label,
) -> Closure:
    def control(g: Any, s: list[Any]) -> int:
        c, m = s[cond], g.mask
        fresh = [s[v] for v in values]
        for i, v in zip(inner, fresh, strict=True):
            s[i] = v
        if c.ndim == 0 and c:
            return inside.pc
        for r, v, kind in zip(results, fresh, kinds, strict=True):  # lanes that stay will set theirs again
            s[r] = v if m is s[saved] else blend(m, v, s[r], kind)
        if c.ndim == 0:
            g.mask = s[saved]
            return end.pc
        return _divide(g, s, c if m is None else c & m, saved, splits, inside, end)

    return control


def _let_others_run_first(ask: Closure, end: Label) -> Closure:
    """Warps that are held back have seen what they polled for: first the others, who may have waited for the same."""

    def control(g: Any, s: list[Any]) -> int:
        pc = ask(g, s)
        launch = g.wave.launch
        if pc != end.pc or (id(g.wave), g.tag) not in launch.held_back:
            return pc
        for other in launch.groups:
            other.yielded = False
        g.pc, g.still = pc, False
        return PAUSE

    return control


def _leave(op: Op) -> Closure:
    def leave(g: Any, s: list[Any]) -> None:
        g.still = False
        if g.wave.turning:
            ended(g, op)

    return leave


def _next_turn(
    yielded: list[int], carried: list[int], around: list[EnclosingRegion], head: Label, spin: SpinLoop
) -> Closure:
    """Back to the condition; now and then, and after an iteration that changed nothing, other groups get a turn, and
    warps that rest under a mask (they have left this loop, or are outside it in a region around it) stop waiting for
    those that spin."""
    polls = spin.quiet and bool(spin.reads)

    def control(g: Any, s: list[Any]) -> int:
        fresh = [s[v] for v in yielded]
        # An iteration is compared with the one before only where that can mean something (a quiet loop that reads
        # memory), or now and then: comparing costs more than an iteration.
        g.spins += 1
        due = not g.spins % PATIENCE
        changed = g.changed
        g.still = (polls or due) and spin.still(g, [s[c] for c in carried], fresh)
        for c, v in zip(carried, fresh, strict=True):
            s[c] = v
        if not due and not g.still:
            return head.pc
        g.yielded, g.spin = True, spin
        if due:
            g.wave.launch.bounded(g)
            idle = 0 if g.still else idle_turns(spin.inputs, g, s, carried, spin.op, changed)
            if idle:
                g.wave.launch.waits(g, idle)
        if g.mask is not None:
            # Warps that rest may be the very ones that this loop waits for: as groups of their own they can go on.
            g.parts = _split_resting(g, s, around, head)
            if len(g.parts) > 1:
                return SPLIT
        g.pc = head.pc
        return PAUSE

    return control


def _split_resting(g: Any, s: list[Any], around: list[EnclosingRegion], head: Label) -> list[SplitSide]:
    """The spinning warps at ``head``, then those that rest, each where the region that they rest in lets them go on."""
    busy = g.mask.reshape(-1, WARP).any(1)
    parts = [SplitSide(np.flatnonzero(busy), head.pc)]
    left = ~busy
    for region in around:
        if not left.any():
            break
        if region.taken is not None and s[region.taken] is None:
            continue  # a branch that the whole group took: no warp waits at its end
        whole = s[region.saved]
        inside = left if whole is None else left & whole.reshape(-1, WARP).any(1)
        if inside.any():
            rows = np.flatnonzero(inside)
            mask = None if whole is None else whole[np.repeat(inside, WARP)]
            parts.append(SplitSide(rows, region.exit.pc, mask, region.taken is None))
            left = left & ~inside
    parts[0].rows = np.flatnonzero(busy | left)  # lanes that do not exist rest in no region; they stay here
    return parts
