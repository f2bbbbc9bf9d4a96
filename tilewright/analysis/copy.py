"""The cost of a tiled copy on given tensors: instructions, bank conflicts, sectors, registers.

The instructions come from staging ``cute.copy`` itself, the addresses from the layouts, and the counts from
:mod:`tilewright.layout.analysis`; the simulator counts the same when it runs the copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.analysis.memory import MemoryTile, numbered, side_of, static_shape
from tilewright.analysis.staged import Issue, stage_copy
from tilewright.analysis.text import many
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.ir.effects import Access
from tilewright.ir.types import MemSpace
from tilewright.layout import AccessReport, make_layout, offsets, size, zipped_divide
from tilewright.layout.analysis import sectors_of, wavefronts_of
from tilewright.reports import Report, Row
from tilewright.tiled.tiled_copy import TiledCopy

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class InstructionCost:
    """One kind of instruction on one side of a copy.

    ``bits`` is what one lane accesses at once, ``count`` the instructions of one thread. ``report`` has one entry for
    each phase (a warp of up to 4 bytes a lane, half a warp of 8, a quarter or 8 rows of ldmatrix of 16) and counts
    wavefronts; in global memory one for each request of a warp, and it counts 32-byte sectors.
    """

    mnemonic: str
    bits: int
    count: int
    report: AccessReport


@dataclass(frozen=True)
class SideReport:
    """The cost of all threads together on one side. ``cost`` and ``ideal`` are wavefronts of shared memory or sectors
    of global memory; ``bytes`` are those that active lanes access."""

    memory: MemoryTile
    instructions: tuple[InstructionCost, ...]
    bytes: int

    @property
    def unit(self) -> str:
        return "wavefronts" if self.memory.space == MemSpace.SMEM else "sectors"

    @property
    def requests(self) -> int:
        """Phases in shared memory, requests of a warp in global memory."""
        return sum(len(i.report.phases) for i in self.instructions)

    @property
    def cost(self) -> int:
        return sum(i.report.cost for i in self.instructions)

    @property
    def ideal(self) -> int:
        return sum(i.report.ideal for i in self.instructions)

    @property
    def conflicts(self) -> int:
        """Wavefronts or sectors beyond the least possible: in shared memory, the bank conflicts."""
        return self.cost - self.ideal

    @property
    def ways(self) -> int:
        """The most that one phase or request costs."""
        return max(i.report.ways for i in self.instructions)

    @property
    def efficiency(self) -> float:
        """Least possible cost / cost, at most 1."""
        return self.ideal / self.cost

    def rows(self, name: str) -> list[Row]:
        rows = [(name, str(self.memory))]
        for i in self.instructions:
            rows.append((f"  {i.mnemonic}", f"{i.count} a thread, {i.bits} bits a lane"))
        if self.unit == "sectors":
            per = self.cost / self.requests
            cost = f"{self.cost} in {many(self.requests, 'request')} ({per:.3g} each), ideal {self.ideal}"
            return [*rows, ("  sectors", f"{cost}: {self.efficiency:.0%}")]
        cost = f"{self.cost} in {many(self.requests, 'phase')}, ideal {self.ideal}"
        conflicts = f"{self.conflicts}, up to {self.ways}-way" if self.conflicts else "none"
        return [*rows, ("  wavefronts", cost), ("  bank conflicts", conflicts)]


@dataclass(frozen=True)
class CopyReport(Report):
    """The cost of one execution of a tiled copy by all its threads.

    ``instructions`` are the machine's by mnemonic, for each thread (and so for each warp). ``registers`` are the 32-bit
    registers of one thread that the data passes through; 0 for cp.async. A side is None where it is registers.
    ``assumed`` are the numbers that stood for run-time strides.
    """

    copy: str
    threads: int
    instructions: dict[str, int]
    registers: int
    source: SideReport | Any  # None for registers, which few readers need
    destination: SideReport | Any
    assumed: dict[str, int]

    @property
    def bank_conflicts(self) -> int:
        """Extra wavefronts of shared memory on both sides: what the simulator's profile counts."""
        sides = (self.source, self.destination)
        return sum(s.conflicts for s in sides if s is not None and s.memory.space == MemSpace.SMEM)

    def rows(self) -> list[Row]:
        rows = [
            ("threads", str(self.threads)),
            ("instructions a thread", ", ".join(f"{n} x {name}" for name, n in self.instructions.items())),
            ("registers a thread", str(self.registers) if self.registers else "none: asynchronous"),
        ]
        for name, side in (("source", self.source), ("destination", self.destination)):
            rows += side.rows(name) if side is not None else [(name, "registers")]
        if self.assumed:
            rows.append(("assumed", ", ".join(f"{name} = {value}" for name, value in self.assumed.items())))
        return rows

    def heading(self) -> str:
        return f"copy by {self.copy}"


def analyse_copy(
    tiled_copy: TiledCopy, src: Any, dst: Any = None, *, where: Mapping[str, int] | None = None
) -> CopyReport:
    """What ``cute.copy(tiled_copy, thr.partition_S(src), thr.partition_D(dst))`` costs when all threads execute it.

    Args:
        tiled_copy: the copy; ``tiled_copy.size`` threads take part.
        src, dst: ``gmem(layout)`` or ``smem(layout)``, a tensor, or None for registers. A bare layout will do where the
            instruction leaves no choice (cp.async, ldmatrix, stmatrix). Layouts count elements of the copy's type, have
            static shapes, and may have run-time strides with a known divisor. Memory starts at a multiple of 128 bytes.
        where: numbers for symbolic strides; what is not known is assumed to be no more aligned than its divisor.

    Raises ArgumentError and ConstraintError: as ``cute.copy`` would for such tensors (size, contiguity, alignment,
    memory space), and where the copy's tile does not divide the tensor.

    >>> from tilewright.atoms.names import copy_by_name
    >>> from tilewright.ir.types import F16
    >>> from tilewright.layout import Layout, make_layout
    >>> from tilewright.tiled import CopyAtom, make_tiled_copy_tv
    >>> from tilewright.analysis import smem
    >>> store = CopyAtom(copy_by_name("UniversalCopy<uint128_t>"), F16)
    >>> copy = make_tiled_copy_tv(store, Layout((32, 4)), make_layout((1, 8)))        # threads run down the column
    >>> print(analyse_copy(copy, None, smem(Layout((32, 32), (32, 1)))))
    copy by UniversalCopy<uint128_t> of f16
      threads                128
      instructions a thread  1 x copy.b128
      registers a thread     4
      source                 registers
      destination            smem (32,32):(32,1)
        copy.b128            1 a thread, 128 bits a lane
        wavefronts           64 in 16 phases, ideal 16
        bank conflicts       48, up to 4-way
    """
    _check_copy(tiled_copy)
    instruction = tiled_copy.instruction
    source = side_of(src, "source", _memory_of(instruction.source))
    destination = side_of(dst, "destination", _memory_of(instruction.destination))
    if source is None and destination is None:
        raise ArgumentError("analyse_copy: one side of the copy must be memory: gmem(layout) or smem(layout)")
    for memory in (source, destination):
        if memory is not None:
            _check_tile(tiled_copy, memory)
    staged = stage_copy(tiled_copy, source, destination)
    assumed: dict[str, int] = {}
    reports = [
        None if memory is None else _report_of(tiled_copy, memory, name, staged.issues, where or {}, assumed)
        for memory, name in ((source, "source"), (destination, "destination"))
    ]
    counts: Counter[str] = Counter()
    for atom, repetitions in staged.calls:
        counts[atom.mnemonic()] += repetitions
    return CopyReport(
        f"{tiled_copy.instruction} of {tiled_copy.scalar}",
        tiled_copy.size,
        dict(counts),
        -(-staged.register_bits // 32),
        reports[0],
        reports[1],
        assumed,
    )


def _check_copy(tiled_copy: TiledCopy) -> None:
    if not isinstance(tiled_copy, TiledCopy):
        raise ArgumentError(f"analyse_copy takes a TiledCopy first, not {tiled_copy!r}: make one with make_tiled_copy")
    instruction = tiled_copy.instruction
    if not any(access.memories and access.bits for access in instruction.accesses):
        raise ConstraintError(
            f"analyse_copy: {instruction} copies from {instruction.direction}: only accesses of memory by the address "
            "of each lane are counted"
        )


def _report_of(
    copy: TiledCopy,
    memory: MemoryTile,
    name: str,
    issues: Sequence[Issue],
    where: Mapping[str, int],
    assumed: dict[str, int],
) -> SideReport:
    """The costs of the side ``name``; numbers taken for its symbolic strides are added to ``assumed``."""
    layout, numbers = numbered(memory.layout, where)
    assumed |= numbers
    own = [issue for issue in issues if issue.side == name]
    places = _addresses(copy, "S" if name == "source" else "D", layout)
    costs = tuple(_cost(copy, memory, places, group) for group in _by_instruction(own))
    values = sum(sum(map(len, issue.values)) * len(_busy(issue, copy.size)) for issue in own)
    return SideReport(memory, costs, values * copy.scalar.bytes)


def _memory_of(access: Access) -> MemSpace | None:
    """The memory space of a bare layout on this side; None where a tensor must say."""
    named = [space for space in access.memories if space is not MemSpace.GENERIC]
    return named[0] if len(named) == 1 else None


def _check_tile(tiled: TiledCopy, memory: MemoryTile) -> None:
    """A partial tile would access memory past the tensor: kernels predicate there, this analysis does not."""
    shape = static_shape(memory.layout)
    whole = make_layout(shape)
    try:
        divided = zipped_divide(whole, tiled.tiler)
        fits = size(divided) == size(whole)
    except ValueError:
        fits = False
    if not fits:
        raise ConstraintError(
            f"analyse_copy: tiles of {tiled.tiler} do not divide a tensor of {shape}: analyse whole tiles"
        )


def _addresses(tiled: TiledCopy, which: str, layout: Any) -> np.ndarray[Any, Any]:
    """Byte address of every (thread, value of its partition)."""
    coordinates = getattr(tiled, f"tidfrg_{which}")(make_layout(layout.shape))
    index = offsets(coordinates).reshape((tiled.size, -1), order="F")
    addresses: np.ndarray[Any, Any] = offsets(layout)[index] * tiled.scalar.bytes
    return addresses


def _by_instruction(issues: Iterable[Issue]) -> list[list[Issue]]:
    groups: dict[str, list[Issue]] = {}
    for issue in issues:
        groups.setdefault(issue.instruction.mnemonic(), []).append(issue)
    return list(groups.values())


def _cost(tiled: TiledCopy, memory: MemoryTile, places: np.ndarray[Any, Any], issues: list[Issue]) -> InstructionCost:
    """What all instructions of one kind cost; their first values lead, the others follow them in memory."""
    firsts = [values[0] for issue in issues for values in issue.values]
    lanes = _busy(issues[0], tiled.size)
    width = len(issues[0].values[0]) * tiled.scalar.bytes
    count = wavefronts_of if memory.space == MemSpace.SMEM else sectors_of
    counted = count(places[lanes][:, firsts].tolist(), width)
    phases = tuple((int(lanes[t]), firsts[n], cost, ideal) for t, n, cost, ideal in counted.phases)
    report = AccessReport(phases, counted.unit)
    return InstructionCost(issues[0].instruction.mnemonic(), 8 * width, len(firsts), report)


def _busy(issue: Issue, threads: int) -> list[int]:
    """The threads whose addresses count: ldmatrix and stmatrix ask eight lanes for each matrix."""
    access = issue.instruction.source if issue.side == "source" else issue.instruction.destination
    return [t for t in range(threads) if t % 32 < access.lanes]
