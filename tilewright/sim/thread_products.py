"""Multiply-adds of single threads as one product a warp, where lanes share their operands.

The threads of a warp that multiply on FMA units are mostly a grid: all lanes of a row load the same part of A, all of a
column the same part of B. Loaded through equal offsets by one copy, registers are equal. So a fragment that only such
copies and multiply-adds touch is kept once for each row (or column) of a warp, k after k, and the multiply-adds are one
matrix product of it, ``[columns * N, K] * [K, rows * M]``; the accumulators are kept in the order of that product until
another op looks at them. Groups part and meet by warps, whose parts of the fragments move as they are.

Which lanes share is found out from the offsets, when the program runs. Where they do not, or the offsets are not known
to be inside and aligned, or lanes rest, the fragments have the registers of each lane, and the plain steps go on.

Invariant. Beside each such fragment a register, its *state*, says how its bytes are to be read: by lanes (None), by the
rows of a warp (:class:`~.shared_loads.Operand`), or in the order of a product (:class:`Sums`). Every step that touches
the fragment looks there first: the steps made here go on from it, and all other steps are preceded by one that gives
each lane its registers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.atoms.copy import split_operands
from tilewright.atoms.cp_async import CpAsync, CpAsyncCommit
from tilewright.atoms.fma import Block, UniversalFma, thread_plan
from tilewright.atoms.mma import call_layouts
from tilewright.atoms.scratch import scratch
from tilewright.ir.arithmetic import TABLE
from tilewright.ir.core import Function, Op, Value
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.types import F32, FragType, PtrType
from tilewright.sim.direct_copies import is_direct
from tilewright.sim.offsets import SharedRows
from tilewright.sim.program import BasicBlock, Closure, nothing
from tilewright.sim.shared_loads import EMPTY, Operand, Published, SharedLoads, shared_load, states_by_warp
from tilewright.sim.values import FRAG, MASK

Slot = Callable[[Value], int]
COMPUTE = frozenset("ptr.add ptr.cast ptr.toint ptr.fromint cast bitcast select sreg smem.alloc load".split())


# -- the grid of a warp ------------------------------------------------------------------------------------------------


class Grid:
    """``places``: for each element of the product, whose ``shape`` is ``[columns * N, rows * M]``, where it is in a
    warp's part ``[32 * registers]`` of the accumulators."""

    __slots__ = ("shape", "places")
    ndim = 0  # a register that has it is the same for all lanes

    def __init__(self, shape: tuple[int, int], places: Array) -> None:
        self.shape, self.places = shape, places


class GridShape(NamedTuple):
    """What the multiply-adds of one thread are."""

    m: int
    n: int
    each_a: int
    """Registers that one copy to A loads side by side."""
    each_b: int
    d: tuple[int, ...]
    """The registers of the sums, (m, n) at ``n * M + m``."""
    registers: int
    """How many the fragment of the sums has."""


@lru_cache(maxsize=256)
def grid_of(shape: GridShape, a: SharedRows, b: SharedRows) -> Grid | None:
    """The grid of lanes that share A by the rows ``a`` and B by the rows ``b``; None where the lanes are not one for
    each pair of a row of A and one of B."""
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
    """Accumulators that are kept in the order of the product until another op looks at them. While the register
    ``state`` has a :class:`Grid`, the sums are in ``kept``, and what ``fragment`` has is old."""

    def __init__(self, fragment: int, kept: int, state: int) -> None:
        self.fragment, self.kept, self.state = fragment, kept, state

    def in_order(self, slots: list[Any], grid: Grid) -> Array:
        """The sums as the product has them, ``[warps, *grid.shape]``, to be added to in place."""
        if slots[self.state] is not grid:
            self.put_back(slots)
            fragment = slots[self.fragment]
            slots[self.kept] = fragment.reshape(-1, WARP * fragment.shape[1]).take(grid.places, axis=1)
            slots[self.kept] = slots[self.kept].reshape(len(fragment), -1)
            slots[self.state] = grid
        sums: Array = slots[self.kept].reshape(-1, *grid.shape)
        return sums

    def put_back(self, slots: list[Any]) -> None:
        """Give each lane its sums, in the fragment."""
        state, slots[self.state] = slots[self.state], None
        for grid, warps in states_by_warp(state):
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
    """Chooses the operands and sums of a function that are kept so, and makes their steps. ``bases``: for each copy, by
    its id, the pointer that it goes through, and the distances from it in bytes (:mod:`.direct_copies`)."""

    def __init__(
        self,
        nodes: list[BasicBlock],
        function: Function,
        slot: Slot,
        fresh: Callable[[int], int],
        bases: dict[int, tuple[Value, tuple[int, ...]]],
    ) -> None:
        self.nodes, self.slot, self.fresh, self.bases = nodes, slot, fresh, bases
        uses = _uses_of_fragments(function)
        # Fragments that forwarding makes at their first use have a step for that already.
        elsewhere = {id(op) for node in nodes for at, op in enumerate(node.ops) if _steps(node)[at] is nothing}
        loaded = {
            value: each
            for value, ops in uses.items()
            if id(ops[0]) not in elsewhere and (each := _loaded_at_once(value, ops, bases))
        }
        products = {value: [op for op in ops if _is_fma(op)] for value, ops in uses.items()}
        sums = {value for value, ops in uses.items() if _are_sums(value, ops, nodes)}
        loaded = _of_fitting_products(loaded, products, sums)
        self.operands = {v: Operand(slot(v), fresh(MASK), each) for v, each in loaded.items()}
        self.sums = {
            value: Sums(slot(value), fresh(FRAG), fresh(MASK))
            for value in uses
            if value in sums and any(_fits(op, loaded, sums) for op in products[value])
        }
        self.done: set[int] = set()  # the ids of the products that are done so
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
        runs: list[tuple[Value, list[int]]] = []
        going: dict[Value, list[int]] = {}
        for at, op in enumerate(node.ops):
            value = op.operands[0] if op.operands else None
            if is_direct(op) and value in self.operands:
                run = going.get(value)
                if run is None or self.bases[id(node.ops[run[0]])][0] is not self.bases[id(op)][0]:
                    going[value] = run = []
                    runs.append((value, run))
                run.append(at)
            elif id(op) in self.done:
                if _steps(node)[at] is not nothing:
                    going.clear()
            elif not _only_computes(op):
                going.clear()
        return runs

    def _load_together(self, node: BasicBlock, value: Value, run: list[int]) -> None:
        operand, ops = self.operands[value], [node.ops[at] for at in run]
        base = self.slot(self.bases[id(ops[0])][0])
        distances = [self.bases[id(op)][1] for op in ops]
        registers = [chosen[0] for op in ops for chosen in op.attrs["registers"]]
        loads = SharedLoads(operand, base, sum(distances, ()), registers)
        plain, published, state = [_steps(node)[at] for at in run], self._published(node, run), self.fresh(MASK)
        for number, at in enumerate(run):
            _steps(node)[at] = shared_load(plain, number, published, loads, state)

    def _published(self, node: BasicBlock, run: list[int]) -> list[Published]:
        """For each of these copies the copies of which observers are notified at its place. Invariant: between copies
        that are published together, at the first, is no cp.async, and so (:meth:`_loads`) nothing that orders, issues
        or writes: observers find the same of each as in its own place."""
        published: list[list[tuple[Op, tuple[int, ...]]]] = []
        first = 0
        for number, at in enumerate(run):
            if number == 0 or any(map(_is_cp_async, node.ops[run[number - 1] : at])):
                first = number
            published.append([])
            published[first].append((node.ops[at], self.bases[id(node.ops[at])][1]))
        return [tuple(copies) for copies in published]


def _uses_of_fragments(function: Function) -> dict[Value, list[Op]]:
    """The ops that make, read or write each fragment of float32, in the order of the program."""
    uses: dict[Value, list[Op]] = {}
    for op in function.walk():
        for value in dict.fromkeys((*op.results, *op.operands)):
            if isinstance(value.type, FragType) and value.type.elem == F32:
                uses.setdefault(value, []).append(op)
    return uses


def _steps(node: BasicBlock) -> list[Closure]:
    assert isinstance(node.steps, list)
    return node.steps


def _is_fma(op: Op) -> bool:
    return op.opcode == "call" and isinstance(op.attrs["atom"], UniversalFma) and op.attrs["atom"].type_d == F32


def _is_cp_async(op: Op) -> bool:
    return op.opcode == "call" and isinstance(op.attrs["atom"], (CpAsync, CpAsyncCommit))


def _of_fitting_products(
    loaded: dict[Value, int], products: dict[Value, list[Op]], sums: set[Value]
) -> dict[Value, int]:
    """The fragments all of whose products fit. One that is left out may make products of another one unfit, which is
    then left out, too."""
    while True:
        kept = {v: each for v, each in loaded.items() if all(_fits(op, loaded, sums) for op in products[v])}
        if len(kept) == len(loaded):
            return kept
        loaded = kept


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
    regular = each in (1, 2, 4) and all(id(op) in bases and _loads_vectors(op, each) for op in loads)
    return each if regular else 0


def _loads_vectors(op: Op, each: int) -> bool:
    """Whether a copy loads aligned vectors of ``each`` float32 in all lanes, to aligned runs of registers."""
    if op.attrs["store"] or op.attrs.get("predicated"):
        return False
    kinds = [pointer.type for pointer in split_operands(op, op.operands)[1]]
    if any(not isinstance(k, PtrType) or k.elem != F32 or k.align % (4 * each) for k in kinds):
        return False
    runs = op.attrs["registers"]
    return all(run == tuple(range(run[0], run[0] + each)) and run[0] % each == 0 for run in runs)


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
    plan = thread_plan(op.attrs["d_layout"], op.attrs["d_offset"], call_layouts([op]))
    for value, block in ((a, plan.whole_a), (b, plan.whole_b)):
        each = getattr(loaded[value], "each", loaded[value])
        if block.first is None or block.first % each or block.shape[1] % each:
            return False
    return len(set(_d_registers(plan))) == len(_d_registers(plan))


def _d_registers(plan: Any) -> tuple[int, ...]:
    where = plan.d
    return tuple(range(where.start, where.stop)) if isinstance(where, slice) else tuple(int(r) for r in where)


def _only_computes(op: Op) -> bool:
    """Whether ``op`` neither writes to memory nor orders anything: what cp.async writes appears at a wait."""
    if op.opcode == "call":
        return (is_direct(op) and not op.attrs["store"]) or _is_cp_async(op)
    return op.opcode in TABLE or op.opcode in COMPUTE or op.opcode.startswith(("vec.", "frag."))


# -- steps -------------------------------------------------------------------------------------------------------------


def _empty(plain: Closure, state: int) -> Closure:
    """The step that makes an operand's fragment."""

    def run(group: Any, slots: list[Any]) -> None:
        plain(group, slots)
        slots[state] = EMPTY

    return run


def _product(ops: list[Op], sums: Sums, a: Operand, b: Operand, plain: Closure) -> Closure:
    plans = [thread_plan(op.attrs["d_layout"], op.attrs["d_offset"], call_layouts([op])) for op in ops]
    whole = thread_plan(ops[0].attrs["d_layout"], ops[0].attrs["d_offset"], call_layouts(ops))
    if whole.whole_a.first is not None and whole.whole_b.first is not None:
        plans = [whole]
    kind: Any = ops[0].operands[0].type
    shape = GridShape(plans[0].a.shape[1], plans[0].b.shape[1], a.each, b.each, _d_registers(plans[0]), kind.n)

    def grid_now(group: Any, rows_a: Any, rows_b: Any) -> Grid | None:
        if group.mask is not None or type(rows_a) is not SharedRows or type(rows_b) is not SharedRows:
            return None
        if rows_a is EMPTY or rows_b is EMPTY:
            return None
        grid = grid_of(shape, rows_a, rows_b)
        if grid is None:
            a.wanted = b.wanted = False
        return grid

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
    parts = []
    for (k, m), first, _ in blocks:
        assert first is not None
        parts.append(part[:, first * rows : (first + k * m) * rows].reshape(-1, k, m * rows))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _after_putting_back(plain: Closure, sums: Sums) -> Closure:
    """The step of an op that reads or writes the sums by lanes."""

    def run(group: Any, slots: list[Any]) -> None:
        if slots[sums.state] is not None:
            sums.put_back(slots)
        plain(group, slots)

    return run
