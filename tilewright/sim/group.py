"""A group: warps of one wave at the same node of the program, with their registers.

All registers of a group are arrays over its lanes, so that a step of the program is a few NumPy calls for any number of
warps. The rows of a group never change: lane i is row i of every array of the group (a register, a mask, the lanes of
an instruction or of a pending effect). Splits and merges therefore make new groups, and copy the registers that are
live.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.target import SMEM_RESERVED, SMEM_UNIT, WARP, architecture, assumed_architecture
from tilewright.sim.agents import CommitQueues
from tilewright.sim.held import FragmentRows, move
from tilewright.sim.lanes import GroupLanes
from tilewright.sim.offsets import Offsets
from tilewright.sim.values import MASK, join_rows, take_rows

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch, Wave
    from tilewright.sim.program import Program


def _total(launch: Launch) -> int:
    return -(-launch.smem // SMEM_UNIT) * SMEM_UNIT


def _most_warps(launch: Launch) -> int:
    arch = launch.options.arch
    return (architecture(arch, bare=True) if arch else assumed_architecture()).multiprocessor.warps


OF_LAUNCH: dict[str, Callable[[Launch], int]] = {
    "dynamic_smem_size": lambda launch: launch.smem,
    "total_smem_size": _total,
    "aggr_smem_size": lambda launch: _total(launch) + SMEM_RESERVED,
    "nsmid": lambda launch: math.prod(launch.geometry.grid),  # each resident block has a multiprocessor
    "nwarpid": _most_warps,
    "gridid": lambda launch: launch.number,
}
"""Special registers that have one value in a launch."""
MOVES = 8  # arrays of offsets that a group keeps: the copies of a main loop have six


class Group:
    """``warps``: their numbers in the wave (block slot * warps per block + warp), ascending. ``mask``: the lanes that
    are active (None: all). ``tag``: groups of one tag run together and merge; the seeded schedule makes several."""

    __slots__ = (
        "wave",
        "program",
        "warps",
        "lanes_count",
        "mask",
        "slots",
        "pc",
        "tag",
        "smem_base",
        "checks",
        "events",
        "lanes",
        "queues",
        "held",
        "wait",
        "spins",
        "yielded",
        "still",
        "changed",
        "spin",
        "parts",
        "registers",
        "moves",
        "last",
    )

    def __init__(self, wave: Wave, program: Program, warps: np.ndarray, slots: list[Any], tag: int) -> None:
        self.wave = wave
        self.program = program
        self.warps = warps
        self.lanes_count = warps.size * WARP
        self.mask: np.ndarray | None = None
        self.slots = slots
        self.pc = 0
        self.tag = tag
        # If all warps belong to one block (often at a barrier), all lanes have one offset into shared memory.
        blocks = warps // wave.geometry.warps
        one = bool((blocks == blocks[0]).all())
        stride = wave.shared.stride
        self.smem_base: Any = int(blocks[0]) * stride if one else np.repeat(blocks.astype(np.int64) * stride, WARP)
        self.checks = wave.checks
        self.events = wave.events
        self.lanes: GroupLanes = GroupLanes(self)
        self.queues = CommitQueues()
        self.held: list[FragmentRows] = []  # registers that asynchronous units will read or write
        self.wait: Any = None
        # In while loops: ``spins`` counts all iterations, for the bound that ends a launch; ``yielded``: others run
        # before the next iteration; ``still``: the next iteration can only differ if others change something.
        self.spins = 0
        self.yielded = False
        self.still = False  # inside a loop whose last iteration changed nothing
        self.changed = False  # by an atomic, since the last iteration of a loop
        self.spin: Any = None  # the loop that yielded last
        self.parts: list[SplitSide] = []
        self.registers: dict[Any, Any] = {}
        self.moves: dict[tuple[int, int], tuple[np.ndarray, Offsets]] = {}  # by the id of the index, and its size
        self.last: Any = None

    def retire(self) -> None:
        """Release the registers when other groups continue with the warps, or they have ended.

        Pending effects keep the registers that they need. The group and its lanes refer to each other, so without this
        the arrays would stay until Python's garbage collector runs, and new ones would be on fresh pages: a third of
        the time of an elementwise launch."""
        self.slots, self.registers = [], {}
        self.moves.clear()

    def sreg(self, name: str) -> Any:
        """A special register; it is computed once for the group, unless its value changes."""
        register = self.registers.get(name)
        if register is None:
            if name == "clock":
                return np.int32(self.wave.tick())
            if name in OF_LAUNCH:
                return np.int32(OF_LAUNCH[name](self.wave.launch))
            register = self.registers[name] = self.wave.geometry.register(name, self.warps, self.wave.coords)
        return register

    def in_bytes(self, index: np.ndarray, size: int) -> Offsets:
        """``index [L]`` elements of ``size`` bytes as offsets. The last few results are kept: pointers to several
        tensors are often moved by the same index, and then share the properties of their offsets."""
        remembered = self.moves.get((id(index), size))
        if remembered is None:
            if len(self.moves) >= MOVES:
                del self.moves[next(iter(self.moves))]
            remembered = self.moves[id(index), size] = index, Offsets(np.multiply(index, size, dtype=np.int64))
        return remembered[1]

    @property
    def blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """The blocks of its warps, and the number of warps of each; computed once."""
        blocks = self.registers.get("blocks")
        if blocks is None:
            blocks = np.unique(self.warps // self.wave.geometry.warps, return_counts=True)
            self.registers["blocks"] = blocks
        return blocks

    def existing(self) -> np.ndarray | None:
        return self.wave.geometry.existing(self.warps)

    def lanes_of_mask(self) -> np.ndarray:
        """The rows of the active lanes."""
        return np.arange(self.lanes_count) if self.mask is None else np.flatnonzero(self.mask)

    def take(self, part: SplitSide) -> Group:
        """The group of some of these warps, with the registers that are live at ``part.pc``."""
        # Registers that are not read again are not copied. ``memo`` preserves identity: two registers that are the same
        # array, or a mask that is the saved mask, are the same object in the child, too (loops rely on this).
        rows = lane_rows(part.rows)
        memo: dict[int, Any] = {}
        live = self.program.live_at(part.pc)
        slots: list[Any] = self.program.template.copy()
        kinds = self.program.kinds
        for slot in live:
            slots[slot] = take_rows(self.slots[slot], kinds[slot], rows, memo)
        child = Group(self.wave, self.program, self.warps[part.rows], slots, self.tag)
        child.mask = part.mask if part.given_mask else take_rows(self.mask, MASK, rows, memo)
        for slot, value in part.overrides.items():
            slots[slot] = value
        child.pc = part.pc
        child.queues = self.queues.copy()
        if self.held:
            move(self, child, memo)
        child.spins, child.last = self.spins, self.last
        child.still, child.spin = self.still, self.spin
        if self.wait is not None:
            child.wait = self.wait.take(part.rows)
        return child


class SplitSide:
    """One side of a split: its warps ``rows`` (indices of the group's warps), the node ``pc`` where they go on, their
    ``mask`` if ``given_mask`` (None is a mask, too), and new registers ``overrides``, already cut to these warps."""

    __slots__ = ("rows", "pc", "mask", "given_mask", "overrides")

    def __init__(
        self, rows: np.ndarray, pc: int, mask: Any = None, given_mask: bool = False, overrides: Any = None
    ) -> None:
        self.rows = rows
        self.pc = pc
        self.mask = mask
        self.given_mask = given_mask
        self.overrides = overrides or {}


def lane_rows(warps: np.ndarray) -> Any:
    """The rows of these warps: a slice where they are neighbours, else an index array."""
    # A slice makes views of the parent's arrays. They are not shared: the parent ends, and no two parts have a row in
    # common.
    if warps.size and warps[-1] - warps[0] + 1 == warps.size:
        return slice(int(warps[0]) * WARP, (int(warps[-1]) + 1) * WARP)
    return (warps[:, None] * WARP + np.arange(WARP)).reshape(-1)


def mergeable(a: Group, b: Group) -> bool:
    """Whether two groups at one node can merge: a register that is None only on one path to the node (see branches.py)
    must be None in both groups or in neither."""
    exact = a.program.exact_at(a.pc)
    return all((a.slots[slot] is None) == (b.slots[slot] is None) for slot in exact)


def merge(groups: list[Group]) -> Group:
    """One group from several of the same wave, tag and node."""
    first = groups[0]
    program = first.program
    # Rows are in the order of warp numbers, whatever the order of the groups: instructions of warpgroups need
    # neighbouring warps in neighbouring rows, and messages name warps by row.
    warps = np.concatenate([g.warps for g in groups])
    by_warp = np.argsort(warps, kind="stable")
    order = (by_warp[:, None] * WARP + np.arange(WARP)).reshape(-1)
    sizes = [g.lanes_count for g in groups]
    memo: dict[tuple[int, ...], Any] = {}
    slots = program.template.copy()
    for slot in program.live_at(first.pc):
        slots[slot] = join_rows([g.slots[slot] for g in groups], program.kinds[slot], sizes, order, memo)
    merged = Group(first.wave, program, warps[by_warp], slots, first.tag)
    merged.mask = join_rows([g.mask for g in groups], MASK, sizes, order, memo)
    merged.pc = first.pc
    merged.last = first.last
    merged.spins, merged.spin = max(g.spins for g in groups), first.spin
    # The merged group is still only if each group was; it takes the largest count.
    merged.still = all(g.still for g in groups)
    merged.queues = CommitQueues.joined([g.queues for g in groups])
    for number, group in enumerate(groups):
        if group.held:
            move(group, merged, {key[number]: array for key, array in memo.items()})
    return merged
