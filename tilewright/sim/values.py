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

from tilewright.ir.types import FragType, PtrType, ScalarType, Type, VecType

SCALAR, VECTOR, FRAG, PTR, MASK = range(5)
LANE_NDIM = {SCALAR: 1, VECTOR: 2, FRAG: 2, MASK: 1}


class Ptr:
    """A pointer: a buffer (anything with the methods of :class:`tilewright.sim.memory.Buffer`) and byte offset(s) in
    it."""

    __slots__ = ("buf", "off")

    def __init__(self, buf: Any, off: Any) -> None:
        self.buf = buf
        self.off = off


class Handle:
    """A pointer as instructions see it: with the element type and alignment of the operand."""

    __slots__ = ("buf", "off", "elem", "align")

    def __init__(self, pointer: Ptr, elem: ScalarType, align: int) -> None:
        self.buf = pointer.buf
        self.off = pointer.off
        self.elem = elem
        self.align = align


def kind_of(type_: Type) -> int:
    if isinstance(type_, VecType):
        return VECTOR
    if isinstance(type_, FragType):
        return FRAG
    return PTR if isinstance(type_, PtrType) else SCALAR


def poison_value(elem: ScalarType) -> Any:
    """What unwritten registers and bytes hold: NaN for floats, 0xCDCD... for integers, True for Booleans."""
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
        space = new.buf.space
        new, old = space.anywhere(new), space.anywhere(old)
    if isinstance(new.off, int) and isinstance(old.off, int) and new.off == old.off:
        return new
    return Ptr(new.buf, np.where(mask, new.off, old.off))


def take_rows(value: Any, kind: int, rows: Any, memo: dict[int, Any]) -> Any:
    """The lanes ``rows`` (slice or index array) of a register; ``memo`` keeps two names of one fragment one."""
    if value is None:
        return None
    if kind == PTR:
        return value if isinstance(value.off, int) else Ptr(value.buf, value.off[rows])
    if np.ndim(value) < LANE_NDIM[kind]:
        return value
    found = memo.get(id(value))
    if found is None:
        found = memo[id(value)] = value[rows]
    return found


def join_rows(
    values: list[Any], kind: int, sizes: list[int], order: np.ndarray, memo: dict[tuple[int, ...], Any]
) -> Any:
    """One register out of those of several groups; ``order`` sorts the concatenated lanes."""
    first = values[0]
    if all(v is first for v in values[1:]) and (first is None or kind == PTR or np.ndim(first) < LANE_NDIM[kind]):
        return (
            first
            if first is None or kind != PTR or isinstance(first.off, int)
            else Ptr(first.buf, _stack([v.off for v in values], 1, sizes, order))
        )
    key = tuple(map(id, values))
    found = memo.get(key)
    if found is None:
        found = memo[key] = _join(values, kind, sizes, order)
    return found


def _join(values: list[Any], kind: int, sizes: list[int], order: np.ndarray) -> Any:
    if kind == MASK:
        return _stack([np.True_ if v is None else v for v in values], 1, sizes, order)
    if any(v is None for v in values):  # those that have not set the register do not read it either
        values = _filled(values, kind, sizes)
    if kind == PTR:
        if any(v.buf is not values[0].buf for v in values):
            space = values[0].buf.space
            values = [space.anywhere(v) for v in values]
        offsets = [v.off for v in values]
        if all(isinstance(o, int) and o == offsets[0] for o in offsets):
            return values[0]
        return Ptr(values[0].buf, _stack(offsets, 1, sizes, order))
    uniform = [v for v in values if np.ndim(v) < LANE_NDIM[kind]]
    if len(uniform) == len(values) and all(_same(v, uniform[0]) for v in uniform[1:]):
        return uniform[0]
    return _stack(values, LANE_NDIM[kind], sizes, order)


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
