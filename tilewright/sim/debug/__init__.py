"""Run a kernel to a Python line, and look: tensors, registers, barriers, what each warp waits for.

with sim.debug.Session(lambda: run(x, y)) as session:
    frame = session.run_until("reverse.py:12", warp=1)
    frame.tensor("s"), frame.value("t"), frame.barriers()

sim.debug.break_at("reverse.py:12", warp=1)   # opens the Python debugger there; see docs/debugging.md
"""

from tilewright.sim.debug.breakpoints import Breakpoint, break_at
from tilewright.sim.debug.frame import BarrierState, Frame
from tilewright.sim.debug.session import Session

__all__ = ["BarrierState", "Breakpoint", "Frame", "Session", "break_at"]
