"""Host functions on the simulator: one lane, for host code that touches memory or prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.core import Function, Op
from tilewright.ir.runtime import DevicePointer, LaunchConfig
from tilewright.sim.engine import Launch
from tilewright.sim.lowering import lower
from tilewright.sim.machine import arguments
from tilewright.sim.memory import AbsoluteMemory, AddressSpace
from tilewright.sim.settings import current_options
from tilewright.sim.values import Ptr

Launcher = Callable[[Op, list[Any]], None]


def run_host(function: Function, args: Sequence[Any], launcher: Launcher) -> None:
    """Run ``function`` (kind ``"host"``) with ``args``; ``launcher(op, values)`` is called for each of its ``launch``
    ops with the Python numbers and DevicePointers of the op's operands."""
    space = AddressSpace()

    def launch(op: Op, values: list[Any]) -> None:
        launcher(op, [_python(v, space) for v in values])

    program = lower(function, launch)
    values = arguments(function.name, [p.type for p in function.params], args, space)
    config = LaunchConfig((1, 1, 1), (1, 1, 1))
    Launch(program, config, 0, [], space, values, current_options()).run()


def _python(value: Any, space: AddressSpace) -> Any:
    if not isinstance(value, Ptr):
        return value.item()
    address = value.off + value.buf.base
    buffer = value.buf
    if isinstance(buffer, AbsoluteMemory):
        for known in space.exposed():
            if known.base + known.low <= address < known.base + known.high:
                buffer = known
                break
        else:
            return DevicePointer(address, "cpu", address, address, None)
    return DevicePointer(address, "cpu", buffer.base + buffer.low, buffer.base + buffer.high, buffer.owner)
