"""Registers as an iterator: a fragment of the IR seen from an element on, possibly as another element type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import U8, FragType, ScalarType, Type, VecType
from tilewright.lang.numbers.numeric import Int32, class_of, unwrap, wrap
from tilewright.lang.staging.unrolling import register_number
from tilewright.lang.tensors.pointer import AddressSpace, is_packed


class Registers:
    """The iterator of a register tensor.

    ``frag`` is the fragment, ``offset`` where this iterator points to (elements of ``dtype``, an int or a run-time
    integer). ``dtype`` may differ from the fragment's own type by a whole ratio of widths (see :func:`recast`).
    """

    __slots__ = ("dtype", "frag", "offset")
    memspace = AddressSpace.rmem
    swizzle = None
    run_time_part = None  # registers have no address

    def __init__(self, frag: Value, dtype: Any = None, offset: Any = 0) -> None:
        self.frag = frag
        self.dtype = dtype if dtype is not None else class_of(self.elem)
        self.offset = offset

    value_type = element_type = property(lambda self: self.dtype)

    @property
    def elem(self) -> ScalarType:
        """The type of the fragment's elements."""
        return cast(FragType, self.frag.type).elem

    @property
    def count(self) -> int:
        """Registers in the fragment, in elements of its own type."""
        kind = self.frag.type
        assert isinstance(kind, FragType)
        return kind.n

    @property
    def alignment(self) -> int:
        return 16

    @property
    def is_recast(self) -> bool:
        return self.dtype.ir_type != self.elem

    def __add__(self, offset: Any) -> Registers:
        if isinstance(unwrap(offset), int) and unwrap(offset) == 0:
            return self
        return Registers(self.frag, self.dtype, unwrap(self.offset + offset))

    def recast(self, dtype: Any) -> Registers:
        """The same registers as elements of ``dtype``."""
        old, new = self.dtype.width, dtype.width
        if old == new:
            return Registers(self.frag, dtype, self.offset)
        what = f"recast of registers from {self.dtype} to {dtype}: what"
        offset = register_number(self.offset, what) * old
        if offset % new or self.count * self.elem.width % new:
            raise ConstraintError(
                f"recast of registers from {self.dtype} to {dtype}: they do not come in whole {dtype}s"
            )
        return Registers(self.frag, dtype, offset // new)

    with_dtype = recast  # as the iterators of other memories have it

    # -- access --------------------------------------------------------------------------------------------------

    def load(self, offsets: Sequence[int], index: Any = 0, scalar: bool = False) -> Value:
        """Elements at ``offset + index + offsets[k]`` as a vector, or one as a scalar."""
        base, dynamic = self._base(index)
        builder = Builder.current()
        if not self.is_recast:
            return builder.frag_load(self.frag, [base + o for o in offsets], dynamic, scalar)
        new = self.dtype.ir_type
        words, ratio = self._together()
        if ratio == 1:
            parts = builder.frag_load(
                self.frag, [(base + o) * words + r for o in offsets for r in range(words)], dynamic
            )
            vector = builder.bitcast(parts, VecType(new, len(offsets)))
        else:
            groups = sorted({(base + o) // ratio for o in offsets})
            whole = self._groups(groups, dynamic)
            place = {group: i for i, group in enumerate(groups)}
            vector = builder.shuffle(whole, [place[(base + o) // ratio] * ratio + (base + o) % ratio for o in offsets])
        return builder.extract(vector, 0) if scalar else vector

    def _together(self) -> tuple[int, int]:
        """The fewest registers of the fragment's own type that are whole elements of ``dtype``, and how many."""
        bits = math.lcm(self.elem.width, self.dtype.width)
        return bits // self.elem.width, bits // self.dtype.width

    def _groups(self, groups: Sequence[int], dynamic: Value | None) -> Value:
        """All elements of some of the groups that :meth:`_together` counts, ``dynamic`` registers further."""
        builder, (words, ratio) = Builder.current(), self._together()
        parts = builder.frag_load(self.frag, [group * words + r for group in groups for r in range(words)], dynamic)
        return builder.bitcast(parts, VecType(self.dtype.ir_type, len(groups) * ratio))

    def store(self, value: Value, offsets: Sequence[int], index: Any = 0) -> None:
        """Write a vector (or one scalar) to ``offset + index + offsets[k]``."""
        base, dynamic = self._base(index)
        builder = Builder.current()
        if not self.is_recast:
            builder.frag_store(self.frag, value, [base + o for o in offsets], dynamic)
            return
        own = self.elem
        vector = value if isinstance(value.type, VecType) else builder.build([value])
        words, ratio = self._together()
        if ratio == 1:
            parts = builder.bitcast(vector, VecType(own, len(offsets) * words))
            builder.frag_store(
                self.frag, parts, [(base + o) * words + r for o in offsets for r in range(words)], dynamic
            )
            return
        places = [base + o for o in offsets]
        groups = sorted({p // ratio for p in places})
        last = {place: k for k, place in enumerate(places)}
        if len(last) == len(groups) * ratio:
            merged = builder.shuffle(vector, [last[group * ratio + i] for group in groups for i in range(ratio)])
        else:
            old = self._groups(groups, dynamic)
            lanes = list(range(len(groups) * ratio))
            for k, place in enumerate(places):
                lanes[groups.index(place // ratio) * ratio + place % ratio] = len(lanes) + k
            merged = builder.shuffle(builder.concat([old, vector]), lanes)
        whole = builder.bitcast(merged, VecType(own, len(groups) * words))
        builder.frag_store(self.frag, whole, [group * words + r for group in groups for r in range(words)], dynamic)

    def _base(self, index: Any) -> tuple[int, Value | None]:
        """(static offset in elements, run-time index in registers of the fragment's own type or None)."""
        offset, index = unwrap(self.offset), unwrap(index)
        if isinstance(offset, int) and isinstance(index, int):
            return offset + index, None
        if isinstance(offset, int):
            static, moving = offset, index
        else:
            static, moving = (index, offset) if isinstance(index, int) else (0, offset + index)
        return static, (self._in_own(moving) if self.is_recast else moving).ir_value()

    def _in_own(self, moving: Any) -> Any:
        """A run-time number of elements as one of registers; it must be known to end where a register does."""
        words, ratio = self._together()
        if moving.divisibility % ratio:
            place = f"a place that is not known to be a multiple of {ratio}"
            return Int32(register_number(moving, f"registers of {self.elem} seen as {self.dtype}: {place}"))
        return moving // ratio * words

    # -- the protocol --------------------------------------------------------------------------------------------

    __carry_immutable__ = True

    def __extract_mlir_values__(self) -> list[Value]:
        return [] if isinstance(self.offset, int) else [self.offset.ir_value()]

    def __new_from_mlir_values__(self, values: list[Value]) -> Registers:
        return Registers(self.frag, self.dtype, wrap(values[0])) if values else self

    def __get_mlir_types__(self) -> list[Type]:
        return [v.type for v in self.__extract_mlir_values__()]

    def __carry_key__(self) -> Any:
        return (self.frag, self.dtype, self.offset if isinstance(self.offset, int) else None)

    def __str__(self) -> str:
        return f"ptr<{self.dtype.ir_type}, rmem, align<32>>"

    __repr__ = __str__


def alloc(dtype: Any, count: int, hint: str | None = None) -> Registers:
    """Fresh registers: ``count`` elements of ``dtype``, undefined; those of fewer than 8 bits are in bytes."""
    if is_packed(dtype):
        size = -(-count * dtype.width // 24) * 3 if dtype.width == 6 else -(-count * dtype.width // 8)
        builder = Builder.current()
        bytes_ = builder.frag_alloc(U8, size, hint)
        # Zero: a part of a byte is written by reading the whole of it, which the simulator would take for the use of a
        # value that was never written. The compiler removes this where a register is written whole.
        builder.frag_store(bytes_, builder.splat(builder.constant(U8, 0), size), list(range(size)))
        return Registers(bytes_, dtype)
    return Registers(Builder.current().frag_alloc(dtype.ir_type, count, hint), dtype)
