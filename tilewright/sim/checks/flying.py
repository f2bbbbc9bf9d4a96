"""Registers of ``wgmma``: accumulators, and A in registers, between its issue and the wait for its group.

Meanwhile others may not touch them (PTX ISA, "wgmma.wait_group"); wgmma itself may add to its accumulators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tilewright.atoms.wgmma import WgmmaAtom
from tilewright.atoms.wgmma_sync import WgmmaCommit, WgmmaWait
from tilewright.ir.core import Op, Value
from tilewright.ir.types import FragType
from tilewright.sim.checks.actors import warp_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.initialised import touched
from tilewright.sim.checks.places import Memory
from tilewright.sim.checks.sites import Facts
from tilewright.sim.geometry import WARP

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group


class Flight(NamedTuple):
    """Registers of one fragment that an instruction may still read, or (``writes``) write."""

    op: Op
    registers: frozenset[int]
    writes: bool


class Flights:
    """Of one warp: what is in flight, in the open group and in those that were committed (oldest first)."""

    def __init__(self) -> None:
        self.open: dict[Value, dict[int, Flight]] = {}  # by the id of what is in flight: an op's is made once
        self.committed: list[dict[Value, dict[int, Flight]]] = []

    def of(self, value: Value) -> list[Flight]:
        return [flight for group in (*self.committed, self.open) for flight in group.get(value, {}).values()]

    def commit(self) -> None:
        self.committed.append(self.open)
        self.open = {}

    def wait(self, pending: int) -> None:
        del self.committed[: max(0, len(self.committed) - pending)]


class Flying(Checker):
    name, cost = "wgmma", "default"

    @classmethod
    def concerns(cls, known: Facts) -> bool:
        return any(isinstance(op.attrs["atom"], WgmmaAtom) for op in known.calls)

    def begin(self, launch: Launch) -> None:
        self.flights: dict[tuple[int, int], Flights] = {}
        self.issued: dict[Op, list[tuple[Value, Flight]]] = {}  # what a wgmma puts in flight
        self.touches: dict[Op, tuple[list[tuple[Value, frozenset[int]]], list[tuple[Value, frozenset[int]]]]] = {}

    def _of(self, group: Group) -> list[tuple[int, Flights]]:
        """The warps that act, each with its row. The four of a warpgroup issue and wait one by one, and not always at
        the same time."""
        found: list[tuple[int, Flights]] | None = group.registers.get("check.flights")
        if found is None:
            wave = id(group.wave)
            found = [(row, self.flights.setdefault((wave, w), Flights())) for row, w in enumerate(group.warps.tolist())]
            group.registers["check.flights"] = found
        if group.mask is None:
            return found
        there = group.mask.reshape(-1, WARP).any(1)
        return found if there.all() else [found[row] for row in np.flatnonzero(there).tolist()]

    def ordered(self, group: Group, op: Op) -> None:
        atom = op.attrs["atom"]
        if isinstance(atom, (WgmmaCommit, WgmmaWait)):
            for _, flights in self._of(group):
                if isinstance(atom, WgmmaCommit):
                    flights.commit()
                else:
                    flights.wait(atom.pending)

    def fragment(self, group: Group, op: Op) -> None:
        known = self.touches.get(op)
        if known is None:
            known = self.touches[op] = touched(op)
        reads, writes = known
        if op.opcode == "call" and isinstance(op.attrs["atom"], WgmmaAtom):
            issued = self.issued.get(op)
            if issued is None:
                d = op.operands[0]
                issued = self.issued[op] = [(v, Flight(op, registers, v is d)) for v, registers in {*reads, *writes}]
            for _, flights in self._of(group):
                for value, flight in issued:
                    flights.open.setdefault(value, {})[id(flight)] = flight
            return
        for row, flights in self._of(group):
            if not flights.open and not flights.committed:
                continue
            for does, side in (("read", reads), ("write", writes)):
                for value, registers in side:
                    for flight in flights.of(value):
                        if flight.registers & registers and (does == "write" or flight.writes):
                            self._found(group, row, op, value, does, flight)

    def _found(self, group: Group, row: int, op: Op, value: Value, does: str, flight: Flight) -> None:
        kind = value.type
        assert isinstance(kind, FragType)
        role = "the accumulators" if flight.writes else "an operand in registers"
        memory = Memory("registers", kind.n * kind.elem.bytes, 0, value.hint or "a fragment")
        self.findings.add(
            Finding(
                "wgmma-registers", f"{role} of wgmma are touched before its group has been waited for",
                [Party(does, op, warp_of(group, row)), Party("still in flight: issued", flight.op)], memory,
                "wgmma works on its registers at any time between its issue and warpgroup.wait_group",
                "cute.nvgpu.warpgroup.commit_group() after the products, then wait_group(0) (or as many as may stay in "
                "flight) before these registers are read or written",
            )
        )  # fmt: skip
