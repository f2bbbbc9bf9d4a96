"""Machines by name: which module runs kernels on arrays of a device."""

from __future__ import annotations

import importlib
from typing import Any

from tilewright.errors import MachineError
from tilewright.ir.runtime import Machine

MACHINES: dict[str, str] = {"cpu": "tilewright.sim.machine", "cuda": "tilewright.cuda.machine"}
"""Device kind (the part of the device's name before the colon) to the module that has its machine."""

_FOUND: dict[str, Machine] = {}


def machine_of(device: str) -> Machine:
    """The machine of ``"cpu"``, ``"cuda"`` or ``"cuda:1"``; imported at its first use.

    Raises MachineError for a device without a machine.
    """
    kind = device.partition(":")[0]
    machine = _FOUND.get(kind)
    if machine is None:
        if kind not in MACHINES:
            choices = ", ".join(sorted(MACHINES))
            raise MachineError(f"no machine runs kernels on {device!r} arrays; there are machines for {choices}")
        module: Any = importlib.import_module(MACHINES[kind])
        machine = _FOUND[kind] = module.machine()
    return machine


def register_machine(kind: str, module: str) -> None:
    """Register ``module`` (which has ``machine()``) to run the kernels on arrays of device kind ``kind``."""
    MACHINES[kind] = module
    _FOUND.pop(kind, None)
