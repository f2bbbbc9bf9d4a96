"""Registers between the issue of an instruction that works on them later and the wait for it: ``wgmma`` until its group
is waited for, ``tcgen05.ld`` until ``wait::ld``; and what the four warps of wgmma execute together.

No other instruction may touch the accumulators, or A in registers, before the wait (PTX ISA, "wgmma.wait_group"); wgmma
itself may add to its accumulators. Fences, commits and waits are ``.aligned``, like wgmma: the four warps of a
warpgroup execute the same ones in the same order. A group of wgmma belongs to the warpgroup (PTX ISA,
"wgmma.commit_group"), so that a warp which has waited for it knows that the operands of all four have been read, and
may release their buffer for the others. That holds only if all four do wait: a wait that one warp executes alone says
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tilewright.atoms.tensor_memory import LOAD
from tilewright.atoms.wgmma_flow import AGENT as WGMMA
from tilewright.atoms.wgmma_flow import missing_fences
from tilewright.errors import SimulationError
from tilewright.ir.core import Op, Value
from tilewright.ir.target import WARP, WARPGROUP_WARPS
from tilewright.ir.types import FragType
from tilewright.sim.checks.actors import Actor, actor_in_wave, warp_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.initialised import touched
from tilewright.sim.checks.places import MemoryPlace
from tilewright.sim.checks.sites import kernel_facts

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave


WORDS = {
    WGMMA: (
        "wgmma-registers",
        "the accumulators of wgmma are touched before its group has been waited for",
        "an operand in registers of wgmma are touched before its group has been waited for",
        "wgmma works on its registers at any time between its issue and warpgroup.wait_group",
        "cute.nvgpu.warpgroup.commit_group() after the products, then wait_group(0) (or as many as may stay in flight) "
        "before these registers are read or written",
    ),
    LOAD: (
        "tcgen05-registers",
        "registers that tcgen05.ld loads are touched before they have arrived",
        "",
        "tcgen05.ld writes its registers at any time between its issue and tcgen05.wait::ld",
        "cute.arch.fence_view_async_tmem_load() after the copy, before these registers are read or written",
    ),
}
"""By the agent: the rule, what is wrong with registers that it writes, or reads, why, and the repair."""


class InFlight(NamedTuple):
    """Registers of one fragment that an instruction may still read, or (``writes``) write."""

    op: Op
    registers: frozenset[int]
    writes: bool


class WarpInFlight:
    """What is in flight of one warp, by the agent. ``executed``: the fences, commits and waits of wgmma that it has
    executed. They are compared with those of the other ``members`` of its warpgroup at the end, which costs less than
    a look at each."""

    def __init__(self, warp: Actor, members: list[WarpInFlight]) -> None:
        self.warp, self.members = warp, members
        members.append(self)
        self.executed: list[Op] = []
        self.agents: dict[str, Groups] = {}

    def of(self, value: Value) -> list[InFlight]:
        flying = (group for groups in self.agents.values() for group in (*groups.committed, groups.open))
        return [flight for group in flying for flight in group.get(value, {}).values()]

    @property
    def in_flight(self) -> bool:
        """Whether anything is in flight."""
        return any(groups.open or groups.committed for groups in self.agents.values())

    def groups(self, agent: str) -> Groups:
        if agent not in self.agents:
            self.agents[agent] = Groups()
        return self.agents[agent]


class Groups:
    """What is in flight by one agent, in the open group and in those that were committed (oldest first)."""

    def __init__(self) -> None:
        self.open: dict[Value, dict[int, InFlight]] = {}  # by the id of the effect: each op makes one
        self.committed: list[dict[Value, dict[int, InFlight]]] = []

    def commit(self) -> None:
        self.committed.append(self.open)
        self.open = {}

    def wait(self, pending: int) -> None:
        # Groups are over in the order of their commits: all but the newest ``pending``.
        del self.committed[: max(0, len(self.committed) - pending)]


class RegistersInFlight(Checker):
    def begin(self, launch: Launch) -> None:
        facts = kernel_facts(launch.program)
        if facts.missing_fences is None:
            facts.missing_fences = missing_fences(facts.function)
        self.unfenced = dict(facts.missing_fences)
        self.flights: dict[tuple[Wave, int], WarpInFlight] = {}
        self.changes = 0  # counts what has been put in flight, and the waits
        self.issued: dict[
            Op, tuple[str, list[tuple[Value, InFlight]]]
        ] = {}  # what an op puts in flight, by which agent
        self.touches: dict[Op, tuple[list[tuple[Value, frozenset[int]]], list[tuple[Value, frozenset[int]]]]] = {}

    def _of(self, group: Group) -> list[tuple[int, WarpInFlight]]:
        """The warps that act, each with its row. The four of a warpgroup issue and wait one by one, and not always at
        the same time."""
        found: list[tuple[int, WarpInFlight]] | None = group.registers.get("check.flights")
        if found is None:
            found = [(row, self._flights(group, warp)) for row, warp in enumerate(group.warps.tolist())]
            group.registers["check.flights"] = found
        if group.mask is None:
            return found
        there = group.mask.reshape(-1, WARP).any(1)
        return found if there.all() else [found[row] for row in np.flatnonzero(there).tolist()]

    def _groups(self, group: Group, agent: str) -> list[Groups]:
        """What is in flight by an agent, of each warp that acts."""
        if group.mask is not None:
            return [flights.groups(agent) for _, flights in self._of(group)]
        found: list[Groups] | None = group.registers.get(("check.groups", agent))
        if found is None:
            found = group.registers["check.groups", agent] = [f.groups(agent) for _, f in self._of(group)]
        return found

    def _flights(self, group: Group, warp: int) -> WarpInFlight:
        """The registers in flight of a warp of the group, and of the others of its warpgroup."""
        wave, per = group.wave, group.wave.geometry.warps
        if (wave, warp) not in self.flights:
            block, within = divmod(warp, per)
            members: list[WarpInFlight] = []
            first = within - within % WARPGROUP_WARPS
            for k in range(first, min(first + WARPGROUP_WARPS, per)):
                who = actor_in_wave(wave, block * per + k)
                self.flights[wave, block * per + k] = WarpInFlight(who, members)
        return self.flights[wave, warp]

    def ordered(self, group: Group, op: Op) -> None:
        atom = op.attrs["atom"]
        if self.thorough and getattr(atom, "added", False):
            self._added(group, op)
        for order in atom.orders:
            if order.agent not in WORDS:
                continue
            self.changes += 1
            if order.agent == WGMMA:
                for _, flights in self._of(group):
                    flights.executed.append(op)
            if order.through == "group":
                for groups in self._groups(group, order.agent):
                    if order.release:
                        groups.commit()
                    if order.acquire:
                        groups.wait(atom.pending)

    def _added(self, group: Group, op: Op) -> None:
        """The wait for registers is not in the program's text: where it is, is the compiler's choice."""
        for row, flights in self._of(group):
            for flight in (f for values in flights.groups(LOAD).open.values() for f in values.values()):
                self._report(group, row, op, flight.op.operands[0], "read", flight)

    def end(self, launch: Launch) -> None:
        self._compare(True)

    def error(self, launch: Launch, error: SimulationError) -> None:
        self._compare(False)

    def _compare(self, ended: bool) -> None:
        """Whether the warps of each warpgroup have executed the same; as far as they are, if not ``ended``."""
        for flights in self.flights.values():
            most = max(flights.members, key=lambda member: len(member.executed))
            if flights is most or flights.executed == most.executed:
                continue
            # Where an error ended the launch a warp may only be behind: that is not a mistake.
            pairs = zip(most.executed, flights.executed, strict=False)
            at = next((k for k, (one, other) in enumerate(pairs) if one is not other), len(flights.executed))
            if at < len(flights.executed):
                self._not_aligned(
                    Party("executes", most.executed[at], most.warp),
                    Party("executes", flights.executed[at], flights.warp),
                )
            elif ended:
                self._not_aligned(
                    Party("executes", most.executed[at], most.warp),
                    Party("does not execute it", most.executed[at], flights.warp),
                )

    def _not_aligned(self, *parties: Party) -> None:
        """Two warps of a warpgroup have not executed the same."""
        self.findings.add(
            Finding(
                "wgmma-aligned",
                "the four warps of a warpgroup do not execute the same fences, commits and waits",
                list(parties),
                None,
                "they are .aligned (PTX ISA): all four warps execute the same ones in the same order; a wait by some "
                "of them does not say that the operands of all have been read",
                "move the instruction out of the branch, or branch by warpgroup (warp_idx // 4); after a wait that all "
                "four execute, one warp may release the buffer for all",
            )
        )

    def fragment(self, group: Group, op: Op) -> None:
        """An op touches registers of fragments. wgmma opens flights of its accumulators and register operands; from
        then on until its group is waited for, reading what it writes and writing what it reads are mistakes."""
        known = self.touches.get(op)
        if known is None:
            known = self.touches[op] = touched(op)
        reads, writes = known
        if op.opcode == "call" and op.attrs["atom"].in_flight:
            issued = self.issued.get(op)
            if issued is None:
                d = op.operands[0]
                (agent,) = op.attrs["atom"].agents
                flying = [(v, InFlight(op, registers, v is d)) for v, registers in {*reads, *writes}]
                issued = self.issued[op] = agent, flying
            # The static analysis finds the missing fences of a kernel; what does not run is not reported.
            if op in self.unfenced:
                self._unfenced(group, op, self.unfenced.pop(op))
            agent, flying = issued
            self.changes += 1
            for groups in self._groups(group, agent):
                for value, flight in flying:
                    groups.open.setdefault(value, {})[id(flight)] = flight
            return
        if self._none_in_flight(group):
            return
        for row, flights in self._of(group):
            for does, side in (("read", reads), ("write", writes)):
                for value, registers in side:
                    for flight in flights.of(value):
                        # Reading an operand that wgmma reads is fine; all else meets a write.
                        if flight.registers & registers and (does == "write" or flight.writes):
                            self._report(group, row, op, value, does, flight)

    def _none_in_flight(self, group: Group) -> bool:
        """Whether no warp of the group has anything in flight, active or not. Invariant: what is in flight changes only
        together with ``changes``, so what was found at this count is what would be found now."""
        known: tuple[int, bool] | None = group.registers.get("check.none_in_flight")
        if known is None or known[0] != self.changes:
            warps = [self._flights(group, warp) for warp in group.warps.tolist()]
            none = not any(flights.in_flight for flights in warps)
            known = group.registers["check.none_in_flight"] = self.changes, none
        return known[1]

    def _unfenced(self, group: Group, op: Op, access: Op) -> None:
        made = access.opcode == "frag.alloc"
        self.findings.add(
            Finding(
                "wgmma-fence",
                "wgmma uses registers that are accessed before, and no wgmma.fence is between the two",
                [
                    Party("multiplies", op, warp_of(group, 0)),
                    Party("after its registers are made" if made else "after an access to its registers", access),
                ],
                None,
                "wgmma.fence is needed before the first wgmma and whenever other code has accessed its registers; "
                "ptxas accepts a kernel without it, and may insert one (C7519)",
                "cute.nvgpu.warpgroup.fence() before the gemm",
            )
        )

    def _report(self, group: Group, row: int, op: Op, value: Value, does: str, flight: InFlight) -> None:
        kind = value.type
        assert isinstance(kind, FragType)
        (agent,) = flight.op.attrs["atom"].agents
        rule, written, read, why, fix = WORDS[agent]
        memory = MemoryPlace("registers", kind.n * kind.elem.bytes, 0, value.hint or "a fragment")
        self.findings.add(
            Finding(
                rule,
                written if flight.writes else read,
                [Party(does, op, warp_of(group, row)), Party("still in flight: issued", flight.op)],
                memory,
                why,
                fix,
            )
        )
