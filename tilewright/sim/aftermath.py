"""The rest of a launch that ends with a fault of its mbarriers, run for the checks to see.

A consumer that reads a stage before its bytes have come also gives it back too early, and the mbarriers' counts go
wrong before any copy has landed: copies land as late as waits allow. The early read is found when the bytes come. So
the other warps continue for some turns without those at fault, pending copies land, and the checks that follow errors
(``Observer.follows_errors``) look on. A copy that no thread has waited for when its block ends is landed for the same
reason: what it reads may not have been written, or not be visible to it. Errors from here on are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.errors import SimulationError
from tilewright.ir.core import Op

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group

TURNS = 64  # of other warps, and copies that land


def concerns_mbarriers(op: Op | None) -> bool:
    """Whether an instruction touches mbarriers, itself or when its bytes come."""
    return op is not None and op.opcode == "call" and any(a.role == "mbarrier" for a in op.attrs["atom"].accesses)


def look_on(launch: Launch, at_fault: Group | None) -> None:
    """Continue ``launch`` for a while without the group at fault (None: a copy was)."""
    events = launch.events
    assert events is not None
    with events.following_errors():
        launch.groups = [group for group in launch.groups if group is not at_fault]
        if launch.failed is not None:  # its bytes came too late for their block: land it as if they had not
            shared = launch.failed.lanes.group.wave.shared
            shared.ended = np.zeros_like(shared.ended)
            launch.failed.done = False
            launch.later.insert(0, launch.failed)
        for _ in range(TURNS):
            group = launch._pick()
            try:
                if group is not None:
                    launch._turn(group)
                elif launch.later:
                    launch._land_next()
                else:
                    break
            except SimulationError:
                launch.groups = [other for other in launch.groups if other is not group]
