"""The decompositions of one product side by side, as CUTLASS's Stream-K example program compares them.

Every one is run, on a GPU or in the simulator, and its result compared bit by bit with a reference; on a GPU it is
timed, and everywhere it is modelled: when each block runs on which multiprocessor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.choice.registry import KERNELS
from tilewright.gemm.family import FAMILIES
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.plan import limits
from tilewright.gemm.host.scales import check_scale
from tilewright.gemm.operators.gemm import gemm, launcher
from tilewright.gemm.schedule.blocks import Block, data_parallel, split_k, stream_k
from tilewright.gemm.schedule.gantt import Costs, Schedule, schedule
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.lang.launch.machine import machine_of
from tilewright.lang.numbers.numeric import Float16
from tilewright.lang.tools.benchmark import JitArguments, benchmark

SEED = 2024


@dataclass(frozen=True)
class Variant:
    """A decomposition of the comparison: ``how`` is what :func:`gemm` takes, ``blocks`` what the model times;
    ``against`` names the variant that its speed-up refers to."""

    name: str
    how: str | StreamK | SplitK
    blocks: list[Block]
    against: str | None = None


@dataclass(frozen=True)
class Outcome:
    """A variant's result: whether it was equal to the reference, the modelled schedule, the time on a GPU."""

    variant: Variant
    passed: bool
    schedule: Schedule
    seconds: float | None

    @property
    def us(self) -> float:
        """The time that counts: measured on a GPU, else modelled."""
        return self.seconds * 1e6 if self.seconds is not None else self.schedule.time


class Decompositions:
    """One product in each decomposition, by the model alone.

    ``sms`` multiprocessors with ``smem`` bytes of shared memory for a block are planned for, of which Stream-K balances
    over ``available``; ``occupancy`` blocks fit on each (by default what registers and shared memory allow). ``split``
    is the factor of split-K; with ``only_split`` there are only the two variants that split K.
    """

    def __init__(
        self,
        problem: tuple[int, int, int],
        entry: KernelEntry,
        *,
        sms: int,
        smem: int,
        split: int = 2,
        only_split: bool = False,
        available: int | None = None,
        occupancy: int | None = None,
    ) -> None:
        self.problem, self.entry = problem, entry
        config = entry.config
        (m, n, k), (bM, bN, bK) = problem, config.tile
        self.sms, self.occupancy = sms, occupancy or config.blocks_at_once(smem)
        self.tiles, self.k_tiles = -(-m // bM) * -(-n // bN), -(-k // bK)

        def plan(**numbers: Any) -> StreamK:
            return StreamK.of(
                problem,
                config.tile,
                multiprocessors=self.sms,
                occupancy=self.occupancy,
                fragments=config.fragments,
                **numbers,
            )

        default, alone, split_plan = plan(available=available), plan(available=1), plan(split=split)
        basic, basic_split = "Basic data-parallel GEMM", f"Basic split-K GEMM with tile-splitting factor {split}"
        self.variants = [
            Variant(basic, "data_parallel", data_parallel(self.tiles, self.k_tiles)),
            Variant("StreamK GEMM with default load-balancing", default, stream_k(default), basic),
            Variant("StreamK emulating basic data-parallel GEMM", alone, stream_k(alone), basic),
            Variant(basic_split, SplitK(split), split_k(self.tiles, self.k_tiles, split)),
            Variant(
                f"StreamK emulating Split-K GEMM with tile-splitting factor {split}",
                split_plan,
                stream_k(split_plan),
                basic_split,
            ),
        ]
        if only_split:
            self.variants = self.variants[3:]
        self.costs = self.costs_of(config, smem)

    def costs_of(self, config: Any, smem: int) -> Costs:
        """Microseconds of a k tile, of handing over a tile's sums, and of writing a tile."""
        several = max(len(variant.blocks) for variant in self.variants) > self.sms
        k_tile, exchange, epilogue = self.entry.family.piece_costs(config, smem, several)
        return Costs(k_tile=k_tile, exchange=exchange, epilogue=epilogue)

    def schedule(self, variant: Variant) -> Schedule:
        """When each block of a variant runs on which multiprocessor."""
        return schedule(variant.blocks, self.sms, self.occupancy, self.costs)


class Comparison(Decompositions):
    """``D = alpha * A @ B + beta * C`` of small integers in float16, in each decomposition; on a GPU, or in the
    simulator.

    ``sms`` are by default those of the GPU, or 132; ``tile`` is the kernel's; ``scales`` are alpha and beta. A given
    ``split`` leaves the two variants that split K; without it their factor is 2.
    """

    def __init__(
        self,
        problem: tuple[int, int, int],
        *,
        machine: str = "cpu",
        sms: int | None = None,
        tile: tuple[int, int, int] | None = None,
        split: int | None = None,
        scales: tuple[float, float] = (1.0, 0.0),
        available: int | None = None,
        occupancy: int | None = None,
        kernel: str = "tensorop_f16",
    ) -> None:
        for name, scale in zip(("alpha", "beta"), scales, strict=True):
            check_scale(name, scale)
        self.machine, self.scales = machine, scales
        here, smem = limits(machine)
        entry = entry_of(kernel, tile)
        super().__init__(
            problem,
            entry,
            sms=sms or here,
            smem=smem,
            split=2 if split is None else split,
            only_split=split is not None,
            available=available,
            occupancy=occupancy,
        )

    def run(self, iterations: int = 10, progress: Callable[[float], None] | None = None) -> Iterator[Outcome]:
        """Each variant's outcome; on a GPU the average time of ``iterations`` launches."""
        m, n, k = self.problem
        rng = np.random.default_rng(SEED)
        a, b, added = (rng.integers(-2, 3, s, np.int8).astype(np.float16) for s in ((m, k), (k, n), (m, n)))
        # Sums of products of small integers are exact in float32, in whatever order.
        (alpha, beta), sums = self.scales, a.astype(np.float32) @ b.astype(np.float32)
        exact = alpha * sums.astype(np.float64) + beta * added.astype(np.float64)
        expected = exact.astype(np.float16)
        # Parts of K that are added up in D are rounded to float16 each, with scales that are not small integers.
        largest = abs(alpha) * (np.abs(a).astype(np.float32) @ np.abs(b).astype(np.float32)) + abs(beta) * np.abs(added)
        slack = 0.0 if self.scales == (1.0, 0.0) else 2 * np.spacing(largest.astype(np.float16)).astype(np.float64)
        c: Any = added if beta else None
        for number, variant in enumerate(self.variants):

            def part(fraction: float, number: int = number) -> None:
                if progress is not None:
                    progress((number + fraction) / len(self.variants))

            report = gemm(
                a,
                b,
                c,
                alpha=alpha,
                beta=beta,
                kernel=self.entry,
                machine=self.machine,
                decomposition=variant.how,
                progress=part,
            )
            near = np.abs(report.d.astype(np.float64) - expected) <= slack
            passed = bool(((report.d == expected) | near).all())
            seconds = self.time(a, b, c, variant, iterations) if self.machine == "gpu" else None
            yield Outcome(variant, passed, self.schedule(variant), seconds)

    def time(self, a: Any, b: Any, c: Any, variant: Variant, iterations: int) -> float:
        """Seconds of a launch, on average, as the example program has it: one after the other on the same arrays."""
        target: Any = machine_of("cuda")
        left, right, out = (target.upload(x) for x in (a, b, np.zeros(self.problem[:2], np.float16)))
        (alpha, beta), source = self.scales, None if c is None else target.upload(c)
        launch = launcher(
            left, right, out, source, alpha=alpha, beta=beta, kernel=self.entry, decomposition=variant.how
        )
        arguments = JitArguments(left, right, out)
        return 1e-6 * benchmark(
            lambda *_: launch(), warmup_iterations=2, iterations=iterations, kernel_arguments=arguments
        )


def entry_of(name: str, tile: tuple[int, int, int] | None) -> KernelEntry:
    """A kernel of float16 whose single blocks may share tiles, in one size."""
    families = FAMILIES["tensorop"], FAMILIES["wgmma"]
    fitting = {n: e for n, e in KERNELS.items() if e.family in families and e.accepts(Float16)}
    if name not in fitting:
        raise ArgumentError(f"there is no kernel {name!r} of float16 that is compared; there are {', '.join(fitting)}")
    entry = fitting[name]
    if tile is None:
        return entry.only(entry.config)
    if entry.family is FAMILIES["wgmma"]:
        sizes = [size for size in entry.sizes if size.tile == tile and entry.family.may_share(size)]
        if not sizes:
            raise ArgumentError(f"kernel {name} has no size of tile {tile} whose single blocks can share tiles")
        return entry.only(sizes[0])
    config = replace(entry.config, tile=tile)
    config.check()
    return entry.only(config)
