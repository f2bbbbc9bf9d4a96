"""``gemm_grouped``: products of different sizes in one launch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from tilewright import Int32, cute
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix, operand_of
from tilewright.gemm.choice.cost import LARGEST, k_tile_us
from tilewright.gemm.choice.registry import KernelEntry, candidates
from tilewright.gemm.config import GemmConfig, Major
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.host.plan import limits, suited_entry
from tilewright.gemm.host.problem import Problem, is_torch
from tilewright.gemm.host.scales import check_result, linear_combination
from tilewright.gemm.kernel.grouped import ADDRESS, COLUMNS, EXTENT, FIRST, PITCH, GroupedGemm
from tilewright.gemm.operators.arrays import new_result
from tilewright.lang.launch.machine import machine_of

_COMPILED: dict[Any, Any] = {}
MOST_ELEMENTS = 2**31


def gemm_grouped(
    problems: Sequence[Sequence[Any]], out: Sequence[Any] | None = None, *, alpha: float = 1.0, beta: float = 0.0,
    kernel: str | KernelEntry | None = None,
) -> list[Any]:  # fmt: skip
    """D_i = alpha * A_i @ B_i + beta * C_i for a list of problems of any sizes, in one launch.

    ``problems`` has (a, b) or (a, b, c) for each: matrices of one framework on one device, with one dtype for all.
    Results go into ``out``, or into arrays that are made. Blocks of an Ampere kernel take the tiles of all problems in
    turn, so small ones fill the GPU together. Problems whose operands lie differently (row- or column-major) need
    different kernels: there is one launch for each kind.

    Raises ArgumentError for operands that do not go together, before anything is launched.

    >>> import numpy as np
    >>> sizes = ((3, 16, 8), (70, 24, 40), (1, 8, 16))
    >>> found = gemm_grouped([(np.ones((m, k), np.float16), np.ones((k, n), np.float16)) for m, n, k in sizes])
    >>> [(d.shape, d[0, 0].item()) for d in found]
    [((3, 16), 8.0), ((70, 24), 40.0), ((1, 8), 16.0)]
    """
    made = [problem_of(i, one, None if out is None else out[i], kernel) for i, one in enumerate(checked(problems, out))]
    if not made:
        return []
    entry = ampere(candidates(made[0].A.dtype, kernel))
    for i, problem in enumerate(made):
        check_result(entry, problem)
        first = made[0]
        for name, one, other in (("a", problem.A, first.A), ("out", problem.D, first.D)):
            if (one.dtype, one.device) != (other.dtype, other.device):
                raise ArgumentError(
                    f"problem {i}: {name} is {one.dtype} on {one.device}, that of problem 0 {other.dtype} on "
                    f"{other.device}: all problems of a group have one type and device"
                )
        if beta and not problem.has_c:
            raise ArgumentError(f"problem {i}: beta = {beta} needs a matrix c")
    check_apart(made)
    function = linear_combination(entry, made[0], alpha, beta)
    kinds: dict[Any, list[Problem]] = {}
    for problem in made:
        if not problem.is_empty:
            kinds.setdefault(majors(problem), []).append(problem)
    launches = [Launch(group, entry, function) for group in kinds.values()]
    for launch in launches:
        launch.run()
    return [problem.D.source for problem in made]


class Launch:
    """One kernel for problems whose operands lie the same way."""

    def __init__(self, problems: list[Problem], entry: KernelEntry, function: LinearCombination) -> None:
        self.problems, self.function = problems, function
        self.machine = problems[0].machine
        self.config = fastest(problems, entry, limits(self.machine))

    def run(self) -> None:
        config, target = self.config, machine_of(self.problems[0].D.device)
        table, tiles = self.table()
        multiprocessors, smem = limits(self.machine)
        blocks = min(tiles, multiprocessors * config.blocks_at_once(smem))
        args = cute.runtime.from_dlpack(self.on_device(table)).mark_layout_dynamic(), Int32(tiles), Int32(blocks)
        if config not in _COMPILED:
            _COMPILED[config] = cute.compile(GroupedGemm(config), *args, self.function)
        with ExitStack() as known:
            if self.machine == "cpu":  # a machine that checks addresses is told which arrays there are
                exposed: Any = target
                for problem in self.problems:
                    for matrix in problem.matrices:
                        known.enter_context(exposed.exposed(*matrix.array.bounds))
            _COMPILED[config](*args, self.function)

    def table(self) -> tuple[Any, int]:
        """The problems as the kernel reads them, and how many tiles they have."""
        bM, bN, _ = self.config.tile
        table, tiles = np.zeros((len(self.problems) + 1, COLUMNS), np.int64), 0
        for row, problem in zip(table, self.problems, strict=False):
            m, n, k, _ = problem.shape
            A, B, C, D = problem.A, problem.B.transposed(), problem.C, problem.D
            for i, (matrix, operand) in enumerate(zip((A, B, C, D), self.operands(), strict=True)):
                row[ADDRESS + i] = matrix.array.address
                row[PITCH + i] = matrix.stride[0 if operand.major is Major.K else 1]
            row[EXTENT : EXTENT + 3] = m, n, k
            row[FIRST] = tiles
            tiles += -(-m // bM) * -(-n // bN)
        table[-1, FIRST] = tiles
        return table, tiles

    def operands(self) -> tuple[Any, ...]:
        return self.config.a, self.config.b, self.config.c, self.config.c

    def on_device(self, table: Any) -> Any:
        D = self.problems[0].D
        if is_torch(D.source):
            return sys.modules["torch"].from_numpy(table).to(D.source.device, non_blocking=True)
        target: Any = machine_of(D.device)
        return target.upload(table)


def checked(problems: Any, out: Any) -> Sequence[Any]:
    """The list, if it is one of (a, b) and (a, b, c), and ``out`` as long."""
    listed = list(problems)
    for i, one in enumerate(listed):
        if not isinstance(one, (tuple, list)) or len(one) not in (2, 3):
            raise ArgumentError(f"problem {i} must be (a, b) or (a, b, c), got {type(one).__name__}")
    if out is not None and len(out) != len(listed):
        raise ArgumentError(f"out has {len(out)} arrays for {len(listed)} problems")
    return listed


def problem_of(number: int, arrays: Sequence[Any], out: Any, kernel: Any) -> Problem:
    """One problem; errors say which of the list it is."""
    try:
        a, b, c = (*arrays, None)[:3]
        A, B = Matrix.of("a", a), Matrix.of("b", b)
        if len(a.shape) != 2 or len(b.shape) != 2:
            raise ArgumentError("a and b must be matrices (2 dimensions)")
        kind = candidates(A.dtype, kernel)[0].config.c.dtype
        if out is None:
            out = new_result(a, (A.shape[0], B.shape[1]), Matrix.of("c", c).dtype if c is not None else kind)
        problem = Problem.of(a, b, c, out)
        for matrix in problem.matrices:
            reach = sum((n - 1) * abs(d) for n, d in zip(matrix.shape, matrix.stride, strict=True) if n)
            if reach >= MOST_ELEMENTS:
                raise ArgumentError(f"{matrix.name} spans {reach} elements, more than 32-bit offsets reach")
    except ArgumentError as error:
        raise ArgumentError(f"problem {number}: {error}") from None
    return problem


def check_apart(problems: list[Problem]) -> None:
    """No result may lie where another problem reads or writes: problems run in any order."""
    writes = sorted((*problem.D.array.bounds, i) for i, problem in enumerate(problems))
    for (_, high, i), (low, _, j) in zip(writes, writes[1:], strict=False):
        if low < high:
            raise ArgumentError(f"the results of problems {i} and {j} overlap")
    for i, problem in enumerate(problems):
        low, high = problem.D.array.bounds
        for j, other in enumerate(problems):
            for matrix in (other.A, other.B, other.C) if i != j else ():
                start, end = matrix.array.bounds
                if low < end and start < high:
                    raise ArgumentError(f"the result of problem {i} overlaps {matrix.name} of problem {j}")


def ampere(entries: list[KernelEntry]) -> KernelEntry:
    """The first kernel that makes each tile in one block of its own."""
    for entry in entries:
        if isinstance(entry.config, GemmConfig) and entry.config.math != "small_m":
            return entry
    raise ArgumentError(f"kernel {entries[0].name} takes no groups of problems: kernels on mma.sync do")


def majors(problem: Problem) -> Any:
    """Which mode of each operand is contiguous. C lies as D does, or is turned into a kind of its own."""
    A, B, C, D = problem.A, problem.B.transposed(), problem.C, problem.D
    return A.major(), B.major(), D.major(), C.major()


def fastest(problems: list[Problem], entry: KernelEntry, where: tuple[int, int]) -> GemmConfig:
    """The size that takes least time for all, by the model's rates, for operands as these lie."""
    narrow = any(suited_entry(entry, problem) is not entry for problem in problems)
    entry = entry.for_narrow if narrow else entry
    multiprocessors, smem = where

    def time(config: GemmConfig) -> float:
        bM, bN, bK = config.tile
        at_once = min(2, config.blocks_at_once(smem))
        full, ends = k_tile_us(config, smem)[0] / at_once, 2.0 + 2.5 * bM * bN / LARGEST
        tiles = [(ceil(p.shape[0] / bM) * ceil(p.shape[1] / bN), ceil(p.shape[2] / bK)) for p in problems]
        total = sum(count * (k_tiles * full + ends) for count, k_tiles in tiles)
        return max(total / multiprocessors, max(k_tiles * full + ends for _, k_tiles in tiles))

    sizes = [with_operands(problems, entry.only(c)) for c in (entry.config, entry.large, *entry.small) if c is not None]
    return min((size for size in sizes if size.smem_bytes <= smem), key=time)


def with_operands(problems: list[Problem], entry: KernelEntry) -> GemmConfig:
    """The configuration with the widest accesses that all problems allow."""
    config = entry.config
    assert isinstance(config, GemmConfig)
    bM, bN, bK = config.tile
    dtype = config.a.dtype
    listed = [problem.read_as(dtype) for problem in problems]
    A, B = tuple(p.A for p in listed), tuple(p.B.transposed() for p in listed)
    results = tuple(matrix for p in listed for matrix in (p.D, p.C))
    a, b = (operand_of(x, {Major.K: bK, Major.MN: extent}) for x, extent in ((A, bM), (B, bN)))
    c = operand_of(results, {Major.K: bN, Major.MN: bM})
    found = replace(config, a=config.loadable(a), b=config.loadable(b), c=c)
    found.check()
    return found
