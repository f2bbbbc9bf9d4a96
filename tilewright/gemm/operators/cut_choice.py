"""What is chosen for groups that offsets on the device cut: by the extent that is cut, whatever the offsets are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.simulated import simulated_work
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.group_times import GroupTimes
from tilewright.gemm.family.plan_options import Limits
from tilewright.gemm.host.plan import simulated
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.kernel.group_offsets import MODES
from tilewright.gemm.kernel.group_table import whole_tile
from tilewright.gemm.operators.group_launch import usable_sizes
from tilewright.gemm.operators.rows import planned_rows

Extents = tuple[int, int, int]


@dataclass(frozen=True)
class CutChoice:
    """The choice for ``groups`` groups that cut ``mode`` of (M, N, K), as a function of the cut extent. It holds no
    array, so that calls with other extents can ask it (``host.recorded.decided``)."""

    times: GroupTimes
    extents: Extents
    mode: int
    groups: int
    bytes: Extents
    """Of an element of A, of B and of D, times the matrices that each is a stack of."""
    gpu: Limits
    sharing: bool
    simulated: bool
    """Whether the size is the one that the simulator finishes first."""
    plans: dict[int, tuple[AnyConfig, int]] = field(default_factory=dict, compare=False)
    """What :meth:`launched` has said, by what is planned for."""

    @classmethod
    def of(
        cls, problem: Problem, mode: int, groups: int, entry: KernelEntry, gpu: Limits, sharing: bool = False
    ) -> CutChoice:
        times = usable_sizes(any_begin(problem, mode), entry, gpu, sharing)
        a, b, d = (math.prod(x.shape[2:]) * x.dtype.bytes for x in (problem.A, problem.B, problem.D))
        simulator = problem.machine == "cpu" and simulated().sizes == "simulator"
        return cls(times, problem_extents(problem), mode, groups, (a, b, d), gpu, sharing, simulator)

    def config(self, extent: int) -> AnyConfig:
        """The size; in the simulator the one that it finishes first if groups are equal."""
        extents = with_extent(self.extents, self.mode, planned_rows(extent))
        if self.simulated:
            m, n, k = with_extent(extents, self.mode, -(-extents[self.mode] // self.groups))
            return min(self.times.sizes, key=lambda size: simulated_work(size, (m, n, k, 1)))
        (m, n, k), (of_a, of_b, of_d) = extents, self.bytes
        read, written = of_a * m * k + of_b * k * n, of_d * m * n
        return self.times.fastest_cut(extents, self.mode, self.groups, read, written, self.sharing)

    def launched(self, extent: int) -> tuple[AnyConfig, int]:
        """What a launch depends on beside the extent: the size, and the blocks of which each has tiles of its own."""
        planned = planned_rows(extent)
        if planned not in self.plans:
            self.plans[planned] = self.planned(planned)
        return self.plans[planned]

    def planned(self, extent: int) -> tuple[AnyConfig, int]:
        """:meth:`launched` for an extent that is planned for."""
        config = self.config(extent)
        m, n, k = with_extent(self.extents, self.mode, extent)
        extents, mode = ((n, m, k), (1, 0, 2)[self.mode]) if config.transposed else ((m, n, k), self.mode)
        at_once = self.gpu[0] * config.blocks_at_once(self.gpu[1])
        return config, min(most_tiles(config, extents, mode, self.groups), at_once)


def most_tiles(config: AnyConfig, extents: Extents, mode: int, groups: int) -> int:
    """Tiles of ``groups`` groups that cut ``mode`` of ``extents``, both as the kernel sees them, at most. What belongs
    to no group is one more where that is not K."""
    m, n = (-(-extent // size) for extent, size in zip(extents[:2], whole_tile(config), strict=False))
    if mode == 2:
        return m * n * groups
    return (m + groups + 1) * n if mode == 0 else m * (n + groups + 1)  # each may have a tile that is not full


def problem_extents(problem: Problem) -> Extents:
    """M, N and K of the whole matrices."""
    return problem.D.shape[0], problem.D.shape[1], problem.A.shape[1]


def with_extent(extents: Extents, mode: int, extent: int) -> Extents:
    """The extents with another one of a mode."""
    m, n, k = (extent if i == mode else other for i, other in enumerate(extents))
    return m, n, k


def any_begin(problem: Problem, mode: int) -> list[Problem]:
    """The product, and what is left of it where a group begins at the second element of the mode: how both are laid out
    says which accesses are aligned wherever a group begins."""
    if problem_extents(problem)[mode] < 2:
        return [problem]

    def cut(matrix: Matrix, modes: tuple[int, int]) -> Matrix:
        if mode not in modes:
            return matrix
        at, array = modes.index(mode), matrix.array
        shape = tuple(n - (i == at) for i, n in enumerate(array.shape))
        address = array.address + array.stride[at] * array.dtype.bytes
        return replace(matrix, array=array._replace(address=address, shape=shape))

    A, B, D = cut(problem.A, MODES[0]), cut(problem.B.transposed(), MODES[1]).transposed(), cut(problem.D, MODES[2])
    return [problem, Problem(A, B, D, D, False)]
