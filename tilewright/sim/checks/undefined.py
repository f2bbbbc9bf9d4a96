"""Where an undefined value came from, and what is said of one that is used."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.ir.core import Op
from tilewright.sim.checks.actors import Actor
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import MemoryPlace
from tilewright.sim.empty_arrays import EmptyArray

SINKS = {
    "result": "reaches a result: it is stored to global memory",
    "update": "reaches a result: it is updated in place",
    "branch": "decides a branch or a loop",
    "address": "becomes an address",
}


class Origin(NamedTuple):
    """Where an undefined value was first read: the op, the memory or registers, and the array that is not written."""

    op: Op | None
    memory: MemoryPlace | None
    made: EmptyArray | None = None


def finding_of(sink: str, op: Op, who: Actor, origin: Origin, count: int) -> Finding:
    """The finding that ``op`` used a value of this origin."""
    if origin.op is not None and origin.op.opcode == "call" and origin.op.attrs["atom"].shuffles:
        return Finding(
            "uninitialised",
            f"a shuffle reads from a lane that takes no part in it, and the value {SINKS[sink]}",
            [Party("used", op, who), Party("shuffled", origin.op)],
            None,
            "a lane outside of the shuffle's mask gives no value (PTX ISA, shfl.sync: the result is undefined)",
            "read from a lane of the mask, or let the source lane take part: name it in mask= and let it come here",
            count,
        )
    memory = origin.memory
    space = memory.space if memory is not None else "shared"
    place = "registers" if space == "registers" else f"{space} memory"
    name = memory.name.partition(" at byte ")[0] if memory is not None and memory.name else place
    verb = "which were never written" if space == "registers" else "read here before it was written"
    parties = [Party("used", op, who)]
    # A value that is used where it is read has one line to show.
    if origin.op is not None and origin.op is not op:
        parties.append(Party(f"{name}, {verb}", origin.op))
    why = "nothing wrote these bytes before they were read, on the path that these threads took"
    fix = (
        f"write {name} first: fill(0), a copy, or the same condition (predicate) on reader and writer; and wait for "
        "the thread that writes it, or for the copy that brings it (a barrier, mbarrier_wait, or consumer_wait of a "
        "pipeline)"
    )
    if space == "tensor":
        memory, why = None, "tensor memory holds what other blocks have left in it until this block writes the cells"
        fix = (
            "write the cells first: an MMA into them (with Field.ACCUMULATE false, if it is the first), a tcgen05.st, "
            "or a tcgen05.cp; and load only the lanes and columns that were written"
        )
    if space == "global":
        if origin.made is not None and origin.made.where is not None:
            parties.append(Party(f"made uninitialised by {origin.made.function}", None, at=origin.made.where))
        why = "neither the program nor a kernel has written these bytes since the array was made"
        fix = (
            f"zeros in place of empty (or fill_, a copy) for {name} before the launch, let a kernel write it "
            "first, or read only what has been written (what beta = 0 multiplies is not to be read)"
        )
    finding = Finding(
        "uninitialised",
        f"an uninitialised value ({place}) {SINKS[sink]}",
        parties,
        memory,
        why,
        fix,
    )
    finding.count = count
    return finding
