# Made by `python tools/stubs.py` from tilewright/sim/__init__.py; do not edit.
"""The CPU machine: an interpreter of kernels over NumPy lanes that checks them while it runs them.

>>> from tilewright import sim
>>> with sim.options(seed=7, schedule="lockstep"):
...     sim.current_options().schedule
'lockstep'
"""

from tilewright.atoms.ptx.actions import ptx_action as ptx_action
from tilewright.sim import checks as checks
from tilewright.sim import debug as debug
from tilewright.sim import exploration as exploration
from tilewright.sim import mutation as mutation
from tilewright.sim import tracing as tracing
from tilewright.sim.empty_arrays import marking_empty_arrays as marking_empty_arrays
from tilewright.sim.exploration import explore as explore
from tilewright.sim.memory import conceal as conceal
from tilewright.sim.memory import expose as expose
from tilewright.sim.profiling import KernelProfile as KernelProfile
from tilewright.sim.profiling import SimProfile as SimProfile
from tilewright.sim.profiling import profile as profile
from tilewright.sim.settings import Options as Options
from tilewright.sim.settings import current_options as current_options
from tilewright.sim.settings import options as options
from tilewright.sim.settings import set_options as set_options
from tilewright.sim.tracing import Trace as Trace
from tilewright.sim.tracing import trace as trace
