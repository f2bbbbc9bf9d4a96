"""Registers of all lanes as a few arrays side by side, in the place of one array ``[L, n]``.

A vector that is copied from memory piece by piece, computed with element by element, and copied to memory again never
needs one row a lane: each piece stays the array ``[L, k]`` that the gather gave, which saves writing and reading rows
with holes. Only steps of :mod:`.forwarding` make and take :class:`Columns`; what leaves them is an array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir.arithmetic import DIVISIONS, on_lanes
from tilewright.ir.casts import cast
from tilewright.ir.core import Op, Value
from tilewright.ir.lanes import Array
from tilewright.ir.types import VecType, element_of
from tilewright.sim.program import BasicBlock, Closure


class Columns:
    """``n`` registers of ``lanes`` lanes: ``pieces[i]`` has those from ``starts[i]`` on. They are added once, by the
    copy or the operation that makes them; or the copy takes :meth:`array`, and writes to that."""

    __slots__ = ("shape", "dtype", "starts", "pieces", "_array")

    def __init__(self, lanes: int, n: int, dtype: Any) -> None:
        self.shape, self.dtype = (lanes, n), np.dtype(dtype)
        self.starts: list[int] = []
        self.pieces: list[Array] = []
        self._array: Array | None = None

    def add(self, start: int, piece: Array) -> None:
        self.starts.append(start)
        self.pieces.append(piece)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, int]:
        """The strides of :meth:`array`, in bytes."""
        return self.shape[1] * self.itemsize, self.itemsize

    @property
    def whole(self) -> bool:
        """Whether the pieces have been added, all of them and in their order."""
        at = 0
        for start, piece in zip(self.starts, self.pieces, strict=True):
            if start != at:
                return False
            at += piece.shape[1]
        return at == self.shape[1]

    def registers(self, start: int, stop: int) -> Array:
        """``[L, stop - start]``: a view of one piece, where they are in one."""
        for first, piece in zip(self.starts, self.pieces, strict=True):
            if first <= start and stop <= first + piece.shape[1]:
                return piece[:, start - first : stop - first]
        return self.array()[:, start:stop]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """For checks, which look at registers by ``numpy.asarray``."""
        return np.array(self.array(), dtype, copy=copy)

    def array(self) -> Array:
        """``[L, n]``."""
        whole = self._array
        if whole is None:
            whole = self._array = np.empty(self.shape, self.dtype)
            for start, piece in zip(self.starts, self.pieces, strict=True):
                whole[:, start : start + piece.shape[1]] = piece
        return whole


# -- where they are used -----------------------------------------------------------------------------------------------

# Operations that give an element the same bits wherever in an array it stands (NumPy's exp does not promise that).
EXACT = frozenset("add sub mul div min max neg abs sqrt and or xor not shl shr eq ne lt le gt ge fma cast".split())


def use_columns(fragments: list[Any], readers: Counter[Value], slot: Callable[[Value], int]) -> None:
    """Let values go from copy to copy as columns. ``fragments``: the :class:`.forwarding.Fragment` of the function;
    ``readers``: how many operands of ops each value is."""
    sinks = {id(f.first.op) for f in fragments if f.kind == "stored" and all(_copies_all(u.op, f.n) for u in f.rest)}
    for source in fragments:
        if source.kind == "loaded" and all(id(use.op) in source.viewed for use in source.rest):
            _follow(source, sinks, readers, slot)


def _follow(source: Any, sinks: set[int], readers: Counter[Value], slot: Callable[[Value], int]) -> None:
    node = source.definition.node
    if not any(_take_columns(use.op.result, node, sinks, readers) for use in source.rest):
        return
    source.make_columns()
    reached = set()
    for use in source.rest:
        keeps = _take_columns(use.op.result, node, sinks, readers)
        node.steps[use.at] = _from_fragment(slot(source.value), slot(use.op.result), keeps)
        reached |= {use.op.result} if keeps else set()
    for at, op in enumerate(node.ops):
        if _by_element(op) and not reached.isdisjoint(op.operands):
            keeps = _take_columns(op.result, node, sinks, readers)
            operands = [slot(value) for value in op.operands]
            node.steps[at] = _by_columns(node.steps[at], op, operands, slot(op.result), keeps)
            reached |= {op.result} if keeps else set()


def _take_columns(value: Value, node: BasicBlock, sinks: set[int], readers: Counter[Value]) -> bool:
    """Whether all who read ``value`` take columns."""
    own = [op for op in node.ops for operand in op.operands if operand is value]
    return len(own) == readers[value] and all(_by_element(op) or id(op) in sinks for op in own)


def _by_element(op: Op) -> bool:
    if op.opcode not in EXACT or not isinstance(op.result.type, VecType):
        return False
    return not (op.opcode in DIVISIONS and element_of(op.operands[0].type).is_integer)


def _copies_all(op: Op, n: int) -> bool:
    return op.opcode == "call" and op.attrs["atom"].name == "copy" and bool(op.attrs.get("store"))


# -- steps -------------------------------------------------------------------------------------------------------------


def _from_fragment(f: int, d: int, keeps: bool) -> Closure:
    """The vector of all registers of a fragment."""

    def run(group: Any, slots: list[Any]) -> None:
        fragment = slots[f]
        slots[d] = fragment.array() if type(fragment) is Columns and not keeps else fragment

    return run


def _by_columns(plain: Closure, op: Op, operands: list[int], d: int, keeps: bool) -> Closure:
    """``op``, which acts element by element, on operands of which some may be columns. ``keeps``: all who read the
    result take columns."""
    source, target = element_of(op.operands[0].type), element_of(op.result.type)
    function = cast(source, target) if op.opcode == "cast" else on_lanes(op.opcode, source)

    def run(group: Any, slots: list[Any]) -> None:
        like = next((slots[o] for o in operands if type(slots[o]) is Columns), None)
        if like is None:
            plain(group, slots)
            return
        made = Columns(like.shape[0], like.shape[1], target.dtype)
        for start, piece in zip(like.starts, like.pieces, strict=True):
            stop = start + piece.shape[1]
            made.add(start, function(*[_part(slots[o], start, stop) for o in operands]))
        slots[d] = made if keeps else made.array()

    return run


def _part(value: Any, start: int, stop: int) -> Any:
    """The elements of an operand: columns, ``[L, n]``, ``[n]`` or one number for all elements."""
    if type(value) is Columns:
        return value.registers(start, stop)
    return value[..., start:stop] if np.ndim(value) else value
