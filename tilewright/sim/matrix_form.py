"""Registers of matrix instructions in the order of matrices, where only matrix instructions see them.

An operand that ``ldmatrix`` loads and ``mma.sync`` multiplies goes from a matrix in shared memory to registers dealt
out to lanes, and back to a matrix. If nothing else touches a fragment, no program sees where in it an element is: here
each warp's part ``[32 * n]`` holds the matrices one after the other, as the products want them, and the rows of 16
bytes that ldmatrix reads stay whole. Groups part and meet by warps, whose parts move as they are.

Other ops read accumulators. So the sums of the products since the last other op are kept beside them, as a matrix
(``pending``), and added before the next op that names the accumulators: where, the program says, not the schedule.
Accumulators that begin at zero get the same bits as by adding at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilewright.atoms import numbers
from tilewright.atoms.mma import active_warps, call_layouts, gather, make_plan, operand_index
from tilewright.atoms.scratch import scratch
from tilewright.ir.core import Function, Op, Value
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.types import F16, F32, FragType, PtrType
from tilewright.sim.access import access_of
from tilewright.sim.moves import Arrangement, gather_arranged
from tilewright.sim.program import BasicBlock, Closure
from tilewright.sim.values import FRAG, TypedPointer

Slot = Callable[[Value], int]
ROW = 16  # bytes of a row of an 8x8 matrix
CELLS = 8  # cells of 16 bits in it


class Matrix(NamedTuple):
    """Where the matrix that a call reads is in each warp's part of a fragment: ``rows * k`` elements from ``start`` on,
    k fastest, or (``by_k``) rows fastest."""

    start: int
    rows: int
    k: int
    by_k: bool


class OperandForm(NamedTuple):
    """The matrices of a fragment by :func:`_call`, and by the id of each ldmatrix where its rows of 16 bytes go, in
    units of them, ``[repetitions, rows]``."""

    matrices: dict[Any, Matrix]
    rows: dict[int, Array]


def use_matrices(nodes: list[BasicBlock], function: Function, slot: Slot, fresh: Callable[[int], int]) -> MatrixForms:
    """The forms of the function's fragments; their ldmatrix get other steps. ``fresh`` gives a register of a kind."""
    uses: dict[Value, list[Op]] = {}
    for op in function.walk():
        for value in dict.fromkeys((*op.results, *op.operands)):
            if isinstance(value.type, FragType):
                uses.setdefault(value, []).append(op)
    operands = {value: form for value, ops in uses.items() if (form := _operand_form(value, ops)) is not None}
    pending = {value: fresh(FRAG) for value, ops in uses.items() if _sums_wait(value, ops, nodes)}
    sums = {value: next(op for op in uses[value] if _is_product(op, value)) for value in pending}
    forms = MatrixForms(operands, pending, sums)
    for node in nodes:
        for at, op in enumerate(node.ops):
            form = operands.get(op.operands[0]) if op.operands else None
            if form is not None and id(op) in form.rows:
                _steps(node)[at] = _load_matrices(op, form.rows[id(op)], [slot(v) for v in op.operands])
    return forms


class MatrixForms(NamedTuple):
    """``pending``: the register beside each fragment of accumulators; ``products``: one of the products there."""

    operands: dict[Value, OperandForm]
    pending: dict[Value, int]
    products: dict[Value, Op]

    def add_before_looks(self, nodes: list[BasicBlock], slot: Slot) -> None:
        """Let every op that names accumulators, but the products themselves, find the sums added."""
        for node in nodes:
            for at, op in enumerate(node.ops):
                for value, register in self.pending.items():
                    if value in op.operands or value in op.results:
                        node.uses.add(register)
                        if not _is_product(op, value):
                            plain = _steps(node)[at]
                            _steps(node)[at] = _after_adding(plain, self.products[value], slot(value), register)


def _steps(node: BasicBlock) -> list[Closure]:
    assert isinstance(node.steps, list)
    return node.steps


# -- what qualifies ----------------------------------------------------------------------------------------------------


def _is_product(op: Op, accumulators: Value | None = None) -> bool:
    """Whether ``op`` is a product of one warp, of floats of up to 32 bits, without further operands."""
    atom = op.attrs.get("atom")
    if atom is None or atom.name != "mma.sync" or len(op.operands) != 3:
        return False
    if atom.type_d not in (F32, F16) or atom.threads != WARP:
        return False
    return accumulators is None or op.operands[0] is accumulators


def _sums_wait(value: Value, ops: list[Op], nodes: list[BasicBlock]) -> bool:
    """Whether ``value`` are accumulators whose sums may be kept beside them: all products give all of them, in one
    order, and no op at which control may change looks at them."""
    products = [op for op in ops if _is_product(op, value)]
    kind = value.type
    assert isinstance(kind, FragType)
    if (
        not products
        or kind.elem != F32
        or ops[0].opcode != "frag.alloc"
        or any(n.op is not None and value in n.op.operands for n in nodes)
    ):
        return False
    first = products[0]
    same = all(
        op.attrs["atom"] == first.attrs["atom"]
        and (op.attrs["d_layout"], op.attrs["d_offset"]) == (first.attrs["d_layout"], first.attrs["d_offset"])
        for op in products
    )
    return same and _plan([first]).scatter is not None


def _plan(ops: list[Op]) -> Any:
    first = ops[0]
    sizes = [v.type.n for v in first.operands if isinstance(v.type, FragType)]
    return make_plan(first.attrs["atom"], first.attrs["d_layout"], first.attrs["d_offset"], call_layouts(ops), *sizes)


def _call(op: Op, role: str) -> Any:
    return op.attrs["atom"], role, op.attrs[f"{role}_layout"], op.attrs[f"{role}_offset"]


def _operand_form(value: Value, ops: list[Op]) -> OperandForm | None:
    """The form of a fragment that only its frag.alloc, ldmatrix and products name; None for another fragment."""
    kind = value.type
    assert isinstance(kind, FragType)
    loads = [op for op in ops[1:] if op.opcode == "call" and op.attrs["atom"].name == "ldmatrix"]
    products = [op for op in ops[1:] if _is_product(op) and value is not op.operands[0]]
    if not loads or not products or len(loads) + len(products) + 1 != len(ops) or ops[0].opcode != "frag.alloc":
        return None
    if kind.elem.width not in (8, 16, 32) or any(op.operands[1] is op.operands[2] for op in products):
        return None
    index: dict[Any, Array] = {}
    for op in products:
        role = "a" if value is op.operands[1] else "b"
        index[_call(op, role)] = _indices(op, role, kind.n)
    for by_k in (False, True):
        form = _arranged(index, loads, kind, by_k)
        if form is not None:
            return form
    return None


def _indices(op: Op, role: str, n: int) -> Array:
    """``[rows, k]`` which of the ``32 * n`` registers of a warp each element of the matrix is."""
    atom = op.attrs["atom"]
    m, columns, k = atom.shape_mnk
    layout, rows = (atom.layout_a, m) if role == "a" else (atom.layout_b, columns)
    index: Array = operand_index(atom, layout, rows, k, op.attrs[f"{role}_layout"], op.attrs[f"{role}_offset"], n)[0]
    return index


def _arranged(index: dict[Any, Array], loads: list[Op], kind: FragType, by_k: bool) -> OperandForm | None:
    """The form with the matrices one after the other; None if they overlap, or tear the rows of an ldmatrix apart."""
    n = kind.n
    place = np.full(WARP * n, -1)
    matrices, starts, at = {}, {}, 0
    for call, registers in index.items():
        content = registers.tobytes()
        if content not in starts:
            if (place[registers] >= 0).any():
                return None
            place[(registers.T if by_k else registers).reshape(-1)] = np.arange(at, at + registers.size)
            starts[content], at = at, at + registers.size
        matrices[call] = Matrix(starts[content], registers.shape[0], registers.shape[1], by_k)
    place[place < 0] = np.arange(at, WARP * n)
    rows = {}
    for op in loads:
        cells = op.attrs["atom"].to_registers(np.arange(WARP * CELLS, dtype=np.uint16).reshape(1, WARP, CELLS))
        pieces = np.empty((len(op.attrs["registers"]), WARP * CELLS), np.int64)
        for at_row, registers in zip(pieces, op.attrs["registers"], strict=True):
            at_row[cells] = _cells(place[np.arange(WARP)[:, None] * n + np.array(registers)], kind.elem.width)
        pieces = pieces.reshape(len(pieces), WARP, CELLS)[:, : CELLS * op.attrs["atom"].num_matrices]
        first = pieces[..., :1]
        if (pieces != first + np.arange(CELLS)).any() or (first % CELLS).any():
            return None
        rows[id(op)] = first[..., 0] // CELLS
    return OperandForm(matrices, rows)


def _cells(places: Array, width: int) -> Array:
    """Where the cells of 16 bits of registers of ``width`` bits are, in units of them; -1: one is torn apart."""
    if width == 32:
        return (2 * places[..., None] + np.arange(2)).reshape(len(places), -1)
    if width == 16:
        return places
    first, second = places[:, 0::2], places[:, 1::2]
    return np.where((first % 2 == 0) & (second == first + 1), first // 2, -1)


# -- steps -------------------------------------------------------------------------------------------------------------


def _load_matrices(op: Op, rows: Array, operands: list[int]) -> Closure:
    """An ldmatrix to a fragment in matrix form."""
    atom, (f, *pointers) = op.attrs["atom"], operands
    kinds = [(v.type.elem, v.type.align) for v in op.operands[1:] if isinstance(v.type, PtrType)]
    access = access_of(kinds[0][0], ROW // kinds[0][0].bytes, ROW, False)
    busy = rows.shape[1]
    order = np.argsort(rows, axis=None)
    arrangement = Arrangement(order // busy, order % busy)
    places = rows.reshape(-1)[order]
    where: Any = slice(int(places[0]), int(places[-1]) + 1) if (np.diff(places) == 1).all() else places

    def run(group: Any, slots: list[Any]) -> None:
        lanes, fragment = group.lanes, slots[f]
        lanes.mask, lanes.op = group.mask, op
        items = fragment.reshape(lanes.warps, -1).view(access.item)
        addresses = [slots[p] for p in pointers]
        if lanes.mask is None and busy == WARP:
            items_read = gather_arranged(group, addresses, access, arrangement)
            if items_read is not None:
                items[:, where] = items_read
                return
        mask, active = atom.busy_mask(lanes), active_warps(lanes, atom)
        typed = [TypedPointer(pointer, *kind) for pointer, kind in zip(addresses, kinds, strict=True)]
        for one, to in zip(lanes.load_each(typed, access.n, mask), rows, strict=True):
            cells = np.ascontiguousarray(one).view(access.item).reshape(lanes.warps, WARP)[:, :busy]
            if active is None:
                items[:, to] = cells
            else:
                items[np.flatnonzero(active)[:, None], to] = cells[active]

    return run


def products(ops: list[Op], forms: MatrixForms, slot: Slot) -> Closure | None:
    """The step of products on one set of accumulators that are done together (``fusion.py``); None if neither their
    operands nor their accumulators have another form."""
    first = ops[0]
    if not _is_product(first):
        return None
    d, a, b = first.operands
    form_a, form_b, register = forms.operands.get(a), forms.operands.get(b), forms.pending.get(d)
    if form_a is None and form_b is None and register is None:
        return None
    atom, plan, (to, left, right) = first.attrs["atom"], _plan(ops), [slot(v) for v in (d, a, b)]
    where_a = [form_a.matrices[_call(op, "a")] for op in ops] if form_a is not None else None
    where_b = [form_b.matrices[_call(op, "b")] for op in ops] if form_b is not None else None

    def run(group: Any, slots: list[Any]) -> None:
        lanes = group.lanes
        lanes.mask, lanes.op = group.mask, ops[-1]
        active = active_warps(lanes, atom)
        x = _operand("a", slots[left].reshape(lanes.warps, -1), active, where_a, atom.type_a, plan.a)
        y = _operand("b", slots[right].reshape(lanes.warps, -1), active, where_b, atom.type_b, plan.b)
        shape = (len(x), x.shape[1], y.shape[1])
        if register is None:
            part = slots[to].reshape(lanes.warps, -1)
            total = part if active is None else part[active]
            step = atom.shape_mnk[2] if atom.type_d == F16 else x.shape[2]  # half sums are rounded at each instruction
            for k in range(0, x.shape[2], step):
                x_k, y_k = x[..., k : k + step], y[..., k : k + step]
                atom.add(total, _multiplied(x_k, y_k, scratch("products", shape, x.dtype)), plan)
            if active is not None:
                part[active] = total
        elif active is not None:
            if slots[register] is None:
                slots[register] = np.zeros_like(slots[to])
            sums = slots[register].reshape(lanes.warps, *shape[1:])
            sums[active] += _multiplied(x, y, scratch("products", shape, x.dtype))
        elif slots[register] is None:
            slots[register] = np.empty_like(slots[to])
            _multiplied(x, y, slots[register].reshape(shape))
        else:
            sums = slots[register].reshape(shape)
            np.add(sums, _multiplied(x, y, scratch("products", shape, x.dtype)), out=sums)

    return run


def _multiplied(x: Array, y: Array, out: Array) -> Array:
    return np.matmul(x, y.swapaxes(1, 2), out=out)


def _operand(
    side: str, registers: Array, active: Array | None, where: list[Matrix] | None, type_: Any, plan: Any
) -> Array:
    """``[warps, rows, K]`` of the active warps, as numbers that multiply exactly."""
    if active is not None:
        registers = registers[active]
    if where is None:
        return numbers.widen(gather(side, numbers.raw(registers, type_), plan), type_)[:, 0]
    parts, by_k = [], where[0].by_k
    for start, rows, k, _ in where:
        part = numbers.raw(registers[:, start : start + rows * k], type_)
        # Rows as items: what is put together is copied by rows, not by numbers.
        row = np.dtype((np.void, k * part.itemsize))
        parts.append(part.reshape(-1, k, rows) if by_k else part.reshape(-1, rows, k).view(row))
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1 if by_k else 2)
    wide = numbers.widen(joined if by_k else joined.view(part.dtype), type_)
    return wide.swapaxes(1, 2) if by_k else wide


def _after_adding(plain: Closure, product: Op, d: int, register: int) -> Closure:
    """``plain``, when the pending sums have been added to the accumulators."""
    atom, plan = product.attrs["atom"], _plan([product])

    def run(group: Any, slots: list[Any]) -> None:
        pending = slots[register]
        if pending is not None:
            slots[register] = None
            warps = group.lanes.warps
            atom.add(slots[d].reshape(warps, -1), pending.reshape(warps, -1), plan)
        plain(group, slots)

    return run
