"""Which of the caller's arrays a kernel's parameters reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.ir.tensormap import TENSOR_MAP, TensorMap
from tilewright.sim.values import Ptr

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch


def buffers_of(launch: Launch, parameters: set[int] | None) -> set[Any]:
    """The buffers behind these parameters (numbers; None: unknown which), and those that overlap with them."""
    space = launch.space
    if parameters is None:
        return set(space.exposed())
    buffers: set[Any] = set()
    for number in parameters:
        value = launch.slots[launch.program.params[number]]
        if isinstance(value, Ptr):
            buffers.add(value.buf)
        elif launch.program.function.params[number].type == TENSOR_MAP:
            tensor_map = TensorMap.of_image(value)
            address = tensor_map.address if tensor_map is not None else 0
            buffers.update(b for b in space.exposed() if b.base + b.low <= address < b.base + b.high)
    ranges = [(b.base + b.low, b.base + b.high) for b in buffers if isinstance(getattr(b, "low", None), int)]
    if len(ranges) < len(buffers):
        return set(space.exposed())
    # Arrays may overlap (views of one): who writes to one writes to both.
    overlapping = [b for b in space.exposed() if any(b.base + b.low < h and lo < b.base + b.high for lo, h in ranges)]
    return buffers | set(overlapping)
