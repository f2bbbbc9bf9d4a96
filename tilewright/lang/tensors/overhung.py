"""Pointers into parts, and registers of parts, that may be beyond the end of the tensor that they were cut from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.lang.tensors.bounds import inside
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.registers import Registers
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout.text import format_tree


class OverhungPointer(Pointer):
    """A pointer whose address is not given out, ``why`` says why: some of its elements are not the tensor's but
    other memory. A copy with predicates takes the plain pointer by :func:`guarded`."""

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


def guarded(tensor: Any) -> Any:
    """``tensor`` for an access whose predicates keep it inside the tensor that it was cut from."""
    pointer = tensor.engine
    return Tensor(pointer.plain(), tensor.linear) if isinstance(pointer, OverhungPointer) else tensor


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


def slice_at(part: Tensor, coord: Any, tensor: Tensor) -> Tensor:
    """``part``, the slice of ``tensor`` at ``coord``. Where that is provably outside of the tensor, an access without
    predicates is an error: it would reach other memory, as another stage's or another tensor's. The slice alone is
    none: programs make the next tile's before they ask whether there is one."""
    if part.is_coordinate or inside(coord, tensor.shape):
        return part
    return _overhung(part, f"the coordinate {format_tree(coord)} is outside {tensor}")


def tile_at(part: Tensor, coord: Any, tiles: Any, tensor: Tensor) -> Tensor:
    """The same of ``part``, the tile at ``coord`` of ``tensor``, of which there are ``tiles`` along each mode."""
    if part.is_coordinate or inside(coord, tiles):
        return part
    return _overhung(part, f"the tile {format_tree(coord)} is outside {tensor}, which has {format_tree(tiles)} tiles")


def _overhung(part: Tensor, wrong: str) -> Tensor:
    if type(part.engine) is Registers:
        return Tensor(OverhungRegisters.of(part.engine, wrong), part.linear)
    if not Builder.active() or type(part.engine) is not Pointer:
        raise ConstraintError(wrong)
    return Tensor(OverhungPointer.of(part.engine, wrong), part.linear)
