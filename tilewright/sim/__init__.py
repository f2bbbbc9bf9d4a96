"""The CPU machine: an interpreter of kernels over NumPy lanes that checks them while it runs them.

>>> from tilewright import sim
>>> with sim.options(seed=7, schedule="lockstep"):
...     sim.current_options().schedule
'lockstep'
"""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.atoms.ptx.actions": "ptx_action",
        "tilewright.sim.empty_arrays": "marking_empty_arrays",
        "tilewright.sim.memory": "conceal expose",
        "tilewright.sim.profiling": "KernelProfile SimProfile profile",
        "tilewright.sim.settings": "Options current_options options set_options",
        "tilewright.sim.tracing": "Trace trace",
        "tilewright.sim.exploration": "explore",
    },
    ("checks", "debug", "exploration", "mutation", "tracing"),
)
