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
from tilewright.layout.banks import lanes_together, request_wavefronts
from tilewright.sim.events import Observer, observing
from tilewright.sim.geometry import WARP
from tilewright.sim.shared import RANK_SHIFT

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group

WITHIN = (1 << RANK_SHIFT) - 1
KEPT = 512  # access patterns whose wavefronts are remembered


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

    def add(self, kernel: KernelProfile) -> None:
        self.launches.append((kernel.name, kernel.config))
        self.kernels.append(kernel)
        self.seconds += kernel.seconds
        total = Counter(self.instructions or {}) + kernel.instructions
        self.instructions = dict(total)
        self.bank_conflicts = (self.bank_conflicts or 0) + kernel.bank_conflicts


class Banks:
    """Counts wavefronts. Loops repeat their patterns, shifted by whole lines of banks at most: each is counted once."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, bytes], tuple[int, int]] = {}

    def count(self, offsets: np.ndarray, width: int) -> tuple[int, int]:
        """(requests, wavefronts) of one access of ``width`` bytes; ``offsets [L]``, -1: idle."""
        low = int(offsets.min())
        pattern = offsets - (low & -128) if low >= 0 else offsets
        key = (width, pattern.tobytes())
        found = self.seen.get(key)
        if found is None:
            if len(self.seen) >= KEPT:
                self.seen.clear()
            found = self.seen[key] = wavefronts(pattern, width)
        return found

    def of(self, group: Group, off: np.ndarray, access: Any, mask: Any) -> tuple[int, int]:
        """Those of one access by the active lanes of a group, at their offsets ``off``."""
        lanes = np.full(group.lanes_count, -1, np.int64)
        lanes[slice(None) if mask is None else mask] = off & WITHIN  # in whichever block of the cluster
        each, times = _repeated(lanes, group)
        total = np.zeros(2, np.int64)
        for part in range(access.parts):
            moved = each + part * access.width
            if mask is not None:
                moved[each < 0] = -1
            total += self.count(moved, access.width)
        return int(total[0]) * times, int(total[1]) * times

    def of_pointer(self, group: Group, pointer: Any, access: Any, mask: Any) -> tuple[int, int]:
        """The same of all lanes' offsets of a pointer. What it has in common with others that differ by a constant is
        remembered: words that all move by as many go to other banks, but clash as before."""
        if mask is not None or pointer.add % 4 or access.parts * access.width < 4:
            off = pointer.off if mask is None else pointer.off[mask]
            return self.of(group, off, access, mask)
        known: dict[Any, tuple[int, int]] = pointer.root.costs
        key = access.width, access.parts
        found = known.get(key)
        if found is None:
            found = known[key] = self.of(group, pointer.root.array, access, None)
        return found


def _repeated(lanes: np.ndarray, group: Group) -> tuple[np.ndarray, int]:
    """The offsets of the first block, and how often they stand there, where all blocks access the same places."""
    blocks = group.warps // group.wave.geometry.warps
    block = WARP * int(np.count_nonzero(blocks == blocks[0]))
    if lanes.size == block or lanes.size % block:
        return lanes, 1
    apart = lanes.reshape(-1, block)
    return (apart[0], len(apart)) if (apart == apart[0]).all() else (lanes, 1)


class Watch(Observer):
    """Hears of every op and access of one launch."""

    def __init__(self, reports: Sequence[SimProfile], name: str, config: LaunchConfig) -> None:
        self.reports = reports
        self.kernel = KernelProfile(name, config, int(np.prod(config.grid)))
        self.banks = Banks()
        self.executions: dict[int, list[Any]] = {}  # by the op's id: the op, and how many warps have executed it

    def begin(self, launch: Launch) -> None:
        self.started = time.perf_counter()

    def end(self, launch: Launch) -> None:
        for op, warps in self.executions.values():
            atom = op.attrs["atom"] if op.opcode == "call" else None
            if atom is None:
                self.kernel.instructions[op.opcode] += warps
            else:
                self.kernel.instructions[atom.mnemonic()] += warps * atom.count(op)
        self.kernel.seconds = time.perf_counter() - self.started
        for report in self.reports:
            report.add(self.kernel)

    def left(self, group: Group) -> None:
        launch = group.wave.launch
        for report in self.reports:
            if report.progress is not None:
                report.progress(launch.ended / (launch.geometry.blocks * launch.geometry.warps))

    def executed(self, group: Group, op: Op) -> None:
        mask = group.mask
        warps = group.warps.size if mask is None else int(np.count_nonzero(mask.reshape(-1, WARP).any(1)))
        known = self.executions.get(id(op))
        if known is None:
            self.executions[id(op)] = [op, warps]
        else:
            known[1] += warps

    def access(
        self, verb: str, buffer: Any, group: Group, off: np.ndarray, access: Any, mask: Any, values: Any
    ) -> None:
        cost = self.banks.of(group, off, access, mask) if buffer.word == "shared" else None
        self._count(f"{buffer.word} {verb}", verb, group, off.size, access, cost)

    def pointed(self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Any) -> None:
        cost = self.banks.of_pointer(group, pointer, access, mask) if buffer.word == "shared" else None
        lanes = group.lanes_count if mask is None else int(np.count_nonzero(mask))
        self._count(f"{buffer.word} {verb}", verb, group, lanes, access, cost)

    def _count(
        self, key: str, verb: str, group: Group, lanes: int, access: Any, cost: tuple[int, int] | None
    ) -> None:
        self.kernel.bytes[key] += lanes * access.nbytes
        self.kernel.accesses[key] += lanes * access.parts
        if cost is not None:
            op = group.lanes.op
            where = (verb, op.loc if op is not None else None)
            self.kernel.requests[where] += cost[0]
            self.kernel.wavefronts[where] += cost[1]


def wavefronts(offsets: np.ndarray, width: int) -> tuple[int, int]:
    """(requests, wavefronts) of one access of ``width`` bytes by whole warps; ``offsets [L]`` bytes, -1: idle."""
    costs, _ = request_wavefronts(offsets.reshape(-1, lanes_together(width)), width)
    return int(np.count_nonzero(costs)), int(costs.sum())


@contextmanager
def profile(progress: Callable[[float], None] | None = None) -> Iterator[SimProfile]:
    """Gather a profile of the launches inside the block; ``progress`` hears the fraction done of each launch."""
    report = SimProfile(progress=progress)
    with observing(lambda name, config: Watch([report], name, config)):
        yield report
