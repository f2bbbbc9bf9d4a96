"""The CPU machine: an interpreter of kernels over NumPy lanes that checks them while it runs them.

>>> from tilewright import sim
>>> with sim.options(seed=7, schedule="lockstep"):
...     sim.current_options().schedule
'lockstep'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilewright.atoms.ptx.actions import ptx_action
from tilewright.sim.memory import conceal, expose
from tilewright.sim.profiling import KernelProfile, SimProfile, profile
from tilewright.sim.settings import Options, current_options, options, set_options
from tilewright.sim.tracing import Trace, trace

if TYPE_CHECKING:
    from tilewright.sim import debug
    from tilewright.sim.exploration import explore

__all__ = [
    "KernelProfile",
    "Options",
    "SimProfile",
    "Trace",
    "conceal",
    "current_options",
    "debug",
    "explore",
    "expose",
    "options",
    "profile",
    "ptx_action",
    "set_options",
    "trace",
]


# What most programs never use, and need not import.
_ON_DEMAND = {"explore": "tilewright.sim.exploration"}


def __getattr__(name: str) -> Any:
    if name == "debug":
        return import_module("tilewright.sim.debug")
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ON_DEMAND[name]), name)
