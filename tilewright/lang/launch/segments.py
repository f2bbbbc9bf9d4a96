"""Pieces of a host function that the CPU machine runs as one thread: memory accesses, vectors, printing."""

from __future__ import annotations

from typing import Any

from tilewright.errors import MachineError, StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.runtime import DevicePointer, LaunchConfig
from tilewright.ir.types import MemSpace, PtrType, ScalarType, element_of
from tilewright.lang.launch.machine import machine_of

_TOUCHES_MEMORY = ("load", "store", "call")
_ONE = LaunchConfig((1, 1, 1), (1, 1, 1))


class Segment:
    """Callable with the values of ``inputs``; gives those of ``outputs`` (scalars), which are passed through memory."""

    def __init__(self, function: Function, inputs: list[Value], outputs: list[Value]) -> None:
        self.function, self.inputs, self.outputs = function, inputs, outputs
        self.touches_memory = any(op.opcode in _TOUCHES_MEMORY for op in function.walk())
        self._loaded: Any = None

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        import numpy as np

        for value in values:
            if self.touches_memory and isinstance(value, DevicePointer) and value.device != "cpu":
                raise MachineError(
                    f"host code of {self.function.name!r} reads or writes an array on {value.device}; only a kernel can"
                )
        if self._loaded is None:
            self._loaded = machine_of("cpu").load(self.function)
        places = [np.zeros(1, v.type.dtype) for v in self.outputs]  # type: ignore[attr-defined]  # scalars only
        self._loaded(_ONE, [*values, *map(_pointer, places)])
        return tuple(place[0].item() for place in places)


def _pointer(array: Any) -> DevicePointer:
    address = array.ctypes.data
    return DevicePointer(address, "cpu", address, address + array.nbytes, array)


def _operands(ops: list[Op]) -> list[Value]:
    """What the ops, and those in their regions, read: each value once, in order."""
    return list(dict.fromkeys(v for op in ops for inner in op.walk() for v in inner.operands))


def outline(ops: list[Op], later: list[Op], name: str) -> Segment:
    """``ops`` as a function of its own. ``later`` are the ops that follow and may read results."""
    made = {result for op in ops for result in op.results}
    inside = {value for op in ops for inner in op.walk() for value in [*inner.results, *_arguments(inner)]}
    inputs = [v for v in _operands(ops) if v not in inside and not isinstance(v, Constant)]
    outputs = [v for v in _operands(later) if v in made]
    for value in outputs:
        if not isinstance(value.type, ScalarType):
            raise StagingError(
                f"{name}: a value of type {value.type} computed on the host cannot be passed on to a launch"
            )
    places = [Value(PtrType(element_of(v.type), MemSpace.GENERIC, element_of(v.type).bytes), v.hint) for v in outputs]
    body = Block([*inputs, *places], list(ops))  # the host function's own values and ops: nothing changes them
    builder = Builder(body)
    for place, value in zip(places, outputs, strict=True):
        builder.store(place, value)
    return Segment(Function(name, "host", body), inputs, outputs)


def _arguments(op: Op) -> list[Value]:
    return [argument for region in op.regions for argument in region.args]
