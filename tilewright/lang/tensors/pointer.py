"""Pointers: an element type, a memory space, a known alignment, and offsets that are added as late as possible.

A pointer keeps the static part of its offset apart from the address, so that ``p + i + 8`` and ``p + i`` share
``p + i`` and alignment facts survive. A *swizzled* pointer keeps its whole offset apart and permutes it at each
access: layouts on top of it stay linear. Its swizzle is stated in bytes and counts from the pointer's base, which is
on a multiple of the swizzle's span, so that it is the same permutation of address bits that TMA and wgmma apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from tilewright.errors import ArgumentError, ConstraintError, StagingError, explained
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import I64, MemSpace, PtrType, Type
from tilewright.lang.numbers.dtypes import type_text
from tilewright.lang.numbers.facts import Facts, combine, low_bit, of_number, possible_bits
from tilewright.lang.numbers.numeric import Int32, Integer, NumberInMemory, is_number, unwrap, wrap
from tilewright.lang.tensors import bounds
from tilewright.lang.tensors.address_space import SPACES as SPACES
from tilewright.lang.tensors.address_space import AddressSpace as AddressSpace
from tilewright.lang.tensors.address_space import PointerType
from tilewright.lang.tensors.address_space import element_bits as element_bits
from tilewright.lang.tensors.address_space import element_bytes as element_bytes
from tilewright.lang.tensors.address_space import is_packed as is_packed
from tilewright.lang.tensors.address_space import storage as storage
from tilewright.lang.tensors.swizzled import SwizzleBits, split
from tilewright.layout.layout import Layout
from tilewright.layout.swizzle import Swizzle


@explained
class Pointer:
    """A pointer to elements of ``dtype`` in memory.

    While staging it holds an ``ir.Value``; on the host a :class:`~tilewright.ir.runtime.DevicePointer`.
    ``const`` (elements, static) and ``pending`` (elements, run-time, only under a swizzle) are still to be added.
    ``wide``: the array behind it has more elements than 32 bits count. ``of_layout``: the swizzle is the layout's, not
    the pointer's own; such pointers stay inside tensors. ``notes``: what the op that adds ``pending`` is to note
    (:mod:`tilewright.lang.tensors.bounds`).
    """

    __slots__ = ("base", "const", "dtype", "notes", "of_layout", "pending", "swizzle", "wide")
    tensor_at: ClassVar[Callable[[Any, Any], Any]]
    """The tensor of a pointer and a layout; :mod:`tilewright.lang.tensors.tensor` sets it."""

    def __init__(
        self,
        base: Value | DevicePointer,
        dtype: Any,
        const: int = 0,
        pending: Any = 0,
        swizzle: SwizzleBits | None = None,
        wide: bool = False,
        of_layout: bool = False,
        notes: tuple[bounds.Pair, ...] = (),
    ) -> None:
        self.base = base
        self.dtype = dtype
        self.const = const
        self.pending = pending
        self.swizzle = swizzle
        self.wide = wide
        self.of_layout = of_layout
        self.notes = notes

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def _type(self) -> PtrType:
        kind = self.base.type if isinstance(self.base, Value) else None
        if not isinstance(kind, PtrType):
            raise StagingError("a host pointer has no place in a kernel: pass it as an argument")
        return kind

    value_type = element_type = property(lambda self: self.dtype)

    @property
    def type(self) -> PointerType:
        """The static properties of a pointer; the swizzle counts in bytes."""
        swizzle = Swizzle(*(self.swizzle or (0, 4, 3)))
        return PointerType(self.dtype, self.memspace, self.alignment, swizzle)

    @property
    def memspace(self) -> AddressSpace:
        """Where it points to. In host code the arrays of the CPU are in ``generic`` memory, as documented; in kernels,
        which the simulator runs on them, in ``gmem``."""
        space = AddressSpace(self._type.space.value)
        return AddressSpace.generic if space is AddressSpace.gmem and self._on_cpu else space

    @property
    def _on_cpu(self) -> bool:
        return Builder.active() and getattr(Builder.current(), "on_cpu", False)

    @property
    def space(self) -> MemSpace:
        """The memory that kernels find it in."""
        return self._type.space

    @property
    def base_align(self) -> int:
        """Known alignment of the base address, in bytes."""
        return self._type.align

    @property
    def alignment(self) -> int:
        """Known alignment in bytes of the address with every offset added."""
        size = element_bytes(self.dtype)
        align = math.gcd(self.base_align, self.const * size) if self.const else self.base_align
        pending = unwrap(self.pending)
        if not isinstance(pending, int):
            align = math.gcd(align, pending.divisibility * size)
        elif pending:
            align = math.gcd(align, pending * size)
        moved = self.const or not isinstance(pending, int) or pending
        return math.gcd(align, 1 << self.swizzle.base) if self.swizzle and moved else align

    max_alignment = alignment

    # -- moving --------------------------------------------------------------------------------------------------

    def _with(self, **changes: Any) -> Pointer:
        made = type(self).__new__(type(self))
        for name in Pointer.__slots__:
            setattr(made, name, changes.get(name, getattr(self, name)))
        return made

    def __add__(self, offset: Any) -> Pointer:
        offset = unwrap(offset.load() if isinstance(offset, NumberInMemory) else offset)
        if isinstance(offset, bool) or not (isinstance(offset, int) or is_number(offset)):
            return NotImplemented
        if isinstance(offset, int):
            return self._with(const=self.const + offset) if offset else self
        if not isinstance(offset, Integer):
            raise ConstraintError(f"a pointer moves by whole elements, not by a {type(offset).__name__}")
        if self.swizzle is not None:
            size = element_bytes(self.dtype)
            if offset.divisibility * size % self.swizzle.span:
                nothing = isinstance(self.pending, int) and self.pending == 0
                return self._with(pending=offset if nothing else self.pending + offset)
        return self._with(base=self._noted(_moved(self.base, offset)), notes=())

    __radd__ = __add__

    def __sub__(self, offset: Any) -> Pointer:
        return self + (-offset)

    def value(self, extra: int = 0) -> Value:
        """The address ``extra`` elements on, as an operand of the IR: offsets added, swizzle applied."""
        const = self.const + extra
        if self.swizzle is None:
            return _shift(self.base, const)
        dynamic, static = split(self.swizzle.in_units(element_bytes(self.dtype)), self.pending, const)
        base = self.base if isinstance(dynamic, int) else self._noted(_moved(self.base, dynamic))
        return _shift(base, static)

    def _with_notes(self, notes: Iterable[bounds.Pair]) -> Pointer:
        """The pointer, whose next run-time step is to note these."""
        return self._with(notes=(*self.notes, *notes))

    def _noted(self, made: Value) -> Value:
        if self.notes:
            bounds.attach(made, self.notes)
        return made

    def unswizzled(self) -> tuple[Pointer, Any]:
        """The plain pointer from which the swizzle counts, and the offset in elements that it permutes."""
        return self._with(const=0, pending=0, swizzle=None, of_layout=False), self.pending + self.const

    @property
    def run_time_part(self) -> Value | None:
        """The address that the last run-time offset made."""
        return self.base if isinstance(self.base, Value) else None

    def ir_value(self, *, loc: Any = None, ip: Any = None) -> Value:
        return self.value()

    to_llvm_ptr = ir_value
    llvm_ptr = property(value)

    def raw_ptr(self, *, loc: Any = None, ip: Any = None) -> Pointer:
        """The address that the pointer has now, with its swizzle applied, as a pointer without one."""
        return self if self.swizzle is None else Pointer(self.value(), self.dtype)

    # -- access --------------------------------------------------------------------------------------------------

    def load_place(self, place: tuple[Any, int]) -> Value:
        """The element (run-time part, static part) on, as an operand of the IR."""
        return Builder.current().load((self + place[0]).value(place[1]))

    def store_place(self, place: tuple[Any, int], value: Value) -> None:
        Builder.current().store((self + place[0]).value(place[1]), value)

    def load(
        self,
        offset: Any = 0,
        *,
        count: int | None = None,
        alignment: int | None = None,
        loc: Any = None,
        ip: Any = None,
    ) -> Any:
        """The element ``offset`` elements on, or ``count`` of them as a Vector; ``alignment``: of its address."""
        place = (self + offset).known_aligned(alignment)
        if count is None:
            return wrap(Builder.current().load(place.value()))
        return elements_at(place, count).load()

    def store(
        self, value: Any, offset: Any = 0, *, alignment: int | None = None, loc: Any = None, ip: Any = None
    ) -> None:
        """Store a number, or a Vector to as many elements, ``offset`` elements on."""
        place = (self + offset).known_aligned(alignment)
        if hasattr(value, "numel"):
            elements_at(place, value.numel).store(value)
        else:
            Builder.current().store(place.value(), self.dtype(value).ir_value())

    def load_swizzled(
        self, swizzle: Swizzle, alignment: int | None = None, *, count: int = 1, loc: Any = None, ip: Any = None
    ) -> Any:
        """``count`` elements of shared memory as a Vector, each at the address that ``swizzle`` of byte addresses gives
        for its place behind this pointer (``cutlass.Swizzle.from_name("s128b")``, as TMA writes them)."""
        chunks = [part.load() for part in _swizzled(self.known_aligned(alignment), count, swizzle)]
        return _vector(chunks, 0, count)

    def store_swizzled(
        self,
        value: Any,
        swizzle: Swizzle | None = None,
        alignment: int | None = None,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        """Store a Vector to such places; without a swizzle one behind the other.

        >>> from tilewright import Int32, Vector
        >>> from tilewright.layout import Swizzle
        >>> def turned(t):
        ...     base = cute.arch.alloc_smem(Int32, 64, 256)
        ...     four = Vector.from_elements((t, t + 1, t + 2, t + 3), Int32)
        ...     (base + 32).store_swizzled(four, Swizzle(1, 4, 3), 16)
        ...     return base.load(36 + 1), (base + 32).load_swizzled(Swizzle(1, 4, 3), 16, count=4)[1]
        >>> per_thread(lambda t: turned(t)[0] * 10 + turned(t)[1], 1)  # 128 bytes on, the halves of 32 are exchanged
        [11]
        """
        place, first = self.known_aligned(alignment), 0
        for part in [elements_at(place, value.numel)] if swizzle is None else _swizzled(place, value.numel, swizzle):
            n = int(part.layout.shape)
            part.store(_vector([value], first, n))
            first += n

    def known_aligned(self, alignment: int | None) -> Pointer:
        """The pointer as one to a multiple of ``alignment`` bytes, which a run checks where an access is as wide."""
        if not alignment or self.alignment % alignment == 0:
            return self
        kind = PtrType(self._type.elem, self._type.space, alignment)
        return Pointer(Builder.current().emit("ptr.cast", (self.value(),), (kind,)).result, self.dtype)

    def __getitem__(self, offset: Any, *, loc: Any = None, ip: Any = None) -> Any:
        return self.load(offset)

    __iter__ = None  # Python would take element after element without end

    def __setitem__(self, offset: Any, value: Any, *, loc: Any = None, ip: Any = None) -> None:
        self.store(value, offset)

    def align(self, min_align: int, *, loc: Any = None, ip: Any = None) -> Pointer:
        """The pointer rounded up to a multiple of ``min_align`` bytes; unchanged if it is known to be one."""
        if min_align < 1 or min_align & (min_align - 1):
            raise ConstraintError(f"align({min_align}): an alignment is a power of two")
        if self.alignment % min_align == 0:
            return self
        builder = Builder.current()
        raised = (wrap(builder.emit("ptr.toint", (self.value(),), (I64,)).result) + (min_align - 1)) & -min_align
        kind = PtrType(self._type.elem, self._type.space, min_align)
        return Pointer(builder.emit("ptr.fromint", (raised.ir_value(),), (kind,)).result, self.dtype)

    def toint(self, *, loc: Any = None, ip: Any = None) -> Any:
        """The address: Int32 in shared memory, Int64 elsewhere, a Python int on the host. A swizzle of the pointer's
        own is not applied: programs apply ``type.swizzle_type`` to the number."""
        if isinstance(self.base, DevicePointer):
            return self.base.address + self.const * element_bytes(self.dtype)
        plain, offset = (self, 0) if self.of_layout else self.unswizzled()
        number = wrap(Builder.current().emit("ptr.toint", ((plain + offset).value(),), (I64,)).result)
        return Int32(number) if self._type.space is MemSpace.SMEM else number

    # -- the protocol --------------------------------------------------------------------------------------------

    __carry_immutable__ = True

    def __extract_mlir_values__(self) -> list[Value]:
        if self.swizzle is None:
            return [self.value()]
        span = self.swizzle.in_units(element_bytes(self.dtype)).span
        whole = self.const // span * span
        return [_shift(self.base, whole), Int32(self.pending + (self.const - whole)).ir_value()]

    def __new_from_mlir_values__(self, values: list[Value]) -> Pointer:
        if self.swizzle is None:
            return Pointer(values[0], self.dtype, wide=self.wide)
        divisor, bits = self._offset_facts()
        pending = wrap(values[1], Facts(bits is not None, divisor, None, None, bits))
        return self._with(base=values[0], pending=pending, const=0)

    def __get_mlir_types__(self) -> list[Type]:
        if isinstance(self.base, DevicePointer):
            raise ArgumentError("this pointer has no alignment: make it with make_ptr")
        return [v.type for v in self.__extract_mlir_values__()]

    def __carry_key__(self) -> Any:
        return (self.dtype, self.swizzle, self.wide, self._offset_facts() if self.swizzle else None, self.of_layout)

    def __carry_join__(self, other: Any) -> Pointer | None:
        """A pointer that stands for both in a loop or branch: less is known of its offset under the swizzle."""
        if self.swizzle is None or any(
            getattr(self, name) != getattr(other, name) for name in ("dtype", "swizzle", "wide", "of_layout")
        ):
            return None
        pending = Int32(0)
        pending.facts = Facts(False, min(self._offset_facts()[0], other._offset_facts()[0]))
        return self._with(pending=pending, const=0)

    def _offset_facts(self) -> tuple[int, int | None]:
        """(the power of two that divides the offset under the swizzle, as far as it matters; the bits it can have)."""
        assert self.swizzle is not None
        swizzle = self.swizzle.in_units(element_bytes(self.dtype))
        facts = self.pending.facts if isinstance(self.pending, Integer) else of_number(self.pending)
        if self.const % swizzle.span:
            facts = combine("add", facts, of_number(self.const % swizzle.span))
        return min(low_bit(facts), 1 << swizzle.base), possible_bits(facts)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Pointer):
            return NotImplemented
        return wrap(Builder.current().compare("eq", self.value(), other.value()))

    __hash__ = object.__hash__

    def __str__(self) -> str:
        swizzle = f", {self.swizzle}" if self.swizzle else ""
        return f"ptr<{type_text(self._type.elem)}, {self.memspace}, align<{self.alignment}>{swizzle}>"

    __repr__ = __str__


def _shift(base: Value | DevicePointer, offset: int) -> Value:
    if not isinstance(base, Value):
        raise StagingError("a host pointer has no place in a kernel: pass it (or its tensor) as an argument")
    return Builder.current().ptr_add(base, offset) if offset else base


def _moved(base: Value | DevicePointer, offset: Integer) -> Value:
    """``base + offset`` with the alignment that the offset's divisor leaves."""
    if not isinstance(base, Value):
        raise StagingError("a host pointer moves by Python ints only")
    kind = base.type
    assert isinstance(kind, PtrType)
    return Builder.current().ptr_add(
        base, offset.ir_value(), math.gcd(kind.align, offset.divisibility * kind.elem.bytes)
    )


def elements_at(place: Pointer, count: int) -> Any:
    """``count`` elements from there on, as a tensor."""
    return Pointer.tensor_at(place, Layout(count))


def _vector(parts: list[Any], first: int, count: int) -> Any:
    """``count`` elements of vectors one behind the other, from ``first`` on."""
    builder = Builder.current()
    values = [builder.extract(x.value, i) for x in parts for i in range(x.numel)][first : first + count]
    return type(parts[0])(builder.build(values), (count,), parts[0].dtype)


def _swizzled(place: Pointer, count: int, swizzle: Swizzle) -> list[Any]:
    """The same under a swizzle of byte addresses, in chunks that it leaves whole."""
    each = element_bytes(place.dtype)
    chunk = math.gcd(1 << swizzle.base, place.alignment, count * each)
    if chunk < each:
        raise ConstraintError(
            f"{swizzle} parts elements of {place.dtype} at {place}: say how it is aligned, alignment=16"
        )
    parts = []
    for i in range(0, count * each, chunk):
        at = Int32(place.toint()) + i
        moved = place + (i // each) + ((swizzle(at) - at) >> (each.bit_length() - 1))
        parts.append(elements_at(moved.known_aligned(chunk), chunk // each))
    return parts
