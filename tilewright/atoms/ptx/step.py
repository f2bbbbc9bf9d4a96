"""A statement of inline PTX in the simulator with its opcode taken apart, and the table of what opcodes do.

An action is found by the first part of the opcode (``fma`` of ``fma.rn.ftz.f32``) and gets the rest as modifiers.
Whole opcodes that are not in :mod:`.actions` are given by the program with :func:`ptx_action`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.atoms.ptx.registers import Array, Kind, Registers, kind_of
from tilewright.atoms.ptx.text import Statement
from tilewright.errors import ArgumentError, ConstraintError


class Unknown(Exception):
    """The simulator has no action for this opcode."""


class Step:
    """One statement with its opcode taken apart: ``name``, ``modifiers``, and the types at its end."""

    def __init__(self, registers: Registers, statement: Statement, where: Array | None) -> None:
        self.registers, self.operands, self.where = registers, statement.operands, where
        self.name, *rest = statement.opcode.split(".")
        kinds = [kind_of(part) for part in rest]
        self.kinds = [k for k in kinds if k is not None]
        self.modifiers = [part for part, kind in zip(rest, kinds, strict=True) if kind is None]

    @property
    def kind(self) -> Kind:
        if not self.kinds or self.kinds[-1].width > 64:
            raise Unknown
        return self.kinds[-1]

    def only(self, *allowed: str) -> None:
        """Opcodes with other modifiers mean something else."""
        if any(m not in allowed for m in self.modifiers):
            raise Unknown

    def read(self, i: int, kind: Kind | None = None) -> Array:
        if i >= len(self.operands):
            raise ConstraintError(f"inline PTX: {self.name} has {len(self.operands)} operands; it takes more")
        if str(self.operands[i]).startswith("%") and self.name != "mov":
            raise ConstraintError(f"inline PTX: {self.operands[i]} is read by mov only, not by {self.name}")
        return self.registers.read(self.operands[i], kind or self.kind)

    def write(self, value: Any, kind: Kind | None = None, i: int = 0) -> None:
        kind = kind or self.kind
        if kind.elem.is_float:
            value = self._finished(np.asarray(value), kind)
        self.registers.write(self.operands[i], value, kind, self.where)

    def float_inputs(self, value: Array) -> Array:
        return _flushed(value) if "ftz" in self.modifiers else value

    def _finished(self, value: Array, kind: Kind) -> Array:
        if "sat" in self.modifiers:
            value = np.where(np.isnan(value.astype(np.float64)), 0, np.clip(value, 0, 1)).astype(kind.elem.dtype)
        if "relu" in self.modifiers:
            value = np.where(value > 0, value, np.where(np.isnan(value.astype(np.float64)), value, value * 0))
        return _flushed(value) if "ftz" in self.modifiers else value


def _flushed(value: Array) -> Array:
    """Subnormal numbers as zeros of their sign (``.ftz``)."""
    if value.dtype != np.float32:
        return value
    return np.where(np.abs(value) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), value), value)


Action = Callable[[Step], None]
ACTIONS: dict[str, Action] = {}
GIVEN: dict[str, Callable[..., Any]] = {}
"""Actions of the program, by whole opcode or by whole text."""


def ptx_action(opcode: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: what inline PTX that the simulator does not know does there.

    ``opcode`` is an instruction with all its modifiers, or a whole ``asm`` text. The function gets the source operands
    in order as arrays ``[L]`` of the lanes' bits (unsigned integers of the register's width, for 128 bits Python's;
    predicates are bool) and gives the destination's bits, or a tuple of them for several.

    >>> @ptx_action("brev2.b32")
    ... def _(a):
    ...     return a ^ np.uint32(3)
    """
    if not isinstance(opcode, str) or not opcode.strip():
        raise ArgumentError(f"ptx_action({opcode!r}): an opcode such as 'tanh.approx.bf16x2' is needed")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        GIVEN[opcode.strip()] = function
        return function

    return register


def known(*names: str) -> Callable[[Action], Action]:
    def register(action: Action) -> Action:
        for name in names:
            ACTIONS[name] = action
        return action

    return register
