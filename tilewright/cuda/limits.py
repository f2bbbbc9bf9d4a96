"""The limits of a device for launches, and the errors that name them before the driver does."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from tilewright.cuda import libcuda
from tilewright.errors import ArgumentError
from tilewright.ir.core import Function
from tilewright.ir.runtime import LaunchConfig, cluster_fault, fallback_fault


@dataclass(frozen=True)
class Limits:
    """One device: sizes in threads, blocks and bytes."""

    name: str
    capability: tuple[int, int]
    threads: int
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    smem: int
    multiprocessors: int

    @property
    def arch(self) -> str:
        """The architecture to compile for, with the features of this chip alone from Hopper on: ``sm_90a``."""
        major, minor = self.capability
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


@functools.cache
def limits(device: int) -> Limits:
    """Ask the driver once."""
    handle = libcuda.handle(device)

    def ask(attribute: int) -> int:
        return libcuda.device_attribute(handle, attribute)

    def three(attributes: tuple[int, int, int]) -> tuple[int, int, int]:
        x, y, z = attributes
        return ask(x), ask(y), ask(z)

    return Limits(
        libcuda.device_name(handle),
        (ask(libcuda.COMPUTE_MAJOR), ask(libcuda.COMPUTE_MINOR)),
        ask(libcuda.MAX_THREADS_PER_BLOCK),
        three(libcuda.MAX_BLOCK_DIM),
        three(libcuda.MAX_GRID_DIM),
        ask(libcuda.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        ask(libcuda.MULTIPROCESSORS),
    )


def shared_bytes(function: Function) -> int:
    """Bytes of dynamic shared memory that the kernel's own allocations need."""
    ends = [op.attrs["offset"] + op.attrs["bytes"] for op in function.walk() if op.opcode == "smem.alloc"]
    return max([int(function.attrs.get("smem_bytes") or 0), *ends])


def check_launch(
    function: Function, config: LaunchConfig, smem: int, needed: int, device: Limits, kernel_threads: int, static: int
) -> None:
    """Raise ArgumentError when ``config`` is more than the device or the kernel allows.

    ``needed`` are the bytes of shared memory that the kernel's allocations take, ``kernel_threads`` is the block size
    that the compiled kernel can run with, ``static`` its static shared memory.
    """
    name = function.name
    for what, size, bound in (("grid", config.grid, device.grid), ("block", config.block, device.block)):
        if any(not 1 <= n <= most for n, most in zip(size, bound, strict=True)):
            raise ArgumentError(f"{name}: {what} {size} is outside 1..{bound} of {device.name}")
    threads, built = math.prod(config.block), function.attrs.get("max_threads")
    if threads > device.threads:
        raise ArgumentError(
            f"{name}: a block of {config.block} has {threads} threads, {device.name} allows {device.threads}"
        )
    if built and threads > built:
        raise ArgumentError(f"{name}: a block of {config.block} has {threads} threads, the kernel is built for {built}")
    if threads > kernel_threads:
        raise ArgumentError(
            f"{name}: a block of {config.block} has {threads} threads, the kernel's registers allow {kernel_threads}; "
            "state the block size when the kernel is compiled, so that the compiler keeps to it"
        )
    if smem < needed:
        raise ArgumentError(f"{name}: {smem} bytes of shared memory are given, its allocations need {needed}")
    if smem + static > device.smem:
        raise ArgumentError(
            f"{name}: {smem + static} bytes of shared memory a block, {device.name} allows {device.smem}; "
            "take smaller tiles or fewer stages"
        )
    _check_cluster(function, config, device)


def cluster_of(function: Function, config: LaunchConfig) -> tuple[int, ...]:
    """The cluster that blocks are launched in: the configuration's, else the one that the kernel is compiled for."""
    configured = tuple(config.cluster)
    return tuple(function.attrs.get("cluster") or configured) if configured == (1, 1, 1) else configured


def _check_cluster(function: Function, config: LaunchConfig, device: Limits) -> None:
    name, built, cluster = function.name, function.attrs.get("cluster"), cluster_of(function, config)
    if built and tuple(built) != cluster:
        raise ArgumentError(f"{name}: launched in clusters of {cluster}, compiled for clusters of {tuple(built)}")
    if math.prod(cluster) == 1:
        return
    if config.fallback is not None:
        if device.capability < (10, 0):
            raise ArgumentError(
                f"{name}: preferred clusters ({cluster}, else {config.fallback}) need sm_100, {device.name} is "
                f"sm_{''.join(map(str, device.capability))}: launch in clusters of {config.fallback}"
            )
        if fault := fallback_fault(config.grid, cluster, config.fallback):
            raise ArgumentError(f"{name}: {fault}")
    if device.capability < (9, 0):
        raise ArgumentError(
            f"{name}: clusters of {cluster} need sm_90, {device.name} is sm_{''.join(map(str, device.capability))}"
        )
    if fault := cluster_fault(config.grid, cluster, config.attributes):
        raise ArgumentError(f"{name}: {fault}")
