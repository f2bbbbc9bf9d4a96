"""``cute.struct`` and ``cute.union``: a class of annotations as a layout of bytes, for shared storage.

    @cute.struct
    class SharedStorage:
        barriers: cute.struct.MemRange[cutlass.Int64, 4]
        sA: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, 4096], 1024]
        ticket: cutlass.Int32

Members follow each other in order, each at the next multiple of its alignment; ``SharedStorage(pointer)`` (or
``SmemAllocator().allocate(SharedStorage)``) gives an object whose members are memory: a range has ``data_ptr()`` and
``get_tensor(layout)``, a scalar reads and assigns.
"""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from tilewright.errors import ArgumentError, ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.types import PtrType
from tilewright.lang.numbers.numeric import ARITHMETIC, BITWISE, NumberInMemory, Numeric, NumericMeta
from tilewright.lang.tensors.pointer import Pointer, element_bits, element_bytes, storage
from tilewright.lang.tensors.recast import pointer_to, recast_ptr
from tilewright.lang.tensors.tensor import Tensor, make_tensor

Locate = Callable[[int, int, Any, str], Pointer]
"""``(offset, bytes, dtype, name) -> pointer`` to a member of a struct."""


class MemRangeType:
    """``count`` elements of ``dtype``, one after another."""

    def __init__(self, dtype: Any, count: int) -> None:
        if not isinstance(dtype, NumericMeta) or not isinstance(count, int) or count < 0:
            raise ArgumentError(
                f"struct.MemRange[dtype, count] takes a numeric type and a count, not [{dtype}, {count}]"
            )
        self.dtype, self.count = dtype, count
        self.size_in_bytes = -(-element_bits(dtype) * count // 8)
        self.align = element_bytes(dtype)

    def at(self, locate: Locate, offset: int, name: str) -> MemRange:
        return MemRange(self, locate(offset, self.size_in_bytes, self.dtype, name), name)


class AlignType:
    """``inner`` at a multiple of ``align`` bytes."""

    def __init__(self, inner: Any, align: int) -> None:
        self.inner = as_member(inner)
        if not isinstance(align, int) or align < 1 or align & (align - 1):
            raise ArgumentError(f"struct.Align: an alignment is a power of two, not {align}")
        self.align = max(align, self.inner.align)
        self.size_in_bytes = self.inner.size_in_bytes

    def at(self, locate: Locate, offset: int, name: str) -> Any:
        return self.inner.at(locate, offset, name)


class ScalarType:
    """One number."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.size_in_bytes = self.align = element_bytes(dtype)

    def at(self, locate: Locate, offset: int, name: str) -> Scalar:
        return Scalar(locate(offset, self.size_in_bytes, self.dtype, name))


class StructType:
    """A struct: ``fields`` maps names to (member type, offset in bytes). Calling it with a pointer gives the object.
    Functions of the class are ``methods`` of the object."""

    def __init__(self, name: str, members: dict[str, Any], methods: dict[str, Any] | None = None) -> None:
        self.__name__ = name
        self.methods = methods or {}
        self.fields: dict[str, tuple[Any, int]] = {}
        self.align, end = 1, 0
        for field, annotation in members.items():
            member = as_member(annotation, f"{name}.{field}")
            offset = self._place(end, member.align)
            self.fields[field] = (member, offset)
            self.align, end = max(self.align, member.align), max(end, offset + member.size_in_bytes)
        self._size = -(-end // self.align) * self.align

    @staticmethod
    def _place(end: int, align: int) -> int:
        """Where a member begins when those before it end at byte ``end``."""
        return -(-end // align) * align

    def size_in_bytes(self) -> int:
        """Bytes of one object, padded to its alignment."""
        return self._size

    __sizeof__ = size_in_bytes

    def alignment(self) -> int:
        return self.align

    __alignof__ = alignment

    def __call__(self, base: Any) -> Struct:
        if isinstance(base, Struct):  # what an allocator gave, seen as this type
            if base._kind.size_in_bytes() < self._size or base._kind.align % self.align:
                raise ConstraintError(f"{base._kind} is not a place for a {self}")
            return Struct(self, base._locate, base._offset)
        pointer = base if isinstance(base, Pointer) else base.data_ptr()
        return Struct(self, _in_memory(pointer), 0)

    def at(self, locate: Locate, offset: int, name: str) -> Struct:
        return Struct(self, lambda o, n, dtype, field: locate(o, n, dtype, f"{name}_{field}"), offset)

    word = "struct"

    def __repr__(self) -> str:
        return f"{self.word} {self.__name__} ({self._size} bytes, align {self.align})"


class UnionType(StructType):
    """A union: every member begins at byte 0, the size is that of the largest."""

    word = "union"

    @staticmethod
    def _place(end: int, align: int) -> int:
        return 0


class _Nested:
    """A struct as a member of another."""

    def __init__(self, kind: StructType) -> None:
        self.kind, self.size_in_bytes, self.align = kind, kind.size_in_bytes(), kind.align

    def at(self, locate: Locate, offset: int, name: str) -> Struct:
        return self.kind.at(locate, offset, name)


class Struct:
    """An object of a struct type in memory; its attributes are the members."""

    __slots__ = ("_kind", "_locate", "_offset")

    def __init__(self, kind: StructType, locate: Locate, offset: int) -> None:
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_locate", locate)
        object.__setattr__(self, "_offset", offset)

    def _member(self, name: str) -> Any:
        kind = self._kind.fields.get(name)
        if kind is None:
            raise AttributeError(f"{self._kind} has no member {name!r}; it has {', '.join(self._kind.fields)}")
        member, offset = kind
        return member.at(self._locate, self._offset + offset, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = self._kind.methods.get(name)
        return self._member(name) if method is None else method.__get__(self, Struct)

    def __setattr__(self, name: str, value: Any) -> None:
        member = self._member(name)
        if not isinstance(member, Scalar):
            raise ConstraintError(f"{self._kind.__name__}.{name} is not a number: it cannot be assigned as a whole")
        member.store(value)

    def size_in_bytes(self) -> int:
        return int(self._kind.size_in_bytes())


class Scalar(NumberInMemory):
    """A number in memory: reads where it is used as one, ``.ptr`` is its address. Programs pass the member itself for
    an mbarrier, so it can be asked for its address as a pointer can."""

    __slots__ = ("ptr",)

    def __init__(self, ptr: Pointer) -> None:
        self.ptr = ptr

    def toint(self, *, loc: Any = None, ip: Any = None) -> Any:
        return self.ptr.toint()

    def load(self) -> Any:
        return self.ptr.load()

    def store(self, value: Any) -> None:
        self.ptr.store(value)

    value = property(load)

    def to(self, dtype: Any) -> Any:
        return self.load().to(dtype)

    def ir_value(self, *, loc: Any = None, ip: Any = None) -> Any:
        return self.load().ir_value()

    def __repr__(self) -> str:
        return f"{self.ptr.dtype} at {self.ptr}"


def _install_reads() -> None:
    def forward(name: str) -> Any:
        act = getattr(operator, f"__{name}__")
        return lambda self, *other: act(self.load(), *[o.load() if isinstance(o, Scalar) else o for o in other])

    def reflected(name: str) -> Any:
        act = getattr(operator, f"__{name}__")
        return lambda self, other: act(other, self.load())

    for name in [*ARITHMETIC, *BITWISE]:
        setattr(Scalar, f"__{name}__", forward(name))
        setattr(Scalar, f"__r{name}__", reflected(name))
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "invert", "abs"):
        setattr(Scalar, f"__{name}__", forward(name))


_install_reads()


class MemRange:
    """A range of elements in memory."""

    __slots__ = ("_kind", "_name", "_pointer")

    def __init__(self, kind: MemRangeType, pointer: Pointer, name: str) -> None:
        self._kind, self._pointer, self._name = kind, pointer, name

    @property
    def size(self) -> int:
        """How many elements."""
        return self._kind.count

    _size = size  # the name by which FlashAttention 4 asks

    @property
    def elem_width(self) -> int:
        """Bits of an element."""
        return int(self._kind.dtype.width)

    dtype = property(lambda self: self._kind.dtype)

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all elements."""
        return self._kind.size_in_bytes

    def data_ptr(self) -> Pointer:
        """The address of the first element."""
        return self._pointer

    def get_tensor(
        self, layout: Any, swizzle: Any = None, dtype: Any = None, *, loc: Any = None, ip: Any = None
    ) -> Tensor:
        """The range as a tensor; ``swizzle`` permutes its byte addresses (see ``recast_ptr``)."""
        from tilewright.lang.tensors.algebra import size_in_bytes

        pointer = recast_ptr(self._pointer, swizzle, dtype)
        needed = size_in_bytes(pointer.dtype, layout, swizzle)
        if isinstance(needed, int) and needed > self._kind.size_in_bytes:
            raise ConstraintError(
                f"get_tensor: {layout} of {pointer.dtype} needs {needed} bytes, but the range {self._name!r} has "
                f"{self._kind.size_in_bytes}"
            )
        return make_tensor(pointer, layout)

    def __getitem__(self, index: Any, *, loc: Any = None, ip: Any = None) -> Any:
        return self._pointer[self._within(index)]

    def __setitem__(self, index: Any, value: Any, *, loc: Any = None, ip: Any = None) -> None:
        self._pointer[self._within(index)] = value

    def __len__(self) -> int:
        return self._kind.count

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def _within(self, index: Any) -> Any:
        """``index``, which is refused where it is known to name another member's memory."""
        if isinstance(index, int) and not 0 <= index < self._kind.count:
            raise ConstraintError(
                f"the index {index} is outside of the range {self._name!r}, which has {self._kind.count} elements"
            )
        return index

    def __repr__(self) -> str:
        return f"MemRange[{self._kind.dtype}, {self._kind.count}] at {self._pointer}"


class struct:
    """The decorator; see the module's docstring. ``struct.MemRange`` and ``struct.Align`` annotate members.

    >>> import tilewright as cutlass
    >>> from tilewright import utils
    >>> @cute.struct
    ... class Storage:
    ...     barriers: cute.struct.MemRange[cutlass.Int64, 2]
    ...     tile: cute.struct.Align[cute.struct.MemRange[cutlass.Int32, 32], 128]
    >>> Storage.size_in_bytes()
    256
    >>> def reversed_lane(t):
    ...     storage = utils.SmemAllocator().allocate(Storage)
    ...     tile = storage.tile.get_tensor(cute.make_layout(32))
    ...     tile[31 - t] = t
    ...     cute.arch.sync_warp()
    ...     return tile[t]
    >>> per_thread(reversed_lane)[:3]
    [31, 30, 29]
    """

    class _MemRangeMaker:
        def __getitem__(self, params: Any) -> MemRangeType:
            if not isinstance(params, tuple) or len(params) != 2:
                raise ArgumentError("struct.MemRange takes [dtype, count]")
            return MemRangeType(*params)

    class _AlignMaker:
        def __getitem__(self, params: Any) -> AlignType:
            if not isinstance(params, tuple) or len(params) != 2:
                raise ArgumentError("struct.Align takes [member, alignment in bytes]")
            return AlignType(*params)

    if TYPE_CHECKING:  # the one form that takes numbers and a type; its layout is known while staging
        from typing import Annotated as Align
        from typing import Annotated as MemRange
    else:
        MemRange = _MemRangeMaker()
        Align = _AlignMaker()

    def __new__(cls, declared: type) -> Any:
        return StructType(declared.__name__, _members(declared, "struct", sys._getframe(1)), _methods(declared))


def union(declared: type) -> Any:
    """``@cute.union``: like :class:`struct`, but all members are at the same place, the first byte.

    >>> import tilewright as cutlass
    >>> @cute.union
    ... class Bits:
    ...     as_int: cutlass.Int32
    ...     as_float: cutlass.Float32
    ...     halves: cute.struct.MemRange[cutlass.Float16, 4]
    >>> Bits.__sizeof__(), Bits.__alignof__()
    (8, 4)
    """
    return UnionType(declared.__name__, _members(declared, "union", sys._getframe(1)), _methods(declared))


def _members(declared: type, word: str, frame: FrameType) -> dict[str, Any]:
    """The annotations of a class, evaluated where the decorator is."""
    annotations = {
        name: eval(text, frame.f_globals, {**frame.f_locals, **vars(declared)}) if isinstance(text, str) else text
        for name, text in inspect.get_annotations(declared).items()
    }
    if not annotations:
        raise ArgumentError(f"@cute.{word}: the class {declared.__name__} annotates no members")
    return annotations


def _methods(declared: type) -> dict[str, Any]:
    """The functions of a class, plain and staged ones."""
    return {
        name: value
        for name, value in vars(declared).items()
        if not name.startswith("__") and callable(value) and hasattr(value, "__get__")
    }


def as_member(annotation: Any, where: str = "struct") -> Any:
    if isinstance(annotation, StructType):
        return _Nested(annotation)
    if isinstance(annotation, (MemRangeType, AlignType, _Nested)):
        return annotation
    if isinstance(annotation, NumericMeta) and issubclass(annotation, Numeric):
        return ScalarType(annotation)
    raise ArgumentError(
        f"{where}: {annotation!r} is not a member type: use a numeric type, struct.MemRange[...], struct.Align[...] "
        "or a struct"
    )


def _in_memory(base: Pointer) -> Locate:
    def locate(offset: int, _: int, dtype: Any, __: str) -> Pointer:
        size = element_bytes(base.dtype)
        if offset % size == 0:
            moved = base + offset // size
            return moved if moved.dtype is dtype else _cast(moved, dtype)
        from tilewright.lang.numbers.numeric import Uint8

        return _cast(_cast(base, Uint8) + offset, dtype)

    return locate


def _cast(pointer: Pointer, dtype: Any) -> Pointer:
    value = pointer.value()
    kind = value.type
    assert isinstance(kind, PtrType)
    return pointer_to(dtype, Builder.current().ptr_cast(value, PtrType(storage(dtype), kind.space, kind.align)))
