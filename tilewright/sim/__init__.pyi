"""The CPU machine: an interpreter of kernels over NumPy lanes that checks them while it runs them.

>>> from tilewright import sim
>>> with sim.options(seed=7, schedule="lockstep"):
...     sim.current_options().schedule
'lockstep'
"""

from tilewright.atoms.ptx.step import ptx_action as ptx_action
from tilewright.sim.empty_arrays import marking_empty_arrays as marking_empty_arrays
from tilewright.sim.exploration import explore as explore
from tilewright.sim.memory import conceal as conceal, expose as expose
from tilewright.sim.profiling import KernelProfile as KernelProfile, SimProfile as SimProfile, profile as profile
from tilewright.sim.settings import (
    SimulatorOptions as SimulatorOptions, current_options as current_options, options as options, set_options as set_options,
)
from tilewright.sim.tracing import Trace as Trace, trace as trace
from tilewright.sim import (
    checks as checks, debug as debug, exploration as exploration, mutation as mutation, tracing as tracing,
)
