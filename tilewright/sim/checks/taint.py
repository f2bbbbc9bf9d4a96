"""Which registers hold values that come from memory or registers that were never written: origins, value by value.

An *origin* is a small number, 0 for a value that is defined. A register (slot) that holds anything undefined has an
array of origins for the whole wave, ``[lanes]`` for a scalar or pointer, ``[lanes, n]`` for a vector or fragment;
others have none, so that a kernel that reads nothing undefined pays a look into an empty dictionary for each op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.types import VecType

if TYPE_CHECKING:
    from tilewright.sim.group import Group

ORIGIN = np.int16
Origins = Array | None


def rows_of(group: Group) -> Any:
    """The rows of the lanes of a group among those of its wave."""
    rows = group.registers.get("check.rows")
    if rows is None:
        warps = group.warps
        if warps[-1] - warps[0] + 1 == warps.size:
            rows = slice(int(warps[0]) * WARP, (int(warps[-1]) + 1) * WARP)
        else:
            rows = (warps[:, None] * WARP + np.arange(WARP)).reshape(-1)
        group.registers["check.rows"] = rows
    return rows


class Registers:
    """The origins of the registers of one wave of ``lanes`` lanes."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.held: dict[int, Array] = {}

    def get(self, group: Group, slot: int) -> Origins:
        """``[L]`` or ``[L, n]``; None: all defined."""
        origins = self.held.get(slot)
        if origins is None:
            return None
        mine: Array = origins[rows_of(group)]
        return mine if mine.any() else None

    def put(self, group: Group, slot: int, origins: Origins) -> None:
        """The register of the group's lanes is written as a whole."""
        before = self.held.get(slot)
        if origins is None:
            if before is not None:
                before[rows_of(group)] = 0
                # Without any undefined register a launch pays a look into an empty dictionary for each op.
                if not before.any():
                    del self.held[slot]
            return
        if before is None or before.shape[1:] != origins.shape[1:]:
            before = self.held[slot] = np.zeros((self.lanes, *origins.shape[1:]), ORIGIN)
        before[rows_of(group)] = origins

    def fill(self, group: Group, slot: int, origins: Origins, numbers: tuple[tuple[int, ...], ...]) -> None:
        """A load brings defined values to the registers with these numbers, in the active lanes of a fragment."""
        if origins is not None:
            lanes = np.arange(origins.shape[0]) if group.mask is None else np.flatnonzero(group.mask)
            new = origins.copy()
            new[np.ix_(lanes, np.array([register for chosen in numbers for register in chosen]))] = 0
            self.put(group, slot, new if new.any() else None)

    def move(self, group: Group, new: Origins, target: int) -> None:
        """The active lanes of ``target`` take ``new``."""
        if new is None and target not in self.held:
            return
        if group.mask is not None:
            old = self.get(group, target)
            like = new if new is not None else old
            if like is None:
                return
            zero = np.zeros_like(like)
            mask = group.mask if like.ndim == 1 else group.mask[:, None]
            new = np.where(mask, zero if new is None else new, zero if old is None else old)
        self.put(group, target, new)


# -- what an op makes of the origins of its operands -------------------------------------------------------------------

Rule = Callable[[Op, list[Origins], list[Any], int], Origins]
"""``f(op, origins of the operands, their values, lanes)``: the origins of the result."""


def joined(of_operands: list[Origins], lanes: int) -> Origins:
    """The larger origin of several registers of one shape, or of lanes and vectors."""
    result: Origins = None
    for origins in of_operands:
        if origins is None:
            continue
        if result is None:
            result = origins
            continue
        a, b = (x if x.ndim == max(result.ndim, origins.ndim) else x[:, None] for x in (result, origins))
        result = np.maximum(a, b)
    return result


def _elementwise(op: Op, of_operands: list[Origins], values: list[Any], lanes: int) -> Origins:
    return joined(of_operands, lanes)


def _masking(op: Op, of_operands: list[Origins], values: list[Any], lanes: int) -> Origins:
    """``and``, ``or``: a defined operand may decide alone."""
    result = joined(of_operands, lanes)
    for mine, value in zip(of_operands, values, strict=True):
        # x & 0 and x | -1 do not depend on x.
        decides = value == (0 if op.opcode == "and" else (1 if value.dtype.kind == "b" else -1))
        if np.ndim(decides) and result is not None and np.ndim(decides) < result.ndim:
            decides = decides[:, None]
        if result is not None:
            certain = decides if mine is None else decides & (mine == 0)
            result = np.where(certain, ORIGIN(0), result)
    return result


def _select(op: Op, of_operands: list[Origins], values: list[Any], lanes: int) -> Origins:
    cond, a, b = of_operands
    like = joined([a, b], lanes)
    chosen: Origins = None
    if like is not None:
        zero = np.zeros_like(like)
        which = np.asarray(values[0])
        if which.ndim and which.ndim < like.ndim:
            which = which[:, None]
        chosen = np.where(which, zero if a is None else a, zero if b is None else b)
    if cond is not None and chosen is None and isinstance(op.result.type, VecType) and cond.ndim == 1:
        return np.repeat(cond[:, None], op.result.type.n, axis=1)
    return joined([cond, chosen], lanes)


def _bitcast(op: Op, of_operands: list[Origins], values: list[Any], lanes: int) -> Origins:
    (origins,) = of_operands
    kind = op.result.type
    if origins is None:
        return None
    # Elements that share bits share the larger origin.
    flat = origins.reshape(lanes, -1)
    if not isinstance(kind, VecType):
        return np.asarray(flat.max(1))
    if kind.n % flat.shape[1] and flat.shape[1] % kind.n:  # numbers of 6 bits share bytes: four of them three
        group = np.gcd(kind.n, flat.shape[1])
        return np.repeat(flat.reshape(lanes, group, -1).max(2), kind.n // group, axis=1)
    if kind.n >= flat.shape[1]:
        return np.repeat(flat, kind.n // flat.shape[1], axis=1)
    return np.asarray(flat.reshape(lanes, kind.n, -1).max(2))


def _build(op: Op, of_operands: list[Origins], values: list[Any], lanes: int) -> Origins:
    parts = []
    for operand, origins in zip(op.operands, of_operands, strict=True):
        n = operand.type.n if isinstance(operand.type, VecType) else 1
        parts.append(np.zeros((lanes, n), ORIGIN) if origins is None else origins.reshape(lanes, n))
    return np.concatenate(parts, axis=1)


def _splat(op: Op, of_operands: list[Origins], values: list[Any], lanes: int) -> Origins:
    kind = op.result.type
    assert isinstance(kind, VecType)
    return None if of_operands[0] is None else np.repeat(of_operands[0][:, None], kind.n, axis=1)


def _extract(op: Op, of_operands: list[Origins], values: list[Any], lanes: int) -> Origins:
    return None if of_operands[0] is None else of_operands[0][:, op.attrs["index"]]


def _shuffle(op: Op, of_operands: list[Origins], values: list[Any], lanes: int) -> Origins:
    return None if of_operands[0] is None else of_operands[0][:, list(op.attrs["indices"])]


def _reduce(op: Op, of_operands: list[Origins], values: list[Any], lanes: int) -> Origins:
    vector = of_operands[0]
    if vector is None:
        vector = np.zeros((lanes, 1 + max(map(max, op.attrs["groups"]))), ORIGIN)
    parts = [vector[:, list(group)].max(1) for group in op.attrs["groups"]]
    if len(of_operands) > 1 and of_operands[1] is not None:
        parts = [np.maximum(part, of_operands[1]) for part in parts]
    return np.stack(parts, 1) if isinstance(op.result.type, VecType) else np.asarray(parts[0])


def _frag_load(op: Op, of_operands: list[Origins], values: list[Any], lanes: int) -> Origins:
    frag, offsets = of_operands[0], np.array(op.attrs["offsets"])
    scalar = not isinstance(op.result.type, VecType)
    if len(of_operands) > 1:
        if of_operands[1] is not None:
            return of_operands[1] if scalar else np.repeat(of_operands[1][:, None], offsets.size, axis=1)
        index = np.broadcast_to(np.asarray(values[1], np.int64), (lanes,))
        chosen = index[:, None] + offsets
    else:
        chosen = np.broadcast_to(offsets, (lanes, offsets.size))
    if frag is None:
        return None
    taken = np.take_along_axis(frag, np.clip(chosen, 0, frag.shape[1] - 1), 1)
    return taken[:, 0] if scalar else taken


RULES: dict[str, Rule] = {
    "and": _masking,
    "or": _masking,
    "select": _select,
    "bitcast": _bitcast,
    "vec.build": _build,
    "vec.concat": _build,
    "vec.splat": _splat,
    "vec.extract": _extract,
    "vec.shuffle": _shuffle,
    "vec.reduce": _reduce,
    "frag.load": _frag_load,
}


def rule_of(op: Op) -> Rule:
    """How the op passes on what is undefined; those without a rule of their own do it element by element."""
    return RULES.get(op.opcode, _elementwise)
