"""The CPU machine: an interpreter of kernels over NumPy lanes that checks them while it runs them.

>>> from tilewright import sim
>>> with sim.options(seed=7, schedule="lockstep"):
...     sim.current_options().schedule
'lockstep'
"""

from tilewright.atoms.ptx.actions import ptx_action
from tilewright.sim.memory import conceal, expose
from tilewright.sim.profiling import KernelProfile, SimProfile, profile
from tilewright.sim.settings import Options, current_options, options, set_options
from tilewright.sim.tracing import Trace, trace

__all__ = [
    "KernelProfile",
    "Options",
    "SimProfile",
    "Trace",
    "conceal",
    "current_options",
    "expose",
    "options",
    "profile",
    "ptx_action",
    "set_options",
    "trace",
]
