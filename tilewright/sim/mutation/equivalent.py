"""Why a mutant is equivalent to its kernel: reasons that one launch of the kernel itself shows, and those that its
author gives.

The reasons that are found: its operation is not executed; the verifier shows that no register of a ``wgmma`` is
accessed around the fence; a later fence of the same kind makes up for it; a wait for groups never found more of them
pending than it allows; nothing follows a wait in the threads that wait.
"""

from __future__ import annotations

import json
import linecache
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.atoms.bulk import BulkWait
from tilewright.atoms.bulk_groups import BulkGroups
from tilewright.atoms.cp_async import CpAsyncWait
from tilewright.atoms.mbarrier import FenceMbarrierInit, MbarrierInit, MbarrierWait
from tilewright.atoms.wgmma_sync import WgmmaFence
from tilewright.errors import ArgumentError
from tilewright.ir.core import Block, Function, Location, Op
from tilewright.ir.instruction import Instruction, Lanes
from tilewright.sim.events import Observer
from tilewright.sim.group import Group
from tilewright.sim.mutation.mutants import Edit, Mutant, blocks
from tilewright.sim.wave import Wave

WAITS = (CpAsyncWait, BulkWait)
QUIET = frozenset(("ptr.add", "ptr.cast", "smem.alloc", "sreg", "frag.alloc", "frag.load", "frag.store"))


class CountingWait(Instruction):
    """A wait for groups that records in ``most`` the largest number of groups it found pending."""

    def __init__(self, atom: Any) -> None:
        self.atom = atom
        self.most = 0
        self.accesses, self.orders = atom.accesses, atom.orders

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        self.most = max(self.most, self._pending(lanes))
        results: tuple[Any, ...] = self.atom.simulate(lanes, op, operands)
        return results

    def _pending(self, lanes: Any) -> int:
        if not isinstance(self.atom, BulkWait):
            return len(lanes.group.queues.committed.get(self.atom.orders[0].agent, ()))
        groups = lanes.beside(BulkGroups)
        waiting = groups.unread if self.atom.read else groups.unwritten
        return max((len(waiting.get(int(warp), ())) for warp in lanes.warp_numbers()), default=0)


class LaunchEvidence(Observer):
    """Observations from several launches of one kernel: waits that never wait, ops that are never executed."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.watched = {id(op): CountingWait(op.attrs["atom"]) for op in function.walk() if _is(op, *WAITS)}
        # The waits are replaced by ones that count, and the counts belong to the original ops.
        self.edits = [
            Edit(block, op, [replace_atom(op, self.watched[id(op)])])
            for block in blocks(function.body)
            for op in block.ops
            if id(op) in self.watched
        ]
        self.names = {id(edit.new[0]): id(edit.old) for edit in self.edits}
        self.seen: set[int] = set()
        self.followed: set[int] = set()  # waits for an mbarrier after which a thread that waited did something
        self.waited: dict[tuple[Wave, int], set[int]] = {}
        self.no_clusters = True

    def wave(self, wave: Wave) -> None:
        self.no_clusters &= wave.geometry.cluster_size == 1

    def executed(self, group: Group, op: Op) -> None:
        name = self.names.get(id(op), id(op))
        self.seen.add(name)
        if _is(op, MbarrierWait):
            for warp in group.warps:
                self.waited.setdefault((group.wave, int(warp)), set()).add(name)
        # The wait orders what comes after it in its own thread: if nothing does, its removal cannot be seen.
        elif self.waited and _acts(op):
            for warp in group.warps:
                self.followed |= self.waited.pop((group.wave, int(warp)), set())

    def reason(self, mutant: Mutant) -> str:
        """Why the launch of the mutant is that of the kernel, as far as it was shown; empty if it was not."""
        ops = mutant.ops
        if not any(id(op) in self.seen for op in ops):
            return "not executed in this launch"
        # The other reasons are about one op, not about several that are removed together.
        if len(ops) > 1:
            return ""
        op, watched = ops[0], self.watched.get(id(ops[0]))
        if watched is not None and watched.most <= watched.atom.pending:
            return "never finds more groups pending than it allows"
        if _is(op, WgmmaFence):
            return "the verifier: no register of the instructions behind it is accessed before it"
        if _is(op, FenceMbarrierInit) and _another_fence_follows(self.function, op):
            return "another fence.mbarrier_init follows the same mbarrier.init"
        if _is(op, MbarrierWait) and self.no_clusters and id(op) not in self.followed:
            return "nothing follows in the threads that wait, and their block is a cluster of its own"
        return ""


def replace_atom(op: Op, atom: Instruction) -> Op:
    """A copy of a ``call`` with another instruction."""
    return Op("call", op.operands, op.results, {**op.attrs, "atom": atom}, [], op.loc)


def _is(op: Op, *kinds: type) -> bool:
    return op.opcode == "call" and isinstance(op.attrs["atom"], kinds)


def _acts(op: Op) -> bool:
    """Whether others can tell that ``op`` was executed."""
    if op.opcode in ("store", "load"):
        return True
    return op.opcode == "call" and not op.attrs["atom"].pure and not _is(op, MbarrierWait)


def _another_fence_follows(function: Function, removed: Op) -> bool:
    """Whether every initialisation before the fence is followed, wherever it is executed, by another one."""
    placed = list(_placed(function.body, ()))
    at = next(k for k, (op, _) in enumerate(placed) if op is removed)
    fences = [(k, path) for k, (op, path) in enumerate(placed) if _is(op, FenceMbarrierInit) and k != at]
    inits = [(k, path) for k, (op, path) in enumerate(placed[:at]) if _is(op, MbarrierInit)]
    # A fence in a block around the initialisation is executed whenever that is; one in another branch may not be.
    return all(any(f > i and path == around[: len(path)] for f, path in fences) for i, around in inits)


def _placed(block: Block, path: tuple[int, ...]) -> Iterator[tuple[Op, tuple[int, ...]]]:
    """The ops of a block in program order, each with the blocks around it."""
    path = (*path, id(block))
    for op in block.ops:
        yield op, path
        for region in op.regions:
            yield from _placed(region, path)


# -- reasons given by hand ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownEquivalent:
    """A mutant that is known to be equivalent: the end of its file's name, text of its line and of the line ``before``
    it, what is changed how (``instruction`` and ``change`` as the study names them), the ``number`` of the op among
    those that the line repeats; what is left out: any; and why."""

    file: str
    text: str
    reason: str
    before: str = ""
    kernel: str = ""
    instruction: str = ""
    change: str = ""
    number: int = 0

    def covers(self, mutant: Mutant) -> bool:
        where = mutant.location
        return (
            where is not None
            and where.file.endswith(self.file)
            and self.text in _text(where)
            and self.before in linecache.getline(where.file, where.line - 1)
            and self.kernel in ("", mutant.function.name)
            and self.instruction in ("", mutant.instruction)
            and self.change in ("", mutant.what)
            and self.number in (0, mutant.number)
        )


@dataclass
class KnownList:
    """The known equivalent mutants of a file, and which of them were needed."""

    known: list[KnownEquivalent] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> KnownList:
        """From JSON: a list of objects with the fields of :class:`KnownEquivalent`."""
        try:
            return cls([KnownEquivalent(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))])
        except (OSError, ValueError, TypeError) as wrong:
            raise ArgumentError(
                f"{path} is not a list of known mutants ({wrong}): a JSON list of objects with file, text, reason and, "
                "where they matter, before, kernel, instruction, change, number"
            ) from None

    def reason(self, mutant: Mutant) -> str:
        return next((known.reason for known in self.known if known.covers(mutant)), "")


def _text(where: Location) -> str:
    return linecache.getline(where.file, where.line)
