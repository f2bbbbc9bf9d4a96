"""The values that registers hold, and the row operations that split and join groups of warps.

A register (slot) holds one SSA value for all lanes of a group. What is the same for every lane is kept once:

====== ======================== ===========================
kind   same for every lane      different per lane
====== ======================== ===========================
scalar NumPy scalar             ``[L]``
vector ``[n]``                  ``[L, n]``
frag   -                        ``[L, n]`` (live, mutable)
ptr    ``Ptr`` with int offset  ``Ptr`` with ``[L]`` int64
mask   None (all lanes)         bool ``[L]``
====== ======================== ===========================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.types import WIDE, FragType, PtrType, ScalarType, Type, VecType
from tilewright.sim.offsets import Offsets

SCALAR, VECTOR, FRAG, PTR, MASK = range(5)
LANE_NDIM = {SCALAR: 1, VECTOR: 2, FRAG: 2, MASK: 1}


class Ptr:
    """A pointer: a buffer (anything with the methods of :class:`tilewright.sim.memory.Buffer`) and byte offset(s) in
    it: ``off``, an int or ``[L]``, which is ``add`` plus the offsets of ``root``, where it has one."""

    __slots__ = ("buf", "root", "add", "_off")

    def __init__(self, buf: Any, off: Any) -> None:
        self.buf = buf
        self._off = off
        if type(off) is int:
            self.root: Offsets | None = None
            self.add = off
        else:
            self.root = Offsets(off)
            self.add = 0

    @classmethod
    def at(cls, buf: Any, root: Offsets | None, add: int) -> Ptr:
        made = cls.__new__(cls)
        made.buf, made.root, made.add = buf, root, add
        made._off = None
        return made

    @property
    def off(self) -> Any:
        offsets = self._off
        if offsets is None:
            offsets = self._off = self.add if self.root is None else self.root.array + self.add
        return offsets

    def plus(self, move: Any) -> Ptr:
        """The pointer plus this many bytes: an int, or ``[L]`` int64."""
        if type(move) is int:
            return Ptr.at(self.buf, self.root, self.add + move)
        return Ptr.at(self.buf, Offsets(move) if self.root is None else self.root.plus(move), self.add)


class TypedPointer:
    """A pointer as instructions see it: with the element type and alignment of the operand."""

    __slots__ = ("pointer", "buf", "elem", "align")

    def __init__(self, pointer: Ptr, elem: ScalarType, align: int) -> None:
        self.pointer = pointer
        self.buf = pointer.buf
        self.elem = elem
        self.align = align

    @property
    def off(self) -> Any:
        return self.pointer.off


def kind_of(type_: Type) -> int:
    if isinstance(type_, VecType):
        return VECTOR
    if isinstance(type_, FragType):
        return FRAG
    return PTR if isinstance(type_, PtrType) else SCALAR


def scalar_value(value: Any, elem: ScalarType) -> Any:
    """A Python number as a register that is the same for every lane. (Python's integers, which stand for those of 128
    bits, have no NumPy scalar: an array without modes has the methods of one.)"""
    array = np.asarray(value).astype(elem.dtype)
    return array if elem in WIDE else array[()]


def poison_value(elem: ScalarType) -> Any:
    """The contents of unwritten registers and bytes: NaN for floats, 0xCDCD... for integers, True for Booleans."""
    if elem.is_float:
        return np.asarray(np.nan).astype(elem.dtype)[()]
    if elem.kind == "bool":
        return np.True_
    return np.frombuffer(b"\xcd" * elem.bytes, elem.dtype)[0]


def poisoned(elem: ScalarType, shape: tuple[int, ...]) -> np.ndarray:
    out = np.empty(shape, elem.dtype)
    out.fill(poison_value(elem))
    return out


def blend(mask: np.ndarray, new: Any, old: Any, kind: int) -> Any:
    """``new`` in the lanes of ``mask``, ``old`` elsewhere."""
    if new is old or old is None:
        return new
    if new is None:
        return old
    if kind == SCALAR:
        return np.where(mask, new, old)
    if kind == VECTOR:
        return np.where(mask[:, None], new, old)
    if kind == PTR:
        return blend_pointers(mask, new, old)
    raise TypeError("fragments are not selected by lane")


def blend_pointers(mask: np.ndarray, new: Ptr, old: Ptr) -> Ptr:
    if new.buf is not old.buf:
        # Pointers into different arrays have absolute addresses in common.
        space = new.buf.space
        new, old = space.anywhere(new), space.anywhere(old)
    if new.root is old.root and new.add == old.add:
        return new
    return Ptr(new.buf, np.where(mask, new.off, old.off))


def take_rows(value: Any, kind: int, rows: Any, memo: dict[int, Any]) -> Any:
    """The lanes ``rows`` (slice or index array) of a register; ``memo`` keeps two names of one fragment one."""
    if value is None:
        return None
    if kind == PTR:
        return value if value.root is None else Ptr.at(value.buf, _take_root(value.root, rows, memo), value.add)
    if np.ndim(value) < LANE_NDIM[kind]:
        return value
    taken = memo.get(id(value))
    if taken is None:
        taken = memo[id(value)] = value[rows]
    return taken


def _take_root(root: Offsets, rows: Any, memo: dict[int, Any]) -> Offsets:
    """Pointers that share their offsets go on sharing them."""
    taken = memo.get(id(root))
    if taken is None:
        taken = memo[id(root)] = Offsets(root.array[rows])
    return taken


def join_rows(
    values: list[Any], kind: int, sizes: list[int], order: np.ndarray, memo: dict[tuple[int, ...], Any]
) -> Any:
    """One register out of those of several groups; ``order`` sorts the concatenated lanes."""
    first = values[0]
    if all(v is first for v in values[1:]) and (
        first is None or (first.root is None if kind == PTR else np.ndim(first) < LANE_NDIM[kind])
    ):
        return first
    if kind == PTR:
        return _join_pointers(values, sizes, order, memo)
    key = tuple(map(id, values))
    joined = memo.get(key)
    if joined is None:
        joined = memo[key] = _join(values, kind, sizes, order)
    return joined


def _join(values: list[Any], kind: int, sizes: list[int], order: np.ndarray) -> Any:
    if kind == MASK:
        return _stack([np.True_ if v is None else v for v in values], 1, sizes, order)
    if any(v is None for v in values):  # those that have not set the register do not read it either
        values = _filled(values, kind, sizes)
    uniform = [v for v in values if np.ndim(v) < LANE_NDIM[kind]]
    if len(uniform) == len(values) and all(_same(v, uniform[0]) for v in uniform[1:]):
        return uniform[0]
    return _stack(values, LANE_NDIM[kind], sizes, order)


def _join_pointers(values: list[Any], sizes: list[int], order: np.ndarray, memo: dict[tuple[int, ...], Any]) -> Ptr:
    if any(v is None for v in values):
        values = _filled(values, PTR, sizes)
    first = values[0]
    # Groups that chose different arrays: from here on the pointer is an absolute address.
    if any(v.buf is not first.buf for v in values):
        values = [first.buf.space.anywhere(v) for v in values]
        first = values[0]
    if any(v.add != first.add for v in values):
        # Different constants: no root is common, so the offsets become one.
        values = [Ptr(v.buf, v.off) if v.root is not None else v for v in values]
    elif all(v.root is None for v in values):
        return first
    elif all(v.root is not None for v in values):
        key = tuple(id(v.root) for v in values)
        root = memo.get(key)
        if root is None:
            root = memo[key] = Offsets(_stack([v.root.array for v in values], 1, sizes, order))
        return Ptr.at(first.buf, root, first.add)
    return Ptr(first.buf, _stack([v.off for v in values], 1, sizes, order))


def _filled(values: list[Any], kind: int, sizes: list[int]) -> list[Any]:
    like = next(v for v in values if v is not None)
    if kind == PTR:
        return [Ptr(like.buf, np.zeros(n, np.int64)) if v is None else v for v, n in zip(values, sizes, strict=True)]
    tail = np.shape(like)[1:] if np.ndim(like) == LANE_NDIM[kind] else np.shape(like)
    dtype = np.asarray(like).dtype
    return [np.zeros((n, *tail), dtype) if v is None else v for v, n in zip(values, sizes, strict=True)]


def _same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b))


def _stack(values: list[Any], ndim: int, sizes: list[int], order: np.ndarray) -> np.ndarray:
    parts = []
    for value, size in zip(values, sizes, strict=True):
        array = np.asarray(value)
        parts.append(array if array.ndim == ndim else np.broadcast_to(array, (size, *array.shape)))
    return np.concatenate(parts)[order]
