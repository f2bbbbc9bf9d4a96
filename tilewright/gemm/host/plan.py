"""The plan of a product: the kernel in a size that suits the operands' layouts, and the decomposition.

Read on in :meth:`Plan.of`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.access import aligned_elements
from tilewright.gemm.choice.choose import KernelOptions, best, size_to_share
from tilewright.gemm.choice.simulated import for_simulator, in_order_of_simulation
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.hopper_cost import FIXED_US
from tilewright.gemm.family.plan_options import Limits
from tilewright.gemm.family.suited import suited_entry, with_operands
from tilewright.gemm.host.packing import Packing
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.sharing import checked, shares_tiles
from tilewright.gemm.kernel.reduce import ReduceSplitK
from tilewright.gemm.schedule.shared_units import SharedUnits
from tilewright.gemm.schedule.sm90_streamk import StreamKScheduleSm90
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.ir.target import MOST_GRID, architecture
from tilewright.lang.device.smem import get_smem_capacity_in_bytes
from tilewright.lang.tools.hardware import HardwareInfo, clusters_at_once

OWN_TILES = ("auto", "data_parallel", "dynamic")  # decompositions whose blocks need not share tiles
Decomposition = str | StreamK | SplitK | StreamKScheduleSm90
"""The values of the user's ``decomposition``."""

MUCH_FASTER = 0.85
"""Operands are copied only if the estimated time falls to this fraction: the estimates of two kernels are no more
accurate than that."""


@dataclass(frozen=True)
class Plan:
    """``config``: what is compiled. ``shares``: the plan of Stream-K or split-K; None if each tile has a block of its
    own. ``dynamic``: blocks draw tiles at run time. ``numbered``: the user gave ``shares``, whose numbers of blocks and
    tiles are kept. ``passed_over``: the kernels that cannot take these operands, with the reason. ``packing``: the
    matrices that are copied so that this kernel can take them."""

    entry: KernelEntry
    config: AnyConfig
    shares: StreamK | SharedUnits | SplitK | None
    multiprocessors: int
    passed_over: dict[str, str]
    dynamic: bool = False
    reduction: str = "mixed"
    packing: Packing | None = None
    numbered: bool = False

    @classmethod
    def of(
        cls,
        problem: Problem,
        entries: list[KernelEntry],
        decomposition: Decomposition,
        machine: str,
        reduction: str | None = None,
        split: int = 1,
        available: int = -1,
        may_pack: str = "",
    ) -> Plan:
        """The plan with the first of ``entries`` that can take the operands, in the best size for the problem.

        ``reduction``: how blocks that share a tile add up; None: as the decomposition says. ``split`` and ``available``
        are Stream-K's (:meth:`StreamK.of`; -1: all multiprocessors). ``may_pack``: the matrices of A, B, C, D that may
        be copied to aligned rows, if another kernel is then faster in spite of it (:meth:`Packing.allowed`)."""
        gpu = limits(machine)
        decomposition = checked(decomposition, reduction, split, available, problem.shape[3])
        quick_to_simulate = machine == "cpu" and simulated().sizes == "simulator"
        # The kernel that is fastest on a GPU can take ten times as long to simulate, with the same result.
        if quick_to_simulate and decomposition in ("auto", "data_parallel"):
            entries = in_order_of_simulation(entries)
        candidate, passed_over = first_taker(entries, problem, decomposition, capability_of(machine), reduction)
        suited = suited_entry(candidate, problem)
        if isinstance(decomposition, StreamKScheduleSm90):
            return cls.scheduled(decomposition, suited, problem, passed_over, reduction)
        if isinstance(decomposition, SplitK):
            return cls.split(decomposition, suited, problem, gpu, passed_over)
        numbers = (split, available) != (1, -1)  # for Stream-K; the callers refuse them for other decompositions
        if numbers:
            # The cost model compares only its own plans. So choose a size first, then make the plan for it.
            entry = size_to_share(suited, problem.shape, gpu)
            shares = shares_of(entry.config, problem, gpu, split, available)
        elif quick_to_simulate and decomposition in OWN_TILES:
            how = "dynamic" if decomposition == "dynamic" else "data_parallel"
            entry, shares = best(for_simulator(suited, problem.shape, gpu), how, problem.shape, gpu)
        else:
            entry, shares = best(suited, decomposition, problem.shape, gpu, reduction)
        check_reduction(entry, shares, problem, decomposition, reduction, split, available)
        if may_pack and passed_over and not numbers:
            others = [e for e in entries if e.name in passed_over]
            packed = cls.packed(problem, others, decomposition, machine, reduction, suited, may_pack)
            if packed is not None:
                return replace(packed, passed_over=passed_over)
        numbered = isinstance(decomposition, StreamK) or numbers
        plan = cls(
            entry,
            with_operands(entry, problem),
            added_up(shares, reduction),
            gpu[0],
            passed_over,
            decomposition == "dynamic",
            adds_up(reduction),
            None,
            numbered,
        )
        return plan if numbered or shares is None else plan.renumbered()

    @classmethod
    def packed(
        cls,
        problem: Problem,
        entries: list[KernelEntry],
        decomposition: Decomposition,
        machine: str,
        reduction: str | None,
        otherwise: KernelEntry,
        may_pack: str,
    ) -> Plan | None:
        """The plan with the first of ``entries``, which were passed over, that can take the problem if matrices are
        copied to aligned rows; None if that is not faster than the kernel ``otherwise`` without copies."""
        gpu = limits(machine)
        for entry in entries:
            packing = packing_for(entry, problem, decomposition, machine, reduction, may_pack)
            if packing is None:
                continue
            seen = packing.placed(problem)
            # The cost model estimates: only a clear advantage is worth the copies.
            there = KernelOptions.of(entry, gpu).least_us(seen.shape, decomposition) + packed_us(packing)
            if there > MUCH_FASTER * KernelOptions.of(otherwise, gpu).least_us(problem.shape, decomposition):
                return None
            return replace(cls.of(seen, [entry], decomposition, machine, reduction), packing=packing)
        return None

    @classmethod
    def with_copies(
        cls, problem: Problem, entry: KernelEntry, decomposition: Decomposition, machine: str, may_pack: str = "ABCD"
    ) -> Plan:
        """The plan with ``entry`` on matrices that are copied to aligned rows. ArgumentError if the kernel cannot take
        them even so, or if no matrix has to be copied."""
        packing = packing_for(entry, problem, decomposition, machine, None, may_pack)
        if packing is None:
            raise ArgumentError(f"copies of {problem.describe()} do not help kernel {entry.name}")
        return replace(cls.of(packing.placed(problem), [entry], decomposition, machine), packing=packing)

    @classmethod
    def split(cls, how: SplitK, entry: KernelEntry, problem: Problem, gpu: Limits, passed_over: dict[str, str]) -> Plan:
        """The plan of split-K: every tile in ``how.slices`` slices, at most one for each k tile. The size is the best
        one for a batch of that many products with their part of K."""
        m, n, k, _ = problem.shape
        # Sizes whose clusters share K already, or whose warpgroups take turns at tiles, cannot split K.
        single = tuple(c for c in entry.small if c.cluster_k == 1 and not c.pingpong)
        part = m, n, max(1, -(-k // how.slices)), how.slices
        named_entry = entry
        entry, _ = best(replace(entry, small=single), "data_parallel", part, gpu)
        config = with_operands(entry, problem)
        # A slice without a k tile would only wait for its turn and add zeros.
        slices = max(1, min(how.slices, -(-k // config.tile[2])))
        if config.cluster_k > 1:
            raise ArgumentError(f"the kernel splits K within clusters (cluster_k = {config.cluster_k}) already")
        if slices > MOST_GRID[1]:
            raise ArgumentError(f"split-K of {slices} slices: a grid has room for {MOST_GRID[1]}")
        rows = n if config.transposed else m
        if how.mode == "parallel" and rows > ReduceSplitK.MOST_ROWS:
            raise ArgumentError(f"parallel split-K of {rows} rows: its second kernel takes {ReduceSplitK.MOST_ROWS}")
        if how.mode != "cluster":
            return cls(entry, config, SplitK(slices, how.mode), gpu[0], passed_over)
        if not named_entry.small and config.cluster != (1, 1):  # the one size that was asked for
            raise ArgumentError(
                "the blocks of a cluster share K in split-K of mode 'cluster', and operands in the cluster "
                f"{config.cluster} of this size: take a cluster of (1, 1)"
            )
        config = entry.family.in_clusters(config, slices)
        config.check()
        return cls(entry.only(config), config, None, gpu[0], passed_over)

    @classmethod
    def scheduled(
        cls,
        how: StreamKScheduleSm90,
        entry: KernelEntry,
        problem: Problem,
        passed_over: dict[str, str],
        reduction: str | None,
    ) -> Plan:
        """The plan of CUTLASS's Stream-K schedule for Hopper, in the size that has its tiles and clusters, and with its
        order of tiles."""
        if reduction is None and how.reduction_mode == "Nondeterministic" and shares_tiles(how):
            reduction = "atomic"
        band = 1 << how.persistent.log_swizzle_size
        raster = "m" if how.persistent.along_n else "n"  # along which mode a band is ``band`` clusters wide
        # The schedule's numbers follow from the tile and the cluster: only a size with the same ones can run it.
        for option in (entry.config, *entry.small):
            if option.cluster != how.persistent.cluster_mn:
                continue
            m, n, k, batch = problem.oriented(option.transposed).shape
            bM, bN, bK = option.cluster_tile
            tiles = tuple(-(-extent // size) for extent, size in ((m, bM), (n, bN)))
            if (*tiles, batch, -(-k // bK)) == (*how.persistent.clusters_mnl, how.tiles_per_output_tile):
                chosen = entry.only(replace(option, raster=raster, group=band))
                shares = added_up(how.units, reduction) if how.units.sk_blocks else None
                if shares is not None and (option.pingpong or option.cluster_k > 1):
                    continue
                config = with_operands(chosen, problem)
                return cls(chosen, config, shares, how.wave, passed_over, False, adds_up(reduction))
        raise ArgumentError(
            f"the schedule is for {how.persistent.clusters_mnl} clusters {how.persistent.cluster_mn} of tiles with "
            f"{how.tiles_per_output_tile} k tiles; no size of kernel {entry.name} cuts {problem.describe()} into these"
        )

    def renumbered(self) -> Plan:
        """The same plan with the library's numbering of blocks and tiles, and without reduction blocks."""
        assert isinstance(self.shares, StreamK)
        shares = replace(self.shares, reduction_blocks=0, remap_block_indices=False)
        return replace(self, shares=shares, numbered=False)

    @property
    def decomposition(self) -> str:
        if isinstance(self.shares, SplitK) or self.config.cluster_k > 1:
            return "split_k"
        if self.shares is not None:
            return "stream_k"
        return "dynamic" if self.dynamic else "data_parallel"


def first_taker(
    entries: list[KernelEntry], problem: Problem, decomposition: Decomposition, version: int, reduction: str | None
) -> tuple[KernelEntry, dict[str, str]]:
    """The first kernel that can take the operands, and why those before it cannot. ArgumentError if no kernel can."""
    passed_over: dict[str, str] = {}
    for entry in entries:
        entry.check()
        reason = refusal(entry, problem, decomposition, version, reduction)
        if reason is None:
            return entry, passed_over
        passed_over[entry.name] = reason
    raise ArgumentError("; ".join(f"kernel {name}: {reason}" for name, reason in passed_over.items()))


def check_reduction(
    entry: KernelEntry,
    shares: StreamK | None,
    problem: Problem,
    decomposition: Decomposition,
    reduction: str | None,
    split: int,
    available: int,
) -> None:
    """ArgumentError if a reduction was asked for and no blocks share a tile, or if the reduction is "none" and clusters
    split K."""
    if reduction == "none" and entry.config.cluster_k > 1:
        raise ArgumentError(f"reduction 'none' with clusters that split K (cluster_k = {entry.config.cluster_k})")
    shared = shares is not None and (shares.cuts_tiles or decomposition != "stream_k")
    if reduction in (None, "none") or shared:
        return
    numbers = f" with split = {split}, avail_sms = {available}" if (split, available) != (1, -1) else ""
    raise ArgumentError(
        f"reduction {reduction!r} says how blocks that share a tile add up, and kernel {entry.name}{numbers} shares no "
        f"tile of {problem.describe()}: leave it out, or give a StreamK whose blocks share tiles"
    )


def packing_for(
    entry: KernelEntry,
    problem: Problem,
    decomposition: Decomposition,
    machine: str,
    reduction: str | None,
    may_pack: str,
) -> Packing | None:
    """The copies, among the allowed ones, with which the kernel can take the problem; None if it cannot."""
    packing = Packing.of(problem, entry)
    if packing is None or not packing.allowed(may_pack):
        return None
    refused = refusal(entry, packing.placed(problem), decomposition, capability_of(machine), reduction)
    return packing if refused is None else None


def kernel_of_gpu(
    problem: Problem, entries: list[KernelEntry], decomposition: Decomposition, reduction: str | None, plan: Plan
) -> str:
    """The name of the kernel that a GPU like the simulated one would get; empty where it is the plan's."""
    taken = (e for e in entries if refusal(e, problem, decomposition, capability_of("cpu"), reduction) is None)
    name = next(taken, plan.entry).name
    return "" if name == plan.entry.name else name


def packed_us(packing: Packing) -> float:
    """Microseconds that copies of operands add to a product."""
    return FIXED_US + packing.microseconds


def limits(machine: str) -> Limits:
    """(multiprocessors, shared memory of a block in bytes) of the GPU, or of the one that the simulator stands for."""
    if machine == "cpu":
        return simulated().sms, get_smem_capacity_in_bytes(simulated().arch or "sm_90a")
    return _limits_of_gpu()


def simulated() -> Any:
    """The simulator's options."""
    return import_module("tilewright.sim.settings").current_options()


def simulated_gpu() -> tuple[Any, ...]:
    """The options of the simulator that plans depend on."""
    options = simulated()
    return options.arch, options.sms, options.sizes


@cache
def _limits_of_gpu() -> tuple[int, int]:
    info = HardwareInfo()
    return info.get_device_multiprocessor_count(), info.get_shared_memory_per_block()


def capability_of(machine: str) -> int:
    """The compute capability, 90 for sm_90."""
    if machine == "cpu":
        return architecture(simulated().arch or "sm_90a", bare=True).capability
    return _arch_of_gpu()


@cache
def _arch_of_gpu() -> int:
    major, minor = HardwareInfo().get_compute_capability()
    return 10 * major + minor


def shares_of(config: AnyConfig, problem: Problem, gpu: Limits, split: int, available: int) -> StreamK | None:
    """Stream-K's plan with ``split`` blocks a tile, or balanced over ``available`` multiprocessors; its workers are
    clusters if the size has clusters."""
    m, n, k, batch = problem.oriented(config.transposed).shape
    if batch != 1 or k == 0:
        return None
    size = config.cluster_size
    workers = clusters_at_once(gpu[0], size)
    plan = StreamK.of(
        (m, n, k),
        config.cluster_tile,
        multiprocessors=workers,
        occupancy=config.blocks_at_once(gpu[1]),
        split=split,
        fragments=config.fragments,
        available=None if available == -1 else max(1, min(available // size, workers)),
    )
    if size > 1:
        plan = replace(plan, reduction_blocks=0)  # they are single blocks
    return plan if plan.sk_tiles else None


def added_up(shares: Any, reduction: str | None) -> Any:
    """A plan of shared tiles, if there is one, whose sums come together as ``reduction`` says: None leaves that to the
    plan, "mixed" which blocks add up, always in the same order."""
    if shares is None or reduction is None:
        return shares
    if reduction == "shared":
        return replace(shares, shared_reduction=True, **({"reduction_blocks": 0} if shares.reduction_blocks else {}))
    return replace(shares, shared_reduction=False)


def adds_up(reduction: str | None) -> str:
    """The reduction that a kernel is compiled with, if the plan does not have another."""
    return "mixed" if reduction in (None, "none") else str(reduction)


def alignment_of(entry: KernelEntry, problem: Problem) -> list[tuple[str, int, int]]:
    """(operand, elements of one access that the kernel needs, elements that its memory allows) of each operand."""
    return [
        (name, access.step // matrix.dtype.bytes, aligned_elements(matrix, major, access.whole))
        for name, access, matrix, major in entry.family.accesses(entry.config, problem)
    ]


def refusal(
    entry: KernelEntry, problem: Problem, decomposition: Decomposition, version: int, reduction: str | None = None
) -> str | None:
    """Why the kernel cannot multiply these operands on a GPU of compute capability ``version``; None where it can."""
    return entry.family.refusal(entry.sizes, problem, decomposition, version, reduction)
