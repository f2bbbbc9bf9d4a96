"""The CPU machine: an interpreter of kernels over NumPy lanes that checks them while it runs them.

A kernel's IR is lowered to a flat :class:`~tilewright.sim.program.Program` of Python closures (``lowering.py``: control
flow; ``steps.py``, ``memory_steps.py``, ``calls.py``: ops). A :class:`~tilewright.sim.engine.Launch` runs it:

- ``engine.py`` schedules :class:`~tilewright.sim.group.Group`: warps at the same place, which execute each step
  together, with a register file of NumPy arrays ``[lanes]`` or ``[lanes, n]``. Groups split where warps diverge
  (``branches.py``, ``loops.py``) and merge again.
- ``wave.py`` has the blocks that are resident together: shared memory (``shared.py``), named barriers
  (``barriers.py``), the cluster's barrier, and what instructions keep beside them (mbarriers).
  ``memory.py`` is global memory.
- ``lanes.py`` is what an instruction's class in ``atoms/`` acts through; ``agents.py`` keeps its asynchronous effects,
  which land as late as the program's waits allow.
- ``events.py`` tells observers what happens. The checks (``checks/``), profiles, traces (``tracing/``) and the debugger
  (``debug/``) are observers; ``exploration/`` and ``mutation/`` run launches again, under other schedules or with
  weaker synchronisation.

Start with ``engine.py`` and ``group.py``; ``machine.py`` connects the simulator to launches of the language.

>>> from tilewright import sim
>>> with sim.options(seed=7, schedule="lockstep"):
...     sim.current_options().schedule
'lockstep'
"""

from tilewright._names import attach

attach(__name__)
