"""While loops that write memory: whether their iterations make progress.

A loop that changes nothing is recognised at once (:mod:`.spins`). One that writes in each iteration is not, and may
still wait for ever: ``while load(flag) == 0: count += 1``. What can end it is what its condition is computed from:
memory and carried values, traced back through the loop. As long as these stay as they are, the loop *waits*, whatever
else it does; if all that it carries and writes stays as well, it *repeats* itself.

Neither observation is a proof: a later iteration may write what the condition reads. Iterations are counted therefore,
``options(idle_turns=...)`` of waiting, a sixteenth of it of repeating, and only while no other group makes progress:
the count begins again when a condition's values change anywhere in the launch, a loop of many iterations ends,
warps end or blocks begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Op, Value
from tilewright.ir.types import FragType, PtrType, VecType
from tilewright.sim.memory import AbsoluteMemory
from tilewright.sim.shared import SharedBuffer
from tilewright.sim.values import Ptr

if TYPE_CHECKING:
    from tilewright.sim.group import Group
    from tilewright.sim.lowering import Lowering

REPEATS = 16  # a loop that repeats its state gets this many times fewer iterations
PLACES = 8  # stores of a loop whose places are compared; a loop with more of them is never said to repeat itself
STATE = frozenset(("load", "frag.load", "call"))  # what gives other results for the same operands
Sample = tuple[list[Any], list[Any] | None]  # the condition's values; the rest, where all of it can be seen


class LoopInputs:
    """The values that a while loop's condition is computed from: ``carried``, the numbers of carried values, and
    ``slots``, the registers of what memory (or a clock) gave. ``pointers``: of the loads among them. ``places``: the
    pointers that the loop stores through, with their registers, None where it changes what cannot be compared."""

    __slots__ = ("carried", "slots", "pointers", "places")

    def __init__(self, low: Lowering, loop: Op) -> None:
        before, after = loop.regions
        carried_at = {value: k for k, value in enumerate(before.args)}
        passed_at = {value: k for k, value in enumerate(after.args)}
        maker = {value: op for op in loop.walk() for value in op.results}
        maker |= {arg: op for op in loop.walk() if op is not loop for region in op.regions for arg in region.args}
        self.carried: list[int] = []
        self.slots: list[int] = []
        self.pointers: set[Value] = set()
        visited: set[Value] = set()
        todo = [before.ops[-1].operands[0]]
        while todo:
            value = todo.pop()
            if value in visited:
                continue
            visited.add(value)
            if value in carried_at:  # of this iteration; the body hands on the one of the next iteration
                self.carried.append(carried_at[value])
                todo.append(after.ops[-1].operands[carried_at[value]])
            elif value in passed_at:  # from the condition's region to the body
                todo.append(before.ops[-1].operands[1 + passed_at[value]])
            elif value in maker:
                op = maker[value]
                todo += op.operands
                if op.opcode in STATE or (op.opcode == "sreg" and op.attrs["name"] == "clock"):
                    self.slots.append(low.slot(value))
                    self.pointers.update(v for v in op.operands if isinstance(v.type, PtrType))
                for region in op.regions:  # a branch or a loop: what its ends pass on
                    todo += region.ops[-1].operands
        self.places = self._places(low, loop)

    @staticmethod
    def _places(low: Lowering, loop: Op) -> list[tuple[PtrType, int, int]] | None:
        places: list[tuple[PtrType, int, int]] = []
        for op in loop.walk():
            if op.opcode == "store":
                kind, stored = (v.type for v in op.operands)
                assert isinstance(kind, PtrType)
                places.append((kind, stored.n if isinstance(stored, VecType) else 1, low.slot(op.operands[0])))
            elif op.opcode == "frag.store" or any(isinstance(v.type, FragType) for v in op.operands):
                return None
            elif op.opcode == "call" and not op.attrs["atom"].quiet:
                return None
        return places if len(places) <= PLACES else None

    @property
    def registers(self) -> list[int]:
        """The slots of the values that must be alive at the end of an iteration."""
        return [*self.slots, *(slot for *_, slot in self.places or ())]

    def sample(self, group: Group, slots: list[Any], carried: list[int], changed: bool) -> Sample:
        """The state of an iteration, to be compared with a later one. ``changed``: an atomic has changed its place."""
        own = [_frozen(slots[carried[k]]) for k in self.carried] + [_frozen(slots[slot]) for slot in self.slots]
        if self.places is None or changed:
            return own, None
        rest = [_frozen(slots[c]) for c in carried]
        for kind, count, slot in self.places:
            rest += [_frozen(slots[slot]), _held(group, kind, count, slots[slot])]
        return own, rest


class LoopProgress:
    """One loop of one group: the last sample, and the group's count of iterations when its own values last changed
    (``own``), and when any of it did (``all``); ``epoch``: of the launch then."""

    __slots__ = ("sample", "own", "all", "epoch")

    def __init__(self, sample: Sample, iterations: int, epoch: int) -> None:
        self.sample, self.own, self.all, self.epoch = sample, iterations, iterations, epoch


def idle_turns(inputs: LoopInputs, group: Group, slots: list[Any], carried: list[int], op: Op, changed: bool) -> int:
    """0 while a loop makes progress, or still may; else its iterations since the last progress, which are too many."""
    wave = group.wave
    launch, key = wave.launch, (op, int(group.warps[0]))
    sample, progress = inputs.sample(group, slots, carried, changed), wave.turning.get(key)
    if progress is None or sample[0] != progress.sample[0]:
        launch.epoch += 1
        wave.turning[key] = LoopProgress(sample, group.spins, launch.epoch)
        return 0
    # Another group has got on since: it may be what this loop waits for, so the count begins again.
    if progress.epoch != launch.epoch:
        progress.own = progress.all = group.spins
        progress.epoch = launch.epoch
    elif sample[1] is None or sample[1] != progress.sample[1]:
        progress.all = group.spins
    progress.sample = sample
    waits, repeats, most = group.spins - progress.own, group.spins - progress.all, launch.options.idle_turns
    return waits if waits > most or repeats > max(1, most // REPEATS) else 0


def ended(group: Group, op: Op) -> None:
    """Warps of the group have left a loop: those that were counted in it have made progress."""
    turning = group.wave.turning
    for key in [key for key in turning if key[0] is op and key[1] in group.warps]:
        del turning[key]
        group.wave.launch.epoch += 1


def _frozen(value: Any) -> Any:
    """The contents of a register in a form that can be kept and compared."""
    if isinstance(value, Ptr):
        return id(value.buf), _frozen(value.off)
    return value if value is None or isinstance(value, int) else (np.shape(value), np.asarray(value).tobytes())


def _held(group: Group, kind: PtrType, count: int, pointer: Any) -> Any:
    """The bytes where lanes store ``count`` elements; something that equals nothing where they cannot be found."""
    if pointer is None:
        return None
    buffer, nbytes = pointer.buf, kind.elem.bytes * count
    off = np.array(np.broadcast_to(np.asarray(pointer.off, np.int64), group.lanes_count))
    off = off if group.mask is None else off[group.mask]
    if isinstance(buffer, AbsoluteMemory) or (
        off.size and (off.min() < buffer.low or off.max() + nbytes > buffer.high)
    ):
        return object()
    if isinstance(buffer, SharedBuffer):
        off += group.smem_base if group.mask is None or type(group.smem_base) is int else group.smem_base[group.mask]
    return buffer.bytes[off[:, None] + np.arange(nbytes)].tobytes()
