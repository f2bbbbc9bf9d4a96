"""Profiles: what a simulated launch executed, which memory it touched and how often the banks of shared memory
clashed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Location, Op
from tilewright.ir.runtime import LaunchConfig, RunProfile
from tilewright.ir.target import WARP
from tilewright.layout import product
from tilewright.layout.banks import lanes_together, request_wavefronts
from tilewright.reports import Row
from tilewright.sim.events import Observer, observing
from tilewright.sim.shared import RANK_SHIFT

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group

WITHIN = (1 << RANK_SHIFT) - 1
MOST_LINES = 5  # of bank conflicts in a report
KEPT = 512  # access patterns whose wavefronts are remembered
SMALL = 8192  # bytes of a pattern that is remembered from launch to launch
_request_counts: dict[tuple[int, bytes], tuple[int, int]] = {}


@dataclass
class KernelProfile:
    """One launch. ``instructions`` counts executions by warps, by mnemonic; ``requests`` and ``wavefronts`` of shared
    memory are by (verb, line): their difference is what bank conflicts cost. Bytes count active lanes only."""

    name: str
    config: LaunchConfig
    blocks: int
    seconds: float = 0.0
    instructions: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    accesses: Counter[str] = field(default_factory=Counter)
    requests: Counter[tuple[str, Location | None]] = field(default_factory=Counter)
    wavefronts: Counter[tuple[str, Location | None]] = field(default_factory=Counter)

    @property
    def bank_conflicts(self) -> int:
        """Extra wavefronts of shared memory."""
        return sum(self.wavefronts.values()) - sum(self.requests.values())

    def conflicts_by_line(self) -> dict[tuple[str, Location | None], int]:
        """Extra wavefronts by (``"load"``, ``"store"`` or ``"atomic"``, line), the worst first; only where there are
        any."""
        extra = {
            key: count - self.requests[key] for key, count in self.wavefronts.items() if count > self.requests[key]
        }
        return dict(sorted(extra.items(), key=lambda item: -item[1]))


@dataclass
class SimProfile(RunProfile):
    """The launches inside a ``with tilewright.sim.profile() as report`` block; ``kernels`` has one entry for each."""

    kernels: list[KernelProfile] = field(default_factory=list)
    progress: Callable[[float], None] | None = None
    multiply_adds: int = 0  # that the launch is known to need; 0: unknown

    def rows(self) -> list[Row]:
        lines: Counter[tuple[str, Location | None]] = Counter()
        for kernel in self.kernels:
            lines.update(kernel.conflicts_by_line())
        return [
            *super().rows(),
            *(
                (f"  {verb}", f"{extra:,} at {f'{loc.file}:{loc.line}' if loc else 'an unknown line'}")
                for (verb, loc), extra in lines.most_common(MOST_LINES)
            ),
        ]

    def add(self, kernel: KernelProfile) -> None:
        self.launches.append((kernel.name, kernel.config))
        self.kernels.append(kernel)
        self.seconds += kernel.seconds
        total = Counter(self.instructions or {}) + kernel.instructions
        self.instructions = dict(total)
        self.bank_conflicts = (self.bank_conflicts or 0) + kernel.bank_conflicts


class WavefrontCounter:
    """Counts wavefronts. Loops repeat their patterns, shifted by whole lines of banks at most: each is counted once."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, bytes], tuple[int, int]] = {}

    def count(self, offsets: np.ndarray, width: int) -> tuple[int, int]:
        """(requests, wavefronts) of one access of ``width`` bytes; ``offsets [L]``, -1: idle."""
        low = int(np.minimum.reduce(offsets))
        # A move by whole lines of 128 bytes, all banks, costs the same.
        pattern = offsets - (low & -128) if low >= 0 else offsets
        key = (width, pattern.tobytes())
        seen = self.seen if pattern.nbytes > SMALL else _request_counts
        counts = seen.get(key)
        if counts is None:
            if len(seen) >= KEPT:
                seen.clear()
            counts = seen[key] = wavefronts(pattern, width)
        return counts

    def of(self, group: Group, off: np.ndarray, access: Any, mask: Any) -> tuple[int, int]:
        """The wavefronts of one access by the active lanes of a group, at their offsets ``off``."""
        if mask is None:
            lanes = off
        else:
            lanes = np.full(group.lanes_count, -1, np.int64)
            lanes[mask] = off & WITHIN
        each, times = _repeated(lanes, group)
        if mask is None:
            each = each & WITHIN  # in whichever block of the cluster
        total = self.count(each, access.width)
        for part in range(1, access.parts):
            moved = each + part * access.width
            if mask is not None:
                moved[each < 0] = -1
            more = self.count(moved, access.width)
            total = total[0] + more[0], total[1] + more[1]
        return total[0] * times, total[1] * times

    def of_pointer(self, group: Group, pointer: Any, access: Any, mask: Any) -> tuple[int, int]:
        """The same of all lanes' offsets of a pointer. What it has in common with others that differ by a constant is
        remembered: words that all move by as many go to other banks, but clash as before."""
        if mask is not None or pointer.add % 4 or access.parts * access.width < 4:
            off = pointer.off if mask is None else pointer.off[mask]
            return self.of(group, off, access, mask)
        costs: dict[Any, tuple[int, int]] = pointer.root.costs
        key = access.width, access.parts
        cost = costs.get(key)
        if cost is None:
            cost = costs[key] = self.of(group, pointer.root.array, access, None)
        return cost


def _repeated(lanes: np.ndarray, group: Group) -> tuple[np.ndarray, int]:
    """The offsets of the first block, and how often they occur, where all blocks access the same places."""
    blocks = group.warps // group.wave.geometry.warps
    block = WARP * int(np.count_nonzero(blocks == blocks[0]))
    if lanes.size == block or lanes.size % block:
        return lanes, 1
    apart = lanes.reshape(-1, block)
    return (apart[0], len(apart)) if (apart == apart[0]).all() else (lanes, 1)


class LaunchProfiler(Observer):
    """Counts every op and access of one launch."""

    follows_issues = False

    def __init__(self, reports: Sequence[SimProfile], name: str, config: LaunchConfig) -> None:
        self.reports = reports
        self.kernel = KernelProfile(name, config, int(np.prod(config.grid)))
        self.banks = WavefrontCounter()
        self.passes: Counter[int] = Counter()  # by node: how many warps have come through
        self.watched = any(report.progress is not None for report in reports)
        self.per_warp: list[int] = []  # by node: multiply-adds of its matrix instructions, for one warp
        self.multiplied = 0
        self.tally: dict[Any, AccessCounts] = {}

    def begin(self, launch: Launch) -> None:
        self.started = time.perf_counter()
        nodes = launch.program.nodes if self.watched else []
        self.per_warp = [sum(map(multiply_adds, (*node.ops, *([node.op] if node.op else [])))) for node in nodes]

    def end(self, launch: Launch) -> None:
        """Only passes of nodes were counted while the launch ran: here they become executions of ops."""
        kernel, nodes = self.kernel, launch.program.nodes
        for number, warps in self.passes.items():
            node = nodes[number]
            for op in node.ops:
                self._executed(op, warps)
            if node.op is not None and node.op.opcode == "call":
                self._executed(node.op, warps)
        for tally in self.tally.values():
            for where, times in tally.ops:
                kernel.bytes[tally.name] += tally.bytes * times
                kernel.accesses[tally.name] += tally.accesses * times
                if tally.shared:
                    kernel.requests[where] += tally.requests * times
                    kernel.wavefronts[where] += tally.wavefronts * times
        self.kernel.seconds = time.perf_counter() - self.started
        for report in self.reports:
            report.add(self.kernel)

    def _executed(self, op: Op, warps: int) -> None:
        if op.opcode == "call":
            atom = op.attrs["atom"]
            self.kernel.instructions[atom.mnemonic()] += warps * atom.count(op)
        else:
            self.kernel.instructions[op.opcode] += warps

    def left(self, group: Group) -> None:
        if self.watched:
            self._advance(group.wave.launch)

    def entered(self, group: Group, node: int) -> None:
        mask = group.mask
        warps = group.warps.size if mask is None else int(np.count_nonzero(mask.reshape(-1, WARP).any(1)))
        self.passes[node] += warps
        if self.watched and self.per_warp[node]:
            self.multiplied += self.per_warp[node] * warps
            self._advance(group.wave.launch)

    def _advance(self, launch: Launch) -> None:
        """Tell how much of the launch is done: of its multiply-adds where their number is known, because the warps of
        a persistent kernel all end with its last tile; else of its warps."""
        warps = launch.geometry.blocks * launch.geometry.warps
        for report in self.reports:
            if report.progress is None:
                continue
            counted = report.multiply_adds > 0 and any(self.per_warp) and launch.ended < warps
            report.progress(min(1.0, self.multiplied / report.multiply_adds) if counted else launch.ended / warps)

    def access(
        self, verb: str, buffer: Any, group: Group, off: np.ndarray, access: Any, mask: Any, values: Any
    ) -> None:
        tally = self._of(verb, buffer, group)
        if tally.shared:
            tally.conflicts(self.banks.of(group, off, access, mask))
        tally.bytes += off.size * access.nbytes
        tally.accesses += off.size * access.parts

    def pointed(self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Any, values: Any) -> None:
        tally = self._of(verb, buffer, group)
        if tally.shared:
            tally.conflicts(self.banks.of_pointer(group, pointer, access, mask))
        lanes = group.lanes_count if mask is None else int(np.count_nonzero(mask))
        tally.bytes += lanes * access.nbytes
        tally.accesses += lanes * access.parts

    def pointed_together(
        self,
        verb: str,
        buffer: Any,
        group: Group,
        pointer: Any,
        distances: Sequence[int],
        access: Any,
        values: Callable[[int], Any],
    ) -> None:
        """:meth:`pointed` of all lanes for each of ``distances`` from the pointer. Whole words from each other they
        cost the same, so one is counted."""
        if any(at % 4 for at in distances):
            for at in distances:
                self.pointed(verb, buffer, group, pointer.plus(at), access, None, None)
            return
        tally, count = self._of(verb, buffer, group), len(distances)
        if tally.shared:
            requests, wavefronts = self.banks.of_pointer(group, pointer, access, None)
            tally.conflicts((requests * count, wavefronts * count))
        tally.bytes += group.lanes_count * access.nbytes * count
        tally.accesses += group.lanes_count * access.parts * count

    def loaded(self, group: Group, pointer: Any, access: Any, copies: Sequence[tuple[Op, tuple[int, ...]]]) -> None:
        """As :meth:`pointed_together` of each op: they all cost the same."""
        key = id(copies), "load", pointer.buf.word
        tally = self.tally.get(key)
        if tally is None:
            tally = self.tally[key] = AccessCounts(*key[1:], [(op, len(distances)) for op, distances in copies])
        if tally.shared:
            tally.conflicts(self.banks.of_pointer(group, pointer.plus(copies[0][1][0]), access, None))
        tally.bytes += group.lanes_count * access.nbytes
        tally.accesses += group.lanes_count * access.parts

    def _of(self, verb: str, buffer: Any, group: Group) -> AccessCounts:
        op = group.lanes.op
        key = id(op), verb, buffer.word
        counts = self.tally.get(key)
        if counts is None:
            counts = self.tally[key] = AccessCounts(verb, buffer.word, [(op, 1)])
        return counts


class AccessCounts:
    """The accesses to one kind of memory of one op, or of several that make equal ones: each with how many of them it
    makes. ``ops``: the same by verb and line."""

    __slots__ = ("name", "shared", "ops", "bytes", "accesses", "requests", "wavefronts", "made_by")

    def __init__(self, verb: str, word: str, made_by: Sequence[tuple[Op | None, int]]) -> None:
        self.name, self.shared = f"{word} {verb}", word == "shared"
        self.made_by = made_by  # the tally is kept by the ids of the ops, so they must live
        self.ops = [((verb, op.loc if op is not None else None), times) for op, times in made_by]
        self.bytes = self.accesses = self.requests = self.wavefronts = 0

    def conflicts(self, cost: tuple[int, int]) -> None:
        self.requests += cost[0]
        self.wavefronts += cost[1]


def wavefronts(offsets: np.ndarray, width: int) -> tuple[int, int]:
    """(requests, wavefronts) of one access of ``width`` bytes by whole warps; ``offsets [L]`` bytes, -1: idle."""
    costs, _ = request_wavefronts(offsets.reshape(-1, lanes_together(width)), width)
    return int(np.count_nonzero(costs)), int(costs.sum())


def multiply_adds(op: Op) -> int:
    """Multiply-adds of one execution of a matrix instruction by one warp; 0 for other ops."""
    atom = op.attrs["atom"] if op.opcode == "call" else None
    if atom is None or not atom.multiplies:
        return 0
    return int(product(atom.shape_mnk)) * int(atom.count(op)) * WARP // atom.threads


@contextmanager
def profile(progress: Callable[[float], None] | None = None, multiply_adds: int = 0) -> Iterator[SimProfile]:
    """Gather a profile of the launches inside the block; ``progress`` is called with the fraction done of each launch:
    of its ``multiply_adds`` if their number is given, else of its warps.

    >>> from tilewright.gemm import gemm
    >>> a = np.eye(32, dtype=np.float16)
    >>> with profile() as report:
    ...     _ = gemm(a, a, machine="cpu")
    >>> len(report.kernels), report.bank_conflicts
    (1, 0)
    """
    report = SimProfile(progress=progress, multiply_adds=multiply_adds)
    with observing(lambda name, config: LaunchProfiler([report], name, config)):
        yield report
