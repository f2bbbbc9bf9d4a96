"""Pointers, loads, stores and fragments as closures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.ir.core import Constant, Op
from tilewright.ir.types import FragType, MemSpace, PtrType, VecType, element_of
from tilewright.sim.access import VectorAccess
from tilewright.sim.faults import Fault
from tilewright.sim.program import Closure
from tilewright.sim.shared import SharedBuffer
from tilewright.sim.values import Ptr, poisoned

I64 = np.int64
STEPS: dict[str, Callable[[Op, list[int], list[int]], Closure]] = {}


def step(opcode: str) -> Callable[[Any], Any]:
    def register(build: Any) -> Any:
        STEPS[opcode] = build
        return build

    return register


def columns(offsets: Sequence[int]) -> Any:
    """Columns as a slice when they are evenly spaced, else as an index array."""
    offsets = list(offsets)
    if len(offsets) == 1:
        return slice(offsets[0], offsets[0] + 1)
    stride = offsets[1] - offsets[0]
    if stride > 0 and offsets == list(range(offsets[0], offsets[-1] + 1, stride)):
        return slice(offsets[0], offsets[-1] + 1, stride)
    return np.array(offsets)


# -- pointers ----------------------------------------------------------------------------------------------------------


@step("ptr.add")
def _ptr_add(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a, b), (d,) = operands, results
    size = element_of(op.result.type).bytes
    index = op.operands[1]
    if isinstance(index, Constant):
        # A constant moves ``add`` alone: the pointer keeps its root, and with it the range and alignment found there.
        fixed = int(index.value) * size

        def run_fixed(group: Any, slots: list[Any]) -> None:
            p = slots[a]
            slots[d] = Ptr.at(p.buf, p.root, p.add + fixed)

        return run_fixed

    def run(group: Any, slots: list[Any]) -> None:
        i, p = slots[b], slots[a]
        if not i.ndim:
            slots[d] = p.plus(int(i) * size)
        elif p.root is None:
            slots[d] = Ptr.at(p.buf, group.in_bytes(i, size), p.add)
        else:
            slots[d] = p.plus(group.in_bytes(i, size).array)

    return run


@step("ptr.cast")
def _ptr_cast(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a,), (d,) = operands, results

    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = slots[a]

    return run


@step("ptr.toint")
def _ptr_toint(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a,), (d,) = operands, results
    dtype = element_of(op.result.type).dtype
    kind = op.operands[0].type
    assert isinstance(kind, PtrType)
    window = kind.space == MemSpace.SMEM

    def run(group: Any, slots: list[Any]) -> None:
        p = slots[a]
        # The address in the shared window is the offset itself: 32 bits, as cvta gives it.
        address = p.off if window and isinstance(p.buf, SharedBuffer) else p.off + p.buf.base
        slots[d] = np.asarray(address, I64).astype(dtype)[()]

    return run


@step("ptr.fromint")
def _ptr_fromint(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a,), (d,) = operands, results
    kind = op.result.type
    assert isinstance(kind, PtrType)
    window = kind.space == MemSpace.SMEM

    def run(group: Any, slots: list[Any]) -> None:
        i = slots[a]
        off = i.astype(I64) if i.ndim else int(i)
        slots[d] = Ptr(group.wave.shared if window else group.wave.launch.space.any, off)

    return run


# -- memory ------------------------------------------------------------------------------------------------------------


def _access(op: Op, value_type: Any) -> VectorAccess:
    pointer = op.operands[0].type
    assert isinstance(pointer, PtrType)
    n = value_type.n if isinstance(value_type, VecType) else 1
    return VectorAccess(pointer.elem, n, pointer.align, not isinstance(value_type, VecType))


@step("load")
def _load(op: Op, operands: list[int], results: list[int]) -> Closure:
    (a,), (d,) = operands, results
    access = _access(op, op.result.type)

    def run(group: Any, slots: list[Any]) -> None:
        p = slots[a]
        group.lanes.op = op
        slots[d] = p.buf.fetch(group, p, access, group.mask)

    return run


@step("store")
def _store(op: Op, operands: list[int], results: list[int]) -> Closure:
    a, b = operands
    access = _access(op, op.operands[1].type)

    def run(group: Any, slots: list[Any]) -> None:
        p = slots[a]
        group.lanes.op = op
        p.buf.put(group, p, slots[b], access, group.mask)

    return run


# -- fragments ---------------------------------------------------------------------------------------------------------


@step("frag.alloc")
def _frag_alloc(op: Op, operands: list[int], results: list[int]) -> Closure:
    (d,) = results
    kind = op.result.type
    assert isinstance(kind, FragType)
    elem, n = kind.elem, kind.n

    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = poisoned(elem, (group.lanes_count, n))

    return run


def _chosen(group: Any, index: Any, offsets: np.ndarray, n: int) -> np.ndarray:
    """The registers ``index + offsets`` as ``[k]`` or ``[L, k]``, checked."""
    if index.ndim == 0:
        chosen = int(index) + offsets
        bad = (chosen < 0) | (chosen >= n)
        if bad.any():
            raise Fault(f"register {int(chosen[bad][0])} of a fragment of {n} registers")
        return chosen
    chosen = index.astype(I64)[:, None] + offsets
    bad = (chosen < 0) | (chosen >= n)
    if bad.any():
        lanes = bad.any(1) if group.mask is None else bad.any(1) & group.mask
        if lanes.any():
            wrong = chosen[int(np.argmax(lanes))]
            raise Fault(f"register {int(wrong[(wrong < 0) | (wrong >= n)][0])} of a fragment of {n} registers", lanes)
        # Lanes that rest may hold any index.
        chosen = np.clip(chosen, 0, n - 1)
    return chosen


@step("frag.load")
def _frag_load(op: Op, operands: list[int], results: list[int]) -> Closure:
    f, (d,) = operands[0], results
    scalar = not isinstance(op.result.type, VecType)
    kind = op.operands[0].type
    assert isinstance(kind, FragType)
    if len(operands) > 1:
        i, n, offsets = operands[1], kind.n, np.array(op.attrs["offsets"], I64)

        def run_dynamic(group: Any, slots: list[Any]) -> None:
            chosen = _chosen(group, slots[i], offsets, n)
            chosen_values = slots[f][:, chosen] if chosen.ndim == 1 else np.take_along_axis(slots[f], chosen, 1)
            slots[d] = chosen_values[:, 0] if scalar else chosen_values

        return run_dynamic
    where = op.attrs["offsets"][0] if scalar else columns(op.attrs["offsets"])
    # A slice gives a view, which later stores to the fragment would change.
    gathers = isinstance(where, np.ndarray)

    def run(group: Any, slots: list[Any]) -> None:
        chosen_values = slots[f][:, where]
        slots[d] = chosen_values if gathers else chosen_values.copy()

    return run


@step("frag.store")
def _frag_store(op: Op, operands: list[int], results: list[int]) -> Closure:
    f, v = operands[:2]
    scalar = not isinstance(op.operands[1].type, VecType)
    kind = op.operands[0].type
    assert isinstance(kind, FragType)
    if len(operands) > 2:
        return _frag_store_dynamic(f, v, operands[2], scalar, kind.n, np.array(op.attrs["offsets"], I64))
    where = columns(op.attrs["offsets"])
    gathers = isinstance(where, np.ndarray)

    def run(group: Any, slots: list[Any]) -> None:
        value, frag, m = slots[v], slots[f], group.mask
        if scalar and value.ndim:
            value = value[:, None]
        # A slice is a view, into which copyto writes under the mask; an index array is a copy and must be assigned.
        if m is None:
            frag[:, where] = value
        elif gathers:
            frag[:, where] = np.where(m[:, None], value, frag[:, where])
        else:
            np.copyto(frag[:, where], value, where=m[:, None])

    return run


def _frag_store_dynamic(f: int, v: int, i: int, scalar: bool, n: int, offsets: np.ndarray) -> Closure:
    def run(group: Any, slots: list[Any]) -> None:
        value, frag, m = slots[v], slots[f], group.mask
        if scalar and value.ndim:
            value = value[:, None]
        chosen = _chosen(group, slots[i], offsets, n)
        if chosen.ndim == 1:
            frag[:, chosen] = value if m is None else np.where(m[:, None], value, frag[:, chosen])
            return
        if m is not None:
            value = np.where(m[:, None], value, np.take_along_axis(frag, chosen, 1))
        np.put_along_axis(frag, chosen, np.broadcast_to(value, chosen.shape), 1)

    return run
