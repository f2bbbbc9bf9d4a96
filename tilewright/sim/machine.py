"""The CPU machine: loads kernels and launches them over the caller's arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError, SimulationError
from tilewright.ir.core import Function
from tilewright.ir.runtime import DevicePointer, LaunchConfig, cluster_fault, fallback_fault
from tilewright.ir.target import MOST_BLOCK, MOST_GRID, MOST_SMEM, MOST_THREADS, WARP, architecture
from tilewright.ir.tensormap import TensorMap
from tilewright.ir.types import PtrType, Type, element_of
from tilewright.sim.blas_threads import one_thread_if_busy
from tilewright.sim.checks import enabled_checkers, observers
from tilewright.sim.checks.residency import resident_blocks
from tilewright.sim.engine import Launch
from tilewright.sim.events import Observer, events
from tilewright.sim.lowering import lower
from tilewright.sim.memory import AddressSpace, exposed
from tilewright.sim.profiling import SimProfile, profile
from tilewright.sim.program import Program
from tilewright.sim.replay import offer_to_handler
from tilewright.sim.settings import current_options, options
from tilewright.sim.shared import integer_ranges
from tilewright.sim.values import Ptr, scalar_value

COOPERATIVE_LAUNCH_TOO_LARGE = 720
"""The number of the driver's error."""


class SimKernel:
    """A kernel made ready for the simulator. Calling it runs the launch to its end."""

    def __init__(self, function: Function, check: str = "") -> None:
        enabled_checkers(check)
        self.name, self.check = function.name, check
        self.counted = function.kind == "kernel"
        self.types = [p.type for p in function.params]
        self.program = lower(function)
        allocations = [op for op in function.walk() if op.opcode == "smem.alloc"]
        self.integers = integer_ranges(
            [(o.attrs["offset"], o.attrs["bytes"], element_of(o.result.type)) for o in allocations]
        )
        self.smem = max(
            [int(function.attrs.get("smem_bytes") or 0)] + [o.attrs["offset"] + o.attrs["bytes"] for o in allocations]
        )
        self.max_threads = function.attrs.get("max_threads")

    def __call__(self, config: LaunchConfig, args: Sequence[Any]) -> None:
        if config.fallback is not None and (fault := fallback_fault(config.grid, config.cluster, config.fallback)):
            raise SimulationError(f"kernel {self.name!r} cannot be launched: {fault}")
        for part in config.in_both_clusters():
            # Exploration, mutation and the debugger take over launches to run them in their own way.
            if not (self.counted and offer_to_handler(self, part, args)):
                self.run(part, args)

    def run(
        self,
        config: LaunchConfig,
        args: Sequence[Any],
        program: Program | None = None,
        more: Sequence[Observer] = (),
        make: Callable[..., Launch] | None = None,
    ) -> None:
        """Run one launch to its end. ``program`` replaces the kernel's own (a mutant); ``more``: observers besides the
        checks; ``make``: what makes the launch, if not :class:`Launch`."""
        smem = self.smem if config.smem is None else int(config.smem)
        self._check(config, smem)
        space = AddressSpace()
        values = self.values(args, space)
        options = current_options()
        own = program or self.program
        checks = observers(own, config, self.check or options.check) if self.counted else []
        events_of_launch = events(self.name, config, [*more, *checks]) if self.counted else None
        launch = (make or Launch)(own, config, smem, self.integers, space, values, options, events_of_launch)
        try:
            with one_thread_if_busy():
                launch.run()
        except KeyboardInterrupt:  # without the frames of the simulator
            raise KeyboardInterrupt(f"the simulation of kernel {self.name!r} was stopped") from None

    def values(self, args: Sequence[Any], space: AddressSpace) -> list[Any]:
        """The registers of the kernel's parameters."""
        return arguments(self.name, self.types, args, space)

    def _check(self, config: LaunchConfig, smem: int) -> None:
        """Refuse what the driver of a GPU would refuse, with its limits."""

        def need(condition: bool, text: str) -> None:
            if not condition:
                raise SimulationError(f"kernel {self.name!r} cannot be launched: {text}")

        threads = int(np.prod(config.block))
        for what, size, limits in (("grid", config.grid, MOST_GRID), ("block", config.block, MOST_BLOCK)):
            need(all(v >= 1 for v in size), f"{what}={size}; every extent must be at least 1")
            need(all(v <= m for v, m in zip(size, limits, strict=True)), f"{what}={size} exceeds the limits {limits}")
        need(threads <= MOST_THREADS, f"block={config.block} has {threads} threads; a block has at most {MOST_THREADS}")
        if self.max_threads:
            need(
                threads <= self.max_threads,
                f"block={config.block} has {threads} threads; its launch bounds say {self.max_threads}",
            )
        arch = current_options().arch
        most, where = (architecture(arch, bare=True).smem, f" on {arch}") if arch else (MOST_SMEM, "")
        need(
            smem <= most,
            f"{smem} bytes of shared memory; a block has at most {most} ({most // 1024} KB){where}: take smaller tiles "
            "or fewer stages",
        )
        need(smem >= self.smem, f"smem={smem} bytes given, but the kernel's own allocations need {self.smem}")
        fault = cluster_fault(config.grid, config.cluster, config.attributes)
        need(fault is None, fault or "")
        held = resident_blocks(-(-threads // WARP), smem, current_options().sms)
        if "cooperative" in config.attributes and (blocks := math.prod(config.grid)) > held:
            raise SimulationError.of_driver(
                COOPERATIVE_LAUNCH_TOO_LARGE,
                f"kernel {self.name!r} cannot be launched: the launch is cooperative and has {blocks} blocks, the "
                f"simulated GPU holds {held} at once; launch fewer, or smaller ones",
            )


def arguments(name: str, types: Sequence[Type], args: Sequence[Any], space: AddressSpace) -> list[Any]:
    """The registers of a function's parameters."""
    if len(types) != len(args):
        raise ArgumentError(f"{name!r} takes {len(types)} arguments, {len(args)} given")
    return [_argument(name, i, t, a, space) for i, (t, a) in enumerate(zip(types, args, strict=True))]


def _argument(name: str, index: int, type_: Type, arg: Any, space: AddressSpace) -> Any:
    """The register of one parameter: a pointer into the buffer of its array, a tensor map's bytes, or a number."""
    if isinstance(type_, PtrType):
        if isinstance(arg, DevicePointer):
            if arg.device != "cpu":
                raise ArgumentError(
                    f"argument {index} of {name!r} is on {arg.device}; the simulator reaches CPU memory only"
                )
            buffer = space.buffer(arg.low, arg.high, arg.owner)
            buffer.shapes[index] = arg.extents
            return Ptr(buffer, arg.address - buffer.base)
        return Ptr(space.any, int(arg))
    if isinstance(arg, TensorMap):
        if not isinstance(arg.pointer, int):
            low, high = arg.pointer.low, arg.pointer.high
            if arg.pointer.owner is None:  # of a number: the tensor map alone says how much there is
                low, high = max(low, arg.address), min(high, arg.address + arg.tensor_bytes)
            space.buffer(low, high, arg.pointer.owner)
        return arg.image()
    return scalar_value(arg, element_of(type_))


class SimMachine:
    """The simulator as a machine: ``load``, ``profile``, ``upload`` and ``download`` of
    :class:`tilewright.ir.runtime.Machine`."""

    def load(self, function: Function, options: Any = None) -> SimKernel:
        return SimKernel(function, getattr(options, "check", ""))

    @contextmanager
    def profile(self, progress: Callable[[float], None] | None = None, multiply_adds: int = 0) -> Iterator[SimProfile]:
        with profile(progress, multiply_adds) as report:
            yield report

    def exposed(self, low: int, high: int) -> AbstractContextManager[None]:
        """Inside of the context kernels may reach the bytes ``[low, high)`` by addresses that they find in memory."""
        return exposed(low, high)

    def checking(self, check: str) -> AbstractContextManager[Any]:
        return options(check=check)

    def upload(self, array: Any) -> Any:
        return array

    def download(self, source: Any, target: Any) -> None:
        if source is not target:
            np.copyto(target, source)


_machine = SimMachine()


def machine() -> SimMachine:
    return _machine
