"""Multiply-adds of single threads as one product a warp, where lanes share their operands.

The threads of a warp that multiply on FMA units are mostly a grid: all lanes of a row load the same part of A, all of a
column the same part of B. Loaded through equal offsets by one copy, registers are equal. So a fragment that only such
copies and multiply-adds touch is kept once for each row (or column) of a warp, k after k, and the multiply-adds are one
matrix product of it, ``[columns * N, K] * [K, rows * M]``; the accumulators are kept in the order of that product until
another op looks at them. Groups part and meet by warps, whose parts of the fragments move as they are.

Which lanes share is found out from the offsets, when the program runs. Where they do not, or the offsets are not known
to be inside and aligned, or lanes rest, the fragments have the registers of each lane, and the plain steps go on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.atoms.copy import split_operands
from tilewright.atoms.cp_async import CpAsync, CpAsyncCommit
from tilewright.atoms.fma import Block, UniversalFma, thread_plan
from tilewright.atoms.scratch import scratch
from tilewright.ir.arithmetic import TABLE
from tilewright.ir.core import Function, Op, Value
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.types import F32, FragType, PtrType
from tilewright.sim.access import access_of
from tilewright.sim.direct_copies import is_direct
from tilewright.sim.memory import Buffer
from tilewright.sim.moves import Arrangement
from tilewright.sim.offsets import SharedRows
from tilewright.sim.program import BasicBlock, Closure, nothing
from tilewright.sim.values import FRAG, MASK, Ptr

Slot = Callable[[Value], int]
Told = tuple[tuple[Op, tuple[int, ...]], ...]  # copies through one pointer, each with its distances from it
COMPUTE = frozenset("ptr.add ptr.cast ptr.toint ptr.fromint cast bitcast select sreg smem.alloc load".split())
EMPTY = SharedRows(np.arange(0), np.arange(0))
"""The rows of a fragment to which nothing has been loaded."""


class Operand:
    """A fragment of A or B. ``fragment`` is its register; ``state`` says how it is kept: EMPTY, SharedRows, or None for
    the registers of each lane. ``each``: registers that a copy loads side by side. ``wanted`` until lanes
    turn out to be no grid."""

    def __init__(self, fragment: int, state: int, each: int) -> None:
        self.fragment, self.state, self.each = fragment, state, each
        self.access = access_of(F32, each, each * F32.bytes, False)
        self.wanted = True

    def spread(self, slots: list[Any]) -> None:
        """Give each lane its registers."""
        state, slots[self.state] = slots[self.state], None
        for rows, warps in _kinds(state):
            if rows is EMPTY:
                continue
            fragment = slots[self.fragment]
            n = fragment.shape[1]
            if warps is None:
                warps = np.arange(len(fragment) // WARP)
                slots[self.fragment] = np.empty_like(fragment)  # no other register names it
            kept = fragment.reshape(-1, WARP * n)[warps, : rows.count * n]
            kept = kept.reshape(-1, n // self.each, rows.count, self.each)
            found = kept[:, :, rows.row].transpose(0, 2, 1, 3).reshape(-1, WARP, n)
            slots[self.fragment].reshape(-1, WARP, n)[warps] = found


def _kinds(state: Any) -> list[tuple[Any, Any]]:
    """The states of warps, where groups that differed have met, and which warps have them (None: all)."""
    if not isinstance(state, np.ndarray):
        return [] if state is None else [(state, None)]
    by_warp = state[::WARP]
    found = {id(one): one for one in by_warp if one is not None and not isinstance(one, (bool, np.bool_))}
    return [(one, np.flatnonzero([each is one for each in by_warp])) for one in found.values()]


# -- the grid of a warp ------------------------------------------------------------------------------------------------


class Grid:
    """Where the accumulators of a warp are in its part ``[32 * registers]``, for each element of the product ``[columns
    * N, rows * M]``; a register that is the same for all lanes."""

    __slots__ = ("shape", "places")
    ndim = 0

    def __init__(self, shape: tuple[int, int], places: Array) -> None:
        self.shape, self.places = shape, places


class GridShape(NamedTuple):
    """Of multiply-adds: ``m, n`` of a thread, the registers that copies load side by side, and D's registers: ``d`` in
    the order ``n * M + m``, of ``registers``."""

    m: int
    n: int
    each_a: int
    each_b: int
    d: tuple[int, ...]
    registers: int


@lru_cache(maxsize=256)
def grid_of(shape: GridShape, a: SharedRows, b: SharedRows) -> Grid | None:
    """None where the lanes are no grid of A's rows and B's."""
    if a.count * b.count != WARP or len(np.unique(a.row * b.count + b.row)) != WARP:
        return None
    m, n = np.arange(shape.m), np.arange(shape.n)
    across = (m // shape.each_a * a.count + a.row[:, None]) * shape.each_a + m % shape.each_a  # [32, M]
    down = (n // shape.each_b * b.count + b.row[:, None]) * shape.each_b + n % shape.each_b  # [32, N]
    sizes = b.count * shape.n, a.count * shape.m
    places = np.empty(sizes, np.intp)
    registers = np.array(shape.d).reshape(shape.n, shape.m) + np.arange(WARP)[:, None, None] * shape.registers
    places[down[:, :, None], across[:, None, :]] = registers
    return Grid(sizes, places.reshape(-1))


class Sums:
    """Accumulators: ``fragment`` is their register, ``kept`` the one with the sums in the order of the product, while
    ``state`` has the Grid."""

    def __init__(self, fragment: int, kept: int, state: int) -> None:
        self.fragment, self.kept, self.state = fragment, kept, state

    def in_order(self, slots: list[Any], grid: Grid) -> Array:
        """``[warps, *grid.shape]``."""
        if slots[self.state] is not grid:
            self.put_back(slots)
            fragment = slots[self.fragment]
            slots[self.kept] = fragment.reshape(-1, WARP * fragment.shape[1]).take(grid.places, axis=1)
            slots[self.kept] = slots[self.kept].reshape(len(fragment), -1)
            slots[self.state] = grid
        found: Array = slots[self.kept].reshape(-1, *grid.shape)
        return found

    def put_back(self, slots: list[Any]) -> None:
        state, slots[self.state] = slots[self.state], None
        for grid, warps in _kinds(state):
            fragment = slots[self.fragment]
            part = fragment.reshape(-1, WARP * fragment.shape[1])
            kept = slots[self.kept].reshape(len(part), -1)
            if warps is None:
                part[:, grid.places] = kept
            else:
                part[warps[:, None], grid.places] = kept[warps]
        slots[self.kept] = None


# -- which fragments ---------------------------------------------------------------------------------------------------


class ThreadProducts:
    """The operands and the accumulators of a function that are kept so. ``bases``: by an op's id the pointer that
    copies go through, and the distances from it."""

    def __init__(
        self,
        nodes: list[BasicBlock],
        function: Function,
        slot: Slot,
        fresh: Callable[[int], int],
        bases: dict[int, tuple[Value, tuple[int, ...]]],
    ) -> None:
        self.nodes, self.slot, self.fresh, self.bases = nodes, slot, fresh, bases
        uses: dict[Value, list[Op]] = {}
        for op in function.walk():
            for value in dict.fromkeys((*op.results, *op.operands)):
                if isinstance(value.type, FragType) and value.type.elem == F32:
                    uses.setdefault(value, []).append(op)
        # Fragments that forwarding makes at their first use have a step for that already.
        elsewhere = {id(op) for node in nodes for at, op in enumerate(node.ops) if _steps(node)[at] is nothing}
        loaded = {
            value: each
            for value, ops in uses.items()
            if id(ops[0]) not in elsewhere and (each := _loaded_at_once(value, ops, bases))
        }
        sums = {value for value, ops in uses.items() if _are_sums(value, ops, nodes)}
        while True:  # a fragment is kept so if all products of it are; then the others of these products may be
            kept = {v: n for v, n in loaded.items() if all(_fits(op, loaded, sums) for op in uses[v] if _is_fma(op))}
            if len(kept) == len(loaded):
                break
            loaded = kept
        self.operands = {v: Operand(slot(v), fresh(MASK), each) for v, each in loaded.items()}
        self.sums = {
            value: Sums(slot(value), fresh(FRAG), fresh(MASK))
            for value in uses
            if value in sums and any(_fits(op, loaded, sums) for op in uses[value] if _is_fma(op))
        }
        self.done: set[int] = set()  # the products, by id, that know of it
        for node in nodes:
            for at, op in enumerate(node.ops):
                if op.opcode == "frag.alloc" and op.result in self.operands:
                    _steps(node)[at] = _empty(_steps(node)[at], self.operands[op.result].state)

    def step(self, ops: list[Op], plain: Closure) -> Closure | None:
        """The step of multiply-adds that are done together; None where they are done plainly."""
        if not _is_fma(ops[0]) or not _fits(ops[0], self.operands, self.sums):
            return None
        d, a, b = ops[0].operands
        self.done.update(map(id, ops))
        return _product(ops, self.sums[d], self.operands[a], self.operands[b], plain)

    def finish(self) -> None:
        """The rest of the steps, when the products have theirs."""
        for node in self.nodes:
            for at, op in enumerate(node.ops):
                for value in (*op.operands, *op.results):
                    if value in self.operands:
                        node.uses.add(self.operands[value].state)
                    if value in self.sums:
                        sums = self.sums[value]
                        node.uses.update((sums.kept, sums.state))
                        if id(op) not in self.done:
                            _steps(node)[at] = _after_putting_back(_steps(node)[at], sums)
            for value, run in self._loads(node):
                self._load_together(node, value, run)

    # -- copies of a stretch to one fragment ---------------------------------------------------------------------------

    def _loads(self, node: BasicBlock) -> list[tuple[Value, list[int]]]:
        """The places of copies to one operand through one pointer that may all be done at the last of them: nothing
        between writes to memory, or multiplies with what they load."""
        found: list[tuple[Value, list[int]]] = []
        going: dict[Value, list[int]] = {}
        for at, op in enumerate(node.ops):
            value = op.operands[0] if op.operands else None
            if is_direct(op) and value in self.operands:
                run = going.get(value)
                if run is None or self.bases[id(node.ops[run[0]])][0] is not self.bases[id(op)][0]:
                    going[value] = run = []
                    found.append((value, run))
                run.append(at)
            elif id(op) in self.done:
                if _steps(node)[at] is not nothing:
                    going.clear()
            elif not _only_computes(op):
                going.clear()
        return found

    def _load_together(self, node: BasicBlock, value: Value, run: list[int]) -> None:
        operand, ops = self.operands[value], [node.ops[at] for at in run]
        base = self.slot(self.bases[id(ops[0])][0])
        distances = [self.bases[id(op)][1] for op in ops]
        registers = [chosen[0] for op in ops for chosen in op.attrs["registers"]]
        loads = SharedLoads(operand, base, sum(distances, ()), registers)
        plain, told, state = [_steps(node)[at] for at in run], self._told(node, run), self.fresh(MASK)
        for number, at in enumerate(run):
            _steps(node)[at] = _load(plain, number, told, loads, state)

    def _told(self, node: BasicBlock, run: list[int]) -> list[Told]:
        """For each of these copies the copies that observers hear of when it is their turn. Invariant: between copies
        that are told together, at the first, is no cp.async, and so (:meth:`_loads`) nothing that orders, issues or
        writes: observers find the same of each as in its own place."""
        told: list[list[tuple[Op, tuple[int, ...]]]] = []
        first = 0
        for number, at in enumerate(run):
            if number == 0 or any(map(_is_cp_async, node.ops[run[number - 1] : at])):
                first = number
            told.append([])
            told[first].append((node.ops[at], self.bases[id(node.ops[at])][1]))
        return [tuple(copies) for copies in told]


def _steps(node: BasicBlock) -> list[Closure]:
    assert isinstance(node.steps, list)
    return node.steps


def _is_fma(op: Op) -> bool:
    return op.opcode == "call" and isinstance(op.attrs["atom"], UniversalFma) and op.attrs["atom"].type_d == F32


def _is_cp_async(op: Op) -> bool:
    return op.opcode == "call" and isinstance(op.attrs["atom"], (CpAsync, CpAsyncCommit))


def _loaded_at_once(value: Value, ops: list[Op], bases: Any) -> int:
    """How many registers the copies to ``value`` load side by side, where nothing but they and multiply-adds, as A or
    as B, touches it, and it is made once; 0 for other fragments."""
    first, *rest = ops
    loads = [op for op in rest if is_direct(op)]
    products = [op for op in rest if _is_fma(op) and op.operands[0] is not value]
    if first.opcode != "frag.alloc" or not loads or not products or len(loads) + len(products) != len(rest):
        return 0
    if any(op.operands[1] is op.operands[2] for op in products):
        return 0
    each = len(loads[0].attrs["registers"][0])
    for op in loads:
        kinds = [p.type for p in split_operands(op, op.operands)[1]]
        if op.attrs["store"] or op.attrs.get("predicated") or id(op) not in bases or each not in (1, 2, 4):
            return 0
        if any(not isinstance(k, PtrType) or k.elem != F32 or k.align % (4 * each) for k in kinds):
            return 0
        for chosen in op.attrs["registers"]:
            if chosen != tuple(range(chosen[0], chosen[0] + each)) or chosen[0] % each:
                return 0
    return each


def _are_sums(value: Value, ops: list[Op], nodes: list[BasicBlock]) -> bool:
    """Whether ``value`` are accumulators of multiply-adds that all give the same registers."""
    products = [op for op in ops[1:] if _is_fma(op) and op.operands[0] is value]
    if ops[0].opcode != "frag.alloc" or not products:
        return False
    if any(node.op is not None and value in node.op.operands for node in nodes):
        return False
    return len({(op.attrs["d_layout"], op.attrs["d_offset"]) for op in products}) == 1


def _fits(op: Op, loaded: Any, sums: Any) -> bool:
    """Whether the multiply-adds are of such fragments, and take registers as copies load them, k after k."""
    d, a, b = op.operands
    if d not in sums or a not in loaded or b not in loaded:
        return False
    plan = thread_plan(op.attrs["d_layout"], op.attrs["d_offset"], (_call(op),))
    for value, block in ((a, plan.whole_a), (b, plan.whole_b)):
        each = getattr(loaded[value], "each", loaded[value])
        if block.first is None or block.first % each or block.shape[1] % each:
            return False
    return len(set(_d_registers(plan))) == len(_d_registers(plan))


def _call(op: Op) -> Any:
    return op.attrs["a_layout"], op.attrs["a_offset"], op.attrs["b_layout"], op.attrs["b_offset"]


def _d_registers(plan: Any) -> tuple[int, ...]:
    where = plan.d
    return tuple(range(where.start, where.stop)) if isinstance(where, slice) else tuple(int(r) for r in where)


def _only_computes(op: Op) -> bool:
    """Whether ``op`` neither writes to memory nor orders anything: what cp.async writes appears at a wait."""
    if op.opcode == "call":
        return (is_direct(op) and not op.attrs["store"]) or _is_cp_async(op)
    return op.opcode in TABLE or op.opcode in COMPUTE or op.opcode.startswith(("vec.", "frag."))


# -- steps -------------------------------------------------------------------------------------------------------------


class SharedLoads:
    """Copies through a pointer (``base``), at ``distances``, to ``registers`` of an operand: of as many as a copy loads
    side by side the first."""

    def __init__(self, operand: Operand, base: int, distances: tuple[int, ...], registers: list[int]) -> None:
        self.operand, self.base, access = operand, base, operand.access
        self.least, self.most = min(distances), max(distances) + access.nbytes
        order = np.argsort(registers)
        self.moves = tuple(distances[k] - self.least for k in order)
        pieces = np.array(registers)[order] // operand.each
        together = bool((np.diff(pieces) == 1).all())
        self.pieces = slice(int(pieces[0]), int(pieces[-1]) + 1) if together else pieces
        self.aligned = not any((at - self.least) % access.width for at in distances)
        self.arrangements: dict[SharedRows, Arrangement] = {}

    def rows(self, group: Any, slots: list[Any]) -> SharedRows | None:
        """How the lanes of a group share what they load now; None where each is to load for itself."""
        pointer: Ptr = slots[self.base]
        root, buf, add = pointer.root, pointer.buf, pointer.add + self.least
        if group.mask is not None or root is None or not self.operand.wanted or not isinstance(buf, Buffer):
            return None
        if group.events is not None and (group.events.quick is None or group.wave.launch.reports_ops):
            return None
        low, high, bits = root.range
        if add < 0 or low < 0 or low + add < buf.low or high + pointer.add + self.most > buf.high:
            return None
        if not self.aligned or (bits | add) & (self.operand.access.width - 1):
            return None
        state, found = slots[self.operand.state], root.shared
        return found if state is EMPTY or state is found else None

    def load(self, group: Any, slots: list[Any], rows: SharedRows) -> None:
        pointer, access = slots[self.base], self.operand.access
        order = self.arrangements.get(rows)
        if order is None:
            count = len(self.moves)
            order = Arrangement(np.repeat(np.arange(count), rows.count), np.tile(rows.lanes, count))
            self.arrangements[rows] = order
        base = pointer.buf._base(group)
        index = pointer.root.arranged(access, base, self.moves, order)
        start = pointer.add + self.least + (base if type(base) is int else 0)
        found = pointer.buf.views[access.shift][start >> access.shift :].take(index)
        warps = len(found)
        parts = slots[self.operand.fragment].reshape(warps, -1).view(access.item)
        if isinstance(self.pieces, slice):
            parts[:, self.pieces.start * rows.count : self.pieces.stop * rows.count] = found
        else:
            where = self.pieces[:, None] * rows.count + np.arange(rows.count)
            parts[:, where.reshape(-1)] = found
        slots[self.operand.state] = rows


def _load(plain: list[Closure], number: int, told: list[Told], loads: SharedLoads, state: int) -> Closure:
    """The copy with this number of those with the steps ``plain``: all are done at the last of them. Observers hear of
    all at the first; those that follow issues hear here of the copies ``told[number]``, which are several or none.
    ``state``: the register that has, from the first copy on, the rows (SharedRows) that the copies load together. Where
    each is done by its plain step, it has how many of them those that follow issues have heard of before, or (None)
    that these steps tell of them."""
    operand, last, here = loads.operand, len(plain) - 1, told[number]
    everything, before = sum(told, ()), sum(map(len, told[:number]))

    def run(group: Any, slots: list[Any]) -> None:
        known = slots[state] if number else loads.rows(group, slots)
        if type(known) is SharedRows and not (group.events is not None and group.wave.launch.reports_ops):
            if group.events is not None:
                group.lanes.mask = None
                if number == 0:
                    group.events.loaded(group, slots[loads.base], operand.access, everything)
                if here:
                    group.events.loaded_in_order(group, slots[loads.base], operand.access, here)
            slots[state] = known
            if number == last:
                loads.load(group, slots, known)
            return
        if type(known) is SharedRows:  # an observer has woken, and wants to hear of every op from now on
            operand.spread(slots)
            _without_events(plain[:number], group, slots)
            slots[state] = before
        elif number == 0:
            operand.spread(slots)
            slots[state] = None
        heard = slots[state]
        if heard is None:
            plain[number](group, slots)
            return
        if number >= heard:
            group.lanes.mask = None
            group.events.loaded_in_order(group, slots[loads.base], operand.access, everything[number : number + 1])
        _without_events(plain[number : number + 1], group, slots)

    return run


def _without_events(steps: list[Closure], g: Any, s: list[Any]) -> None:
    """Take steps of which the observers have heard."""
    events, g.events = g.events, None
    try:
        for step in steps:
            step(g, s)
    finally:
        g.events = events


def _empty(plain: Closure, state: int) -> Closure:
    def run(group: Any, slots: list[Any]) -> None:
        plain(group, slots)
        slots[state] = EMPTY

    return run


def _product(ops: list[Op], sums: Sums, a: Operand, b: Operand, plain: Closure) -> Closure:
    plans = [thread_plan(op.attrs["d_layout"], op.attrs["d_offset"], (_call(op),)) for op in ops]
    whole = thread_plan(ops[0].attrs["d_layout"], ops[0].attrs["d_offset"], tuple(_call(op) for op in ops))
    if whole.whole_a.first is not None and whole.whole_b.first is not None:
        plans = [whole]
    kind: Any = ops[0].operands[0].type
    shape = GridShape(plans[0].a.shape[1], plans[0].b.shape[1], a.each, b.each, _d_registers(plans[0]), kind.n)

    def grid_now(group: Any, rows_a: Any, rows_b: Any) -> Grid | None:
        if group.mask is not None or type(rows_a) is not SharedRows or type(rows_b) is not SharedRows:
            return None
        if rows_a is EMPTY or rows_b is EMPTY:
            return None
        found = grid_of(shape, rows_a, rows_b)
        if found is None:
            a.wanted = b.wanted = False
        return found

    def run(group: Any, slots: list[Any]) -> None:
        rows_a, rows_b = slots[a.state], slots[b.state]
        grid = grid_now(group, rows_a, rows_b)
        if grid is None:
            a.spread(slots)
            b.spread(slots)
            sums.put_back(slots)
            plain(group, slots)
            return
        total = sums.in_order(slots, grid)
        warps = len(total)
        left, right = slots[a.fragment].reshape(warps, -1), slots[b.fragment].reshape(warps, -1)
        x = _matrix(left, [plan.whole_a for plan in plans], rows_a.count)
        y = _matrix(right, [plan.whole_b for plan in plans], rows_b.count)
        multiply = np.multiply if x.shape[1] == 1 else np.matmul  # a column by a row: BLAS has nothing to add up
        product = multiply(y.swapaxes(1, 2), x, out=scratch("thread products", total.shape, total.dtype))
        np.add(total, product, out=total)

    return run


def _matrix(part: Array, blocks: list[Block], rows: int) -> Array:
    """``[warps, K, rows * M]`` of the parts of warps."""
    found = []
    for (k, m), first, _ in blocks:
        assert first is not None
        found.append(part[:, first * rows : (first + k * m) * rows].reshape(-1, k, m * rows))
    return found[0] if len(found) == 1 else np.concatenate(found, axis=1)


def _after_putting_back(plain: Closure, sums: Sums) -> Closure:
    def run(group: Any, slots: list[Any]) -> None:
        if slots[sums.state] is not None:
            sums.put_back(slots)
        plain(group, slots)

    return run
