"""One launch for problems of a group whose operands have the same layouts: the kernel, its size, its table."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright import Int32, cute
from tilewright.errors import ArgumentError
from tilewright.gemm.choice.simulated import simulated_work
from tilewright.gemm.config import AnyConfig, Major
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.family.base import family_of
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.group_times import GroupTimes, usable
from tilewright.gemm.family.plan_options import MIN_K_TILES, Limits
from tilewright.gemm.host import plan
from tilewright.gemm.host.epilogue_state import note_staged, states_of
from tilewright.gemm.host.problem import Problem, is_torch
from tilewright.gemm.host.recorded import launch
from tilewright.gemm.host.transfer import zeros_beside
from tilewright.gemm.kernel.group_offsets import Groups, HostGroups
from tilewright.gemm.kernel.group_table import (
    ADDRESS,
    BIAS,
    COLUMNS,
    EXTENT,
    FIRST,
    ITERATION,
    PITCH,
    blocks_of_tile,
    whole_tile,
)
from tilewright.gemm.kernel.grouped_hopper import MAP_WORDS, MAPS
from tilewright.gemm.schedule.group_shares import GroupShares, blocks_for, least_iterations
from tilewright.gemm.schedule.launch_arguments import tensor
from tilewright.ir.tensormap import BYTES
from tilewright.lang.arguments.argument import argument_of
from tilewright.lang.arguments.streams import StreamHandle
from tilewright.lang.launch.machine import machine_of

_COMPILED: dict[Any, Any] = {}
Shape = tuple[int, int, int, int]
"""M, N, K and the number of products."""
MOST_ITERATIONS = 2**31


class TableLaunch(ABC):
    """One kernel for products whose operands have the same layouts, in a table of ``rows`` rows that ``groups`` may
    fill. The ``problems``, whose operands have those of the products in them, are turned as the configuration says."""

    groups: Groups
    rows: int
    shares: GroupShares | None = None
    """The memory of blocks that share tiles."""

    def __init__(self, problems: list[Problem], config: AnyConfig, function: EpilogueFunction, gpu: Limits) -> None:
        self.config, self.function, self.gpu = config, function, gpu
        self.machine = problems[0].machine
        self.problems = [problem.oriented(config.transposed) for problem in problems]

    @abstractmethod
    def table(self) -> tuple[Any, int]:
        """The table in the device's memory, and how many tiles the products have at most."""

    def kernel(self) -> Any:
        """What is compiled."""
        return family_of(self.config).grouped.kernel(self.config, self.groups.rows is not None)

    def arguments(self) -> tuple[Any, ...]:
        """The arguments of the kernel."""
        table, tiles = self.table()
        blocks = self.blocks(tiles, self.gpu[0] * self.config.blocks_at_once(self.gpu[1]))
        table = cute.runtime.from_dlpack(table).mark_layout_dynamic()
        arguments: tuple[Any, ...] = family_of(self.config).grouped.arguments(self, table, Int32(blocks))
        return arguments

    def run(self, stream: int | None = None) -> None:
        """Launch on ``stream``, or on the current one."""
        args = self.arguments()
        there: dict[str, Any] = {} if stream is None else {"stream": StreamHandle(stream)}
        target: Any = machine_of(self.problems[0].D.device)
        read = (argument_of("argument", x).key() for x in (self.function, self.groups))
        key = self.config, *read, self.shares is None, stream is None, states_of((self.function,))
        if key not in _COMPILED:
            _COMPILED[key] = cute.compile(self.kernel(), *args, **there)
            note_staged((self.function,), key[-1])
        # A machine that checks addresses is told which arrays there are.
        exposed = self.exposed() if self.machine == "cpu" and hasattr(target, "exposed") else []
        with ExitStack() as known:
            for low, high in exposed:
                known.enter_context(target.exposed(low, high))
            if stream is None:
                launch(_COMPILED[key], args, exposed)
            else:
                _COMPILED[key](*args, **there)

    def exposed(self) -> list[tuple[int, int]]:
        """Where the arrays begin and end whose addresses are in the table."""
        found = [matrix.array.bounds for problem in self.problems for matrix in problem.matrices]
        return found + [bounds for address, bounds in self.vectors() if address]

    def blocks(self, tiles: int, at_once: int) -> int:
        """Blocks of the launch, of which ``at_once`` run at the same time."""
        together = blocks_of_tile(self.config)
        return min(tiles, max(1, at_once // together)) * together

    def share(self, iterations: int, at_once: int) -> int:
        """The number of blocks that run at the same time for at most so many iterations; makes the memory for partial
        sums."""
        config, D = self.config, self.problems[0].D
        blocks = blocks_for(iterations, at_once, MIN_K_TILES)
        zeros, partials = zeros_beside(machine_of(D.device), D), blocks * config.tile[0] * config.tile[1]
        if is_torch(D.source):  # sums are written before they are read
            sums = D.source.new_empty(partials, dtype=config.acc_dtype.torch_dtype)
        else:
            sums = zeros(partials, config.acc_dtype)
        self.shares = GroupShares(tensor(sums), tensor(zeros(blocks, Int32)))
        return blocks

    def vectors(self) -> list[tuple[int, tuple[int, int]]]:
        """Addresses of vectors in the table, and where each begins and ends."""
        return []

    def representatives(self) -> tuple[Any, ...]:
        """A row (or column) each of A, B and D of the first problem, after whose tensor maps the kernel makes those of
        all. Offsets into a row have 32 bits, so there is one program for matrices of any size."""
        config, first = self.config, self.problems[0].read_as(self.config.a.dtype)
        rows = [
            replace(
                x, array=x.array._replace(shape=(1, x.shape[1], 1) if operand.major is Major.K else (x.shape[0], 1, 1))
            )
            for x, operand in ((first.A, config.a), (first.B.transposed(), config.b), (first.D, config.c))
        ]
        return family_of(config).tensors(config, *rows)

    def maps(self) -> Any:
        """Memory for the tensor maps of all products."""
        room = self.room(self.rows, MAPS, MAP_WORDS)
        return cute.runtime.from_dlpack(room).mark_layout_dynamic()

    def room(self, *shape: int) -> Any:
        """Memory of the device for Int64 numbers, at a multiple of 128 bytes."""
        D, count, spare = self.problems[0].D, math.prod(shape), BYTES // 8
        if is_torch(D.source):
            room = D.source.new_empty(count + spare, dtype=sys.modules["torch"].int64)
            start = -room.data_ptr() % BYTES // 8
            return room[start : start + count].view(shape)
        if D.device == "cpu":
            room = np.zeros(count + spare, np.int64)
            start = -room.ctypes.data % BYTES // 8
            return room[start : start + count].reshape(shape)
        target: Any = machine_of(D.device)  # as an allocation of its own it begins at a multiple of 256 bytes
        return target.upload(np.zeros(shape, np.int64))


class Launch(TableLaunch):
    """Problems that the host knows. ``biases`` are the addresses of their vectors, 0 for a problem without one.
    ``sharing``: the k tiles of all tiles are dealt out in even shares."""

    groups = HostGroups()

    def __init__(
        self,
        problems: list[Problem],
        entry: KernelEntry,
        function: Any,
        biases: list[int],
        gpu: Limits,
        sharing: bool = False,
    ) -> None:
        config = fastest(problems, entry, gpu, problems[0].machine, sharing)
        super().__init__(problems, config, function(config.transposed), gpu)
        self.biases, self.rows, self.sharing = biases, len(problems), sharing
        self.iterations = 0

    def blocks(self, tiles: int, at_once: int) -> int:
        """If tiles are shared: the number of blocks that run at the same time."""
        return self.share(self.iterations, at_once) if self.sharing else super().blocks(tiles, at_once)

    def vectors(self) -> list[tuple[int, tuple[int, int]]]:
        """Addresses of the biases, and where each begins and ends."""
        dtype = bias_dtype(self.function)
        mode = 0 if self.config.transposed else 1
        return [
            (address, (address, address + problem.shape[mode] * (dtype.width // 8 if dtype else 0)))
            for address, problem in zip(self.biases, self.problems, strict=True)
        ]

    def table(self) -> tuple[Any, int]:
        """The problems as the kernel reads them, and how many tiles they have."""
        bM, bN, bK = whole_tile(self.config)
        table, tiles = np.zeros((len(self.problems) + 1, COLUMNS), np.int64), 0
        for row, problem, bias in zip(table, self.problems, self.biases, strict=False):
            m, n, k, _ = problem.shape
            A, B, C, D = problem.A, problem.B.transposed(), problem.C, problem.D
            for i, (matrix, operand) in enumerate(zip((A, B, C, D), self.operands(), strict=True)):
                row[ADDRESS + i] = matrix.array.address
                row[PITCH + i] = leading_stride(matrix, operand)
            row[EXTENT : EXTENT + 3] = m, n, k
            row[FIRST], row[BIAS], row[ITERATION] = tiles, bias, self.iterations
            own = -(-m // bM) * -(-n // bN)
            tiles += own
            self.iterations += own * least_iterations(-(-k // bK))
        table[-1, FIRST], table[-1, ITERATION] = tiles, self.iterations
        if self.sharing and self.iterations >= MOST_ITERATIONS:
            raise ArgumentError(f"the problems have {self.iterations} k tiles, more than 32-bit numbers hold")
        return self.on_device(table), tiles

    def operands(self) -> tuple[Any, ...]:
        return self.config.a, self.config.b, self.config.c, self.config.c

    def on_device(self, table: Any) -> Any:
        D = self.problems[0].D
        if is_torch(D.source):
            return sys.modules["torch"].from_numpy(table).to(D.source.device, non_blocking=True)
        target: Any = machine_of(D.device)
        return target.upload(table)


def leading_stride(matrix: Any, operand: Any) -> int:
    """Elements from one row (column) to the next; where there is one only, as many as keep it aligned."""
    outer = 0 if operand.major is Major.K else 1
    step: int = matrix.stride[outer]
    return step if matrix.shape[outer] > 1 else max(operand.vector, -(-step // operand.vector) * operand.vector)


def bias_dtype(function: Any) -> Any:
    """The numeric class of the bias in an epilogue function; None where it has none."""
    return next((one.dtype for one in getattr(function, "functions", ()) if hasattr(one, "dtype")), None)


def entry_of(
    which: str, problem: Problem, entries: list[KernelEntry], version: int
) -> tuple[KernelEntry, dict[str, str]]:
    """The first kernel that takes the problem in a group, and why those before it do not; errors begin with
    ``which``."""
    passed_over: dict[str, str] = {}
    for entry in entries:
        reason = refusal(entry, problem, version)
        if reason is None:
            return entry, passed_over
        passed_over[entry.name] = reason
    reasons = "; ".join(f"kernel {name}: {reason}" for name, reason in passed_over.items()) or "the given one cannot"
    raise ArgumentError(which + reasons)


def refusal(entry: KernelEntry, problem: Problem, version: int) -> str | None:
    """Why the kernel cannot take the problem as one of a group; None where it can."""
    if entry.family.grouped is None:
        return "it takes no groups of problems"
    return entry.family.grouped.refusal(entry.sizes) or plan.refusal(entry, problem, "data_parallel", version)


def majors(problem: Problem) -> Any:
    """Which mode of each operand is contiguous. C is laid out as D, or is turned into a kind of its own."""
    A, B, C, D = problem.A, problem.B.transposed(), problem.C, problem.D
    return A.major(), B.major(), D.major(), C.major()


def fastest(problems: list[Problem], entry: KernelEntry, gpu: Limits, machine: str, sharing: bool = False) -> AnyConfig:
    """The size that takes least time for all, by the model's rates, for operands with these layouts, where blocks may
    be ``sharing`` tiles; in the simulator the one that it finishes first."""
    shapes, times = [problem.shape for problem in problems], usable_sizes(problems, entry, gpu, sharing)
    if machine == "cpu" and plan.simulated().sizes == "simulator":
        return min(times.sizes, key=lambda size: sum(simulated_work(size, shape) for shape in shapes))
    return times.fastest(np.array([shape[:3] for shape in shapes], float), sharing)


def usable_sizes(problems: list[Problem], entry: KernelEntry, gpu: Limits, sharing: bool = False) -> GroupTimes:
    """The sizes for operands with these layouts that the GPU has the shared memory for; those that have registers for
    ``sharing`` tiles, if any do."""
    family = entry.family.grouped
    return usable(family, entry, family.layouts(entry, problems), gpu, sharing)
