"""Pointers to numbers of 4 and 6 bits, which are in memory without gaps: the first in the low bits of its byte.

Threads load and store whole bytes. Any element can be read; what is written must fill its bytes, as a byte that two
threads write in parts would lose one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import U8, Type, VecType
from tilewright.lang.numbers.dtypes import type_text
from tilewright.lang.numbers.numeric import Integer, NumberInMemory, Uint8, Uint32, is_number, unwrap, wrap
from tilewright.lang.tensors import access
from tilewright.lang.tensors.access import SplitOffset
from tilewright.lang.tensors.bounds import Pair
from tilewright.lang.tensors.pointer import Pointer, elements_at


def group(dtype: Any) -> tuple[int, int]:
    """The fewest elements that fill whole bytes, and how many bytes: (2, 1) for 4 bits, (4, 3) for 6."""
    together = math.lcm(dtype.width, 8)
    return together // dtype.width, together // 8


class PackedPointer(Pointer):
    """``under`` points to the bytes (Uint8), ``rest`` elements (an int or a run-time integer) are still to be added:
    those that are not known to fill whole bytes."""

    __slots__ = ("rest", "under")

    def __init__(self, under: Pointer, dtype: Any, rest: Any = 0) -> None:
        self.under, self.dtype, self.rest = under, dtype, rest

    @property
    def alignment(self) -> int:
        """Known alignment in bytes; 1 where the element may be inside a byte."""
        return self.under.alignment if isinstance(self.rest, int) and self.rest == 0 else 1

    max_alignment = alignment

    def _with(self, **changes: Any) -> Pointer:
        dtype = changes.pop("dtype", self.dtype)
        return PackedPointer(self.under._with(**changes) if changes else self.under, dtype, self.rest)

    @property
    def run_time_part(self) -> Value | None:
        return self.under.run_time_part

    def _with_notes(self, notes: Iterable[Pair]) -> Pointer:
        return PackedPointer(self.under._with_notes(notes), self.dtype, self.rest)

    # -- moving --------------------------------------------------------------------------------------------------

    def __add__(self, offset: Any) -> Pointer:
        offset = unwrap(offset.load() if isinstance(offset, NumberInMemory) else offset)
        if isinstance(offset, bool) or not (isinstance(offset, int) or is_number(offset)):
            return NotImplemented
        if not isinstance(offset, (int, Integer)):
            raise ConstraintError(f"a pointer moves by whole elements, not by a {type(offset).__name__}")
        if isinstance(offset, int) and offset == 0:
            return self
        rest = unwrap(self.rest + offset)
        n, size = group(self.dtype)
        if isinstance(rest, int):
            return PackedPointer(self.under + rest // n * size, self.dtype, rest % n)
        whole = _in_bytes(rest, self.dtype)
        return (
            PackedPointer(self.under, self.dtype, rest)
            if whole is None
            else PackedPointer(self.under + whole, self.dtype)
        )

    __radd__ = __add__

    def unswizzled(self) -> tuple[Pointer, Any]:
        plain, offset = self.under.unswizzled()
        return PackedPointer(plain, self.dtype), offset * 8 // self.dtype.width + self.rest

    def value(self, extra: int = 0) -> Value:
        """The address of the byte that begins with the element ``extra`` on."""
        return self.bytes(extra).value()

    def bytes(self, extra: int = 0) -> Pointer:
        """The pointer to the byte that begins with the element ``extra`` on."""
        moved = self + extra
        assert isinstance(moved, PackedPointer)
        if not (isinstance(moved.rest, int) and moved.rest == 0):
            n, _ = group(self.dtype)
            raise ConstraintError(
                f"{self}: an access here needs whole bytes, and the offset is not known to be a multiple of {n} "
                f"elements of {self.dtype.width} bits; tile by multiples of {n}, or promise it: "
                f"cute.assume(offset, divby={n})"
            )
        return moved.under

    def align(self, min_align: int, *, loc: Any = None, ip: Any = None) -> Pointer:
        return PackedPointer(self.bytes().align(min_align), self.dtype)

    def toint(self, *, loc: Any = None, ip: Any = None) -> Any:
        return self.bytes().toint()

    # -- access --------------------------------------------------------------------------------------------------

    def load(
        self,
        offset: Any = 0,
        *,
        count: int | None = None,
        alignment: int | None = None,
        loc: Any = None,
        ip: Any = None,
    ) -> Any:
        place, offset = self._aligned_at(offset, alignment)
        return wrap(place.load_place((offset, 0))) if count is None else elements_at(place + offset, count).load()

    def store(
        self, value: Any, offset: Any = 0, *, alignment: int | None = None, loc: Any = None, ip: Any = None
    ) -> None:
        place, offset = self._aligned_at(offset, alignment)
        if hasattr(value, "numel"):
            elements_at(place + offset, value.numel).store(value)
        else:
            place.store_place((offset, 0), self.dtype(value).ir_value())

    def _aligned_at(self, offset: Any, alignment: int | None) -> tuple[PackedPointer, Any]:
        """A pointer and an offset from it that name the element ``offset`` on, at a multiple of ``alignment`` bytes."""
        if not alignment:
            return self, offset
        moved = self + offset
        assert isinstance(moved, PackedPointer)
        return moved.known_aligned(alignment), 0

    def known_aligned(self, alignment: int | None) -> PackedPointer:
        return PackedPointer(self.bytes().known_aligned(alignment), self.dtype) if alignment else self

    def load_place(self, place: SplitOffset) -> Value:
        return Builder.current().extract(self.load_places([place]), 0)

    def store_place(self, place: SplitOffset, value: Value) -> None:
        self.store_places([place], Builder.current().build([value]))

    def load_places(self, where: Sequence[SplitOffset]) -> Value:
        """The elements as a vector, in the order of ``where``."""
        builder, (n, size) = Builder.current(), group(self.dtype)
        starts = self._starts(where)
        if starts is None:  # somewhere inside a byte that is known when the kernel runs
            return builder.build([self._inside(self.rest + dynamic + static) for dynamic, static in where])
        read: dict[tuple[int, int], int] = {}  # (run-time part, byte): its place among those that are loaded
        places: list[SplitOffset] = []
        groups: dict[tuple[int, int], int] = {}
        for key, start, element in starts:
            groups.setdefault((key, element // n), len(groups))
            first = element * self.dtype.width // 8
            for byte in range(first, ((element + 1) * self.dtype.width - 1) // 8 + 1):
                if (key, byte) not in read:
                    read[key, byte] = len(read)
                    places.append((start, byte))
        loaded = access.load_memory(self.under, places)
        spread = [read.get((key, g * size + i), 0) for key, g in groups for i in range(size)]
        elements = builder.bitcast(builder.shuffle(loaded, spread), VecType(self.dtype.ir_type, n * len(groups)))
        return builder.shuffle(elements, [groups[key, element // n] * n + element % n for key, _, element in starts])

    def store_places(self, where: Sequence[SplitOffset], value: Value) -> None:
        """Write the elements of the vector ``value``; together they must fill whole bytes."""
        builder, (n, size) = Builder.current(), group(self.dtype)
        groups: dict[tuple[int, int], tuple[Any, dict[int, int]]] = {}
        for position, (key, start, element) in enumerate(self._starts(where) or ()):
            groups.setdefault((key, element // n), (start, {}))[1][element % n] = position
        if not groups or any(len(filled) < n for _, filled in groups.values()):
            raise ConstraintError(
                f"{self}: {n} elements of {self.dtype.width} bits share {size} byte{'s' * (size > 1)}, and this store "
                "is not known to write all of them: what another thread writes to the same byte would be lost. Store "
                "neighbours together: a TensorSSA, or registers by cute.autovec_copy"
            )
        order = [filled[i] for _, filled in groups.values() for i in range(n)]
        packed = builder.bitcast(builder.shuffle(value, order), VecType(U8, size * len(groups)))
        bytes_ = [(start, g * size + i) for (_, g), (start, _) in groups.items() for i in range(size)]
        access.store_memory(self.under, bytes_, packed)

    def _starts(self, where: Sequence[SplitOffset]) -> list[tuple[int, Any, int]] | None:
        """For each element (a number for its run-time part, that part in bytes or 0, the static element on from
        there); None where a run-time part may end inside a byte."""
        if not isinstance(self.rest, int):
            return None
        remembered: dict[int, Any] = {}
        starts = []
        for dynamic, static in where:
            key = 0 if isinstance(dynamic, int) else id(dynamic)
            if key not in remembered:
                remembered[key] = 0 if isinstance(dynamic, int) else _in_bytes(dynamic, self.dtype)
            if remembered[key] is None:
                return None
            starts.append((key, remembered[key], self.rest + static + (dynamic if key == 0 else 0)))
        return starts

    def _inside(self, element: Any) -> Value:
        """The element that begins at any bit."""
        builder, width = Builder.current(), self.dtype.width
        bit = element * width
        low, shift = self.under.load(bit >> 3), Uint32(bit & 7)
        bits = Uint32(low)
        if 8 % width:  # it may end in the next byte
            bits = bits | Uint32(self.under.load((bit + (width - 1)) >> 3)) << 8
        code = Uint8((bits >> shift) & ((1 << width) - 1)).ir_value()
        n, size = group(self.dtype)
        together = builder.bitcast(builder.build([code] * size), VecType(self.dtype.ir_type, n))
        return builder.extract(together, 0)

    # -- the protocol --------------------------------------------------------------------------------------------

    def __extract_mlir_values__(self) -> list[Value]:
        rest = [] if isinstance(self.rest, int) else [self.rest.ir_value()]
        return [*self.under.__extract_mlir_values__(), *rest]

    def __new_from_mlir_values__(self, values: list[Value]) -> Pointer:
        if isinstance(self.rest, int):
            return PackedPointer(self.under.__new_from_mlir_values__(values), self.dtype, self.rest)
        return PackedPointer(self.under.__new_from_mlir_values__(values[:-1]), self.dtype, wrap(values[-1]))

    def __get_mlir_types__(self) -> list[Type]:
        return [v.type for v in self.__extract_mlir_values__()]

    def __carry_key__(self) -> Any:
        return (self.dtype, self.under.__carry_key__(), self.rest if isinstance(self.rest, int) else None)

    def __carry_join__(self, other: Any) -> Pointer | None:
        if self.dtype is not other.dtype or not isinstance(self.rest, int) or self.rest != other.rest:
            return None
        under = self.under.__carry_join__(other.under)
        return None if under is None else PackedPointer(under, self.dtype, self.rest)

    def __str__(self) -> str:
        swizzle = f", {self.swizzle}" if self.swizzle else ""
        return f"ptr<{type_text(self.dtype.ir_type)}, {self.memspace}, align<{self.alignment}>{swizzle}>"

    __repr__ = __str__


for _name in ("base", "const", "pending", "swizzle", "wide", "of_layout"):  # of the bytes: these offsets count bytes
    setattr(PackedPointer, _name, property(attrgetter(f"under.{_name}")))


def _in_bytes(offset: Integer, dtype: Any) -> Any:
    """A run-time offset in elements as bytes; None where it is not known to be whole bytes."""
    n, size = group(dtype)
    if offset.divisibility % n:
        return None
    groups = (offset >> (n.bit_length() - 1)).with_divisibility(offset.divisibility // n)
    if offset.nonneg:
        groups = groups.assume_nonneg(None if offset.facts.bound is None else offset.facts.bound // n + 1)
    return groups * size
