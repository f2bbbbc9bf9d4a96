"""Pointers into parts, and registers of parts, that may be beyond the end of the tensor that they were cut from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.registers import Registers


class OverhungPointer(Pointer):
    """A pointer whose address is not given out, ``why`` says why: some of its elements are not the tensor's but
    other memory. A copy with predicates takes the :meth:`plain` pointer."""

    __slots__ = ("why",)
    why: str

    @classmethod
    def of(cls, pointer: Pointer, why: str) -> OverhungPointer:
        made = cls.__new__(cls)
        for name in Pointer.__slots__:
            setattr(made, name, getattr(pointer, name))
        made.why = why
        return made

    def _with(self, **changes: Any) -> Pointer:
        return OverhungPointer.of(super()._with(**changes), self.why)

    def value(self, extra: int = 0) -> Value:
        raise ConstraintError(self.why)

    def with_dtype(self, dtype: Any) -> Pointer:
        raise ConstraintError(self.why)

    def plain(self) -> Pointer:
        made = Pointer.__new__(Pointer)
        for name in Pointer.__slots__:
            setattr(made, name, getattr(self, name))
        return made


class OverhungRegisters(Registers):
    """Registers that a slice outside of its tensor would have; ``why`` says where an element of them is used."""

    __slots__ = ("why",)
    why: str

    @classmethod
    def of(cls, registers: Registers, why: str) -> OverhungRegisters:
        made = cls(registers.frag, registers.dtype, registers.offset)
        made.why = why
        return made

    def __add__(self, offset: Any) -> Registers:
        return OverhungRegisters.of(super().__add__(offset), self.why)

    def recast(self, dtype: Any) -> Registers:
        return OverhungRegisters.of(super().recast(dtype), self.why)

    with_dtype = recast

    def load(self, offsets: Sequence[int], index: Any = 0, scalar: bool = False) -> Value:
        raise ConstraintError(self.why)

    def store(self, value: Value, offsets: Sequence[int], index: Any = 0) -> None:
        raise ConstraintError(self.why)


def overhung_engine(engine: Any, why: str) -> Pointer | Registers:
    """The engine of a part that is provably outside of its tensor. An access to it without predicates is the error
    ``why``: it would reach other memory, as another stage's or another tensor's. The part alone is no error: programs
    make the next tile's before they ask whether there is one."""
    if type(engine) is Registers:
        return OverhungRegisters.of(engine, why)
    if not Builder.active() or type(engine) is not Pointer:
        raise ConstraintError(why)
    return OverhungPointer.of(engine, why)
