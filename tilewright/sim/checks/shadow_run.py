"""Instructions carried out on what is undefined instead of on numbers.

An instruction's own ``simulate`` says what it does to undefined values: a copy moves patterns of bits, so it is run on
patterns that are all ones where a value is undefined and zero elsewhere; a product is run on ones and zeros, where a
result that is not zero depends on an undefined factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tilewright.atoms.copy import move_each
from tilewright.ir.core import Op
from tilewright.ir.instruction import Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.types import FragType
from tilewright.sim.checks.taint import ORIGIN, Origins

if TYPE_CHECKING:
    from tilewright.sim.group import Group


def patterns(origins: Origins, like: Array) -> Array:
    """All ones where ``origins`` says undefined, zero elsewhere, in the shape and type of ``like``."""
    # Ones in all bits survive whatever a copy does to a value: splitting, narrowing, exchange.
    made = np.zeros(like.shape, like.dtype)
    if origins is not None:
        made.reshape(-1).view(np.uint8).reshape(*like.shape, like.dtype.itemsize)[origins != 0] = 0xFF
    return made


def undefined(values: Array) -> Array:
    """bool: the elements with any bit set."""
    data = np.ascontiguousarray(values)
    return np.asarray(data.view(np.uint8).reshape(*data.shape, data.dtype.itemsize).any(-1))


class ShadowLanes:
    """The lanes of a group as an instruction sees them, on another memory: ``read(pointer, count, mask)`` gives bool
    ``[L, count]`` of what is undefined there, ``write(pointer, bool [L, count], mask)`` notes it."""

    def __init__(self, group: Group, read: Callable[..., Array], write: Callable[..., None]) -> None:
        self._lanes = group.lanes
        self._read, self._write = read, write
        self.mask = group.mask
        self.warps = group.warps.size

    # Only what neither reaches memory nor tells observers is asked of the lanes themselves.

    def spread(self, value: Any) -> Array:
        return self._lanes.spread(value)

    def lane(self) -> Array:
        return self._lanes.lane()

    def active(self) -> Array:
        return self._lanes.active()

    def sreg(self, name: str) -> Any:
        return self._lanes.sreg(name)

    def _both(self, mask: Any) -> Any:
        return self.mask if mask is None else mask if self.mask is None else mask & self.mask

    def load(self, pointer: Any, count: int, mask: Any = None) -> Array:
        found = self._read(pointer, count, self._both(mask))
        return patterns(found.astype(ORIGIN), np.zeros(found.shape, pointer.elem.dtype))

    def load_each(self, pointers: Sequence[Any], count: int, mask: Any = None) -> list[Array]:
        return [self.load(pointer, count, mask) for pointer in pointers]

    def store(self, pointer: Any, values: Array, mask: Any = None) -> None:
        self._write(pointer, undefined(values), self._both(mask))

    def move(self, *repetitions: Any) -> None:
        move_each(cast(Lanes, self), *repetitions)

    def defer(self, agent: str, effect: Callable[[], None]) -> None:
        effect()


def run_copy(lanes: ShadowLanes, op: Op, values: list[Any], origins: list[Origins]) -> list[Array]:
    """Run a copy or an exchange; gives bool arrays of what its results, then its operands, hold undefined."""
    operands = [
        patterns(o, v) if isinstance(v, np.ndarray) and _moves(op, k) else v
        for k, (v, o) in enumerate(zip(values, origins, strict=True))
    ]
    results = op.attrs["atom"].simulate(lanes, op, operands)
    return [undefined(np.asarray(r)) for r in results] + [
        undefined(v) if isinstance(value.type, FragType) else np.zeros(0, bool)
        for v, value in zip(operands, op.operands, strict=True)
    ]


def _moves(op: Op, k: int) -> bool:
    """Whether operand ``k`` is data that is moved, not a predicate, an offset or a mask."""
    return isinstance(op.operands[k].type, FragType) or (op.opcode == "call" and bool(op.results) and k == 0)


def run_product(group: Group, op: Op, values: list[Any], a: Origins, b: Origins) -> Array:
    """bool ``[L, n]``: the registers of D that depend on undefined elements of A or B."""
    d, left, right = values[:3]
    found = np.zeros(d.shape, bool)
    # Flags of one operand times ones: a sum is not zero where an undefined element takes part in it.
    for undefined_a, undefined_b in ((a, None), (None, b)):
        if undefined_a is None and undefined_b is None:
            continue
        ones = [
            np.ones(left.shape, left.dtype) if undefined_a is None else _flags(undefined_a, left),
            np.ones(right.shape, right.dtype) if undefined_b is None else _flags(undefined_b, right),
        ]
        total = np.zeros(d.shape, d.dtype)
        op.attrs["atom"].simulate(group.lanes, op, [total, *ones, *values[3:]])
        found |= total != 0
    return found


def _flags(origins: Array, like: Array) -> Array:
    return (origins != 0).astype(like.dtype)
