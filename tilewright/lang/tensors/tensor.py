"""Tensors: an iterator and a layout.

The iterator is a :class:`~tilewright.lang.tensors.pointer.Pointer` (global and shared memory, the host's arrays),
:class:`~tilewright.lang.tensors.registers.Registers` (fragments of one thread) or a coordinate (identity tensors,
whose layouts have basis strides). Everything that only rearranges elements acts on the layout; see
:mod:`tilewright.lang.tensors.algebra`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn, overload

from tilewright.errors import ArgumentTypeError, ConstraintError, StagingError, explained
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import Type
from tilewright.lang.numbers.dtypes import type_text
from tilewright.lang.numbers.numeric import Int32, Int64, Integer, NumberInMemory, Numeric, is_number, unwrap, wrap
from tilewright.lang.tensors import access, bounds, outside
from tilewright.lang.tensors.descriptors import Descriptors
from tilewright.lang.tensors.leaves import dynamic_leaves, is_extent, pattern, plain_values, rebuild
from tilewright.lang.tensors.overhung import overhung_engine
from tilewright.lang.tensors.pointer import AddressSpace, Pointer, element_bits
from tilewright.lang.tensors.recast import with_swizzle
from tilewright.lang.tensors.registers import Registers
from tilewright.lang.tensors.swizzled import bits_of
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout.basis import ScaledBasis, add_coords
from tilewright.layout.composed import ComposedLayout, PartOfSwizzled
from tilewright.layout.drawable import Drawable
from tilewright.layout.ints import RuntimeInt
from tilewright.layout.layout import Layout, has_scaled_basis, has_underscore
from tilewright.layout.modes import cosize, zeros_for_none
from tilewright.layout.slicing import slice_, slice_and_offset
from tilewright.layout.swizzle import Swizzle
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import is_static


class TensorType(NamedTuple):
    """The type of a tensor, printed as ``!cute.memref<f16, gmem, align<16>, "(8,4):(4,1)">``."""

    element_type: str
    memspace: str
    alignment: int
    layout: Any

    def __str__(self) -> str:
        if not self.memspace:
            return f'!cute.coord_tensor<"{self.layout}">'
        return f'!cute.memref<{self.element_type}, {self.memspace}, align<{self.alignment}>, "{self.layout}">'


@explained
class Tensor(Drawable):
    """Elements in memory, in registers, or coordinates, seen through a layout.

    ``t[coord]`` reads an element (or slices where ``coord`` has None), ``t[coord] = x`` writes, ``t.load()`` and
    ``t.store()`` move all elements as a :class:`~tilewright.lang.tensors.tensor_ssa.TensorSSA`.

    A swizzle in the layout acts last, on the sum of all offsets. So it is kept in the pointer, ``engine``, and views
    are made of ``linear``, the layout below it; ``iterator`` and ``layout`` show the parts as the program gave them.
    """

    __slots__ = ("engine", "linear")
    __array_priority__ = 1000

    def __init__(self, engine: Any, linear: Any) -> None:
        self.engine = engine
        self.linear = linear

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def iterator(self) -> Any:
        """Pointer, registers or coordinate of the first element; a plain pointer where the *layout* is swizzled."""
        return self.engine.unswizzled()[0] if self._has_swizzled_layout else self.engine

    @property
    def layout(self) -> Any:
        if not self._has_swizzled_layout:
            return self.linear
        engine = self.engine
        swizzle = engine.swizzle.in_elements(element_bits(engine.dtype))
        plain, offset = engine.unswizzled()
        return PartOfSwizzled(Swizzle(*swizzle), unwrap(offset), self.linear, origin=plain.base)

    @property
    def _has_swizzled_layout(self) -> bool:
        return isinstance(self.engine, Pointer) and self.engine.of_layout

    @property
    def _dtype(self) -> Any:
        """``element_type``, as programs for the CuTe DSL also read it."""
        return self.element_type

    @property
    def shape(self) -> Any:
        return self.linear.shape

    @property
    def stride(self) -> Any:
        return self.linear.stride

    @property
    def element_type(self) -> Any:
        """The numeric class of an element; for coordinate tensors Int32."""
        dtype = getattr(self.engine, "dtype", None)
        if dtype is None:
            from tilewright.lang.numbers.numeric import Int32

            return Int32
        return dtype

    dtype = property(lambda self: self.element_type)
    value = property(lambda self: self)  # what functions of cutlass._mlir take

    @property
    def type(self) -> TensorType:
        """Element type, memory, alignment and layout: what programs are specialised for."""
        if self.is_coordinate:
            return TensorType("coordinates", "", 0, self.layout)
        elements = type_text(self.element_type.ir_type)
        return TensorType(elements, str(self.memspace), self.iterator.alignment, self.layout)

    def compose(self, *rhs: Any) -> Tensor:
        """The same elements through ``composition(self.layout, rhs)``; several arguments are the modes of a tiler."""
        return self.with_layout(self.linear.compose(*map(unwrap_tree, rhs)))

    @property
    def memspace(self) -> AddressSpace:
        space = getattr(self.engine, "memspace", None)
        if space is None:
            raise ConstraintError(f"{self} is a coordinate tensor: it is not in memory")
        return space

    @property
    def is_coordinate(self) -> bool:
        """Whether the elements are coordinates (an identity tensor or a view of one)."""
        return not isinstance(self.engine, (Pointer, Registers, Descriptors, TensorMemory))

    @property
    def leading_dim(self) -> int | tuple[int, ...] | None:
        """The first mode with stride 1, or None."""
        from tilewright.layout.tuples import find

        return find(self.stride, 1)

    # -- views ---------------------------------------------------------------------------------------------------

    def with_layout(self, layout: Any, offset: Any = 0) -> Tensor:
        """The same elements, ``offset`` on, through another layout."""
        return type(self)(self.advanced(offset), layout)

    def through(self, f: Callable[[Any], Any]) -> Tensor:
        """The same elements through the layout that ``f`` makes of this one."""
        return self.with_layout(f(self.linear))

    def moved(
        self, f: Callable[[Any, Any], tuple[Any, Any]], coord: Any, note: Callable[[Any], Any] = lambda moved: moved
    ) -> Tensor:
        """The tensor at the (layout, offset) of ``f(layout, coord)``; static and run-time parts of the offset are added
        apart. ``note`` is given the iterator after the run-time part."""
        if self.is_coordinate or isinstance(self.linear, ComposedLayout) or is_static(coord):
            layout, offset = f(self.linear, coord)
            return self.with_layout(layout, unwrap_tree(offset))
        layout, static = f(self.linear, _only(coord, False))
        _, dynamic = f(self.linear, _only(self.widened(coord), True))
        return Tensor(note(self.engine + unwrap_tree(dynamic)) + unwrap_tree(static), layout)

    def advanced(self, offset: Any) -> Any:
        """The iterator ``offset`` on; ``offset`` is an int, a run-time integer, a coordinate, or (run-time, static)."""
        if self.is_coordinate:
            return add_coords(self.engine, offset)
        return self.engine + offset

    # None keeps a mode: a slice. (Nested ones are not told apart here.) The overload for Python's slices, an error but
    # for `:`, keeps pyright from taking a coordinate of type Any for None.
    @overload
    def __getitem__(self, coord: None) -> Tensor: ...
    @overload
    def __getitem__(self, coord: tuple[None, *tuple[Any, ...]]) -> Tensor: ...
    @overload
    def __getitem__(self, coord: tuple[Any, None, *tuple[Any, ...]]) -> Tensor: ...
    @overload
    def __getitem__(self, coord: tuple[Any, Any, None, *tuple[Any, ...]]) -> Tensor: ...
    @overload
    def __getitem__(self, coord: tuple[Any, Any, Any, None, *tuple[Any, ...]]) -> Tensor: ...
    @overload
    def __getitem__(self, coord: slice) -> StagingError: ...
    @overload
    def __getitem__(self, coord: Any) -> Any: ...
    def __getitem__(self, coord: Any, *, loc: Any = None, ip: Any = None) -> Any:
        coord = self._coordinate(coord)
        if has_underscore(coord):
            part, place = self._slice(coord), unwrap_tree(coord)
            if part.is_coordinate or bounds.inside(place, self.shape):
                return part
            why = f"the coordinate {format_tree(place)} is outside {self}"
            return Tensor(overhung_engine(part.engine, why), part.linear)
        if self.is_coordinate:
            return add_coords(self.engine, self.linear(coord))
        if wrong := _outside(unwrap_tree(coord), self):
            if not isinstance(self.engine, Registers):
                raise ConstraintError(wrong)
            if not outside.allowed():
                raise ConstraintError(
                    f"{wrong}; with {outside.SWITCH}=undefined it can be stored, which stores nothing"
                )
            return outside.UndefinedElement(wrong)
        dynamic, static = self._place(coord)
        if isinstance(self.engine, Registers):
            return wrap(self.engine.load([static], dynamic, scalar=True))
        element = self.engine.load_place((dynamic, static))
        assert element.op is not None
        if element.op.opcode == "load":
            bounds.note(element.op, coord, self.linear)
        return wrap(element)

    def _coordinate(self, coord: Any) -> Any:
        coord, modes = coordinate(coord), self.shape
        modes = len(modes) if isinstance(modes, tuple) else 1
        if type(coord) is tuple and len(coord) == 3 != modes and all(isinstance(c, Int32) for c in coord):
            raise ConstraintError(
                f"{self} has {modes} mode{'s' * (modes > 1)}, and the coordinate three numbers; of (x, y, z), which "
                "thread_idx() and block_idx() give, take one of the three: tidx, _, _ = cute.arch.thread_idx()"
            )
        return coord

    def __setitem__(self, coord: Any, value: Any, loc: Any = None, ip: Any = None) -> None:
        coord = self._coordinate(coord)
        if has_underscore(coord):
            part = self[coord]
            return part.store(value) if isinstance(value, TensorSSA) else part.fill(value)
        self._need_elements("assignment")
        if isinstance(value, outside.UndefinedElement):
            return None
        value = value.load() if isinstance(value, NumberInMemory) else value
        if not (is_number(value) or isinstance(value, (Value, Numeric))):
            raise ConstraintError(f"an element of {self} takes a number, not {value!r} ({type(value).__name__})")
        number = access.element_value(value, self.element_type, self)
        if wrong := _outside(unwrap_tree(coord), self):
            raise ConstraintError(wrong)
        dynamic, static = self._place(coord)
        if isinstance(self.engine, Registers):
            return self.engine.store(number, [static], dynamic)
        self.engine.store_place((dynamic, static), number)
        bounds.note(Builder.current().block.ops[-1], coord, self.linear)
        return None

    def _slice(self, coord: Any) -> Tensor:
        if isinstance(self.linear, ComposedLayout):
            layout, offset = slice_and_offset(coord, self.linear)
            return self.with_layout(layout, offset)
        layout = slice_(self.linear, coord)
        if self.is_coordinate:
            return Tensor(add_coords(self.engine, self.linear(zeros_for_none(coord))), layout)
        dynamic, static = self._place(zeros_for_none(coord))
        return Tensor(bounds.note_slice(self.engine + dynamic, self, coord) + static, layout)

    def _place(self, coord: Any) -> access.SplitOffset:
        self._need_elements("indexing")
        if unwrap_tree(coord) is not coord:
            coord = unwrap_tree(coord)
        return access.split_offset(self.widened(coord), self.linear)

    def widened(self, coord: Any) -> Any:
        """``coord`` with run-time numbers as Int64 where 32 bits cannot count the elements that it may reach."""
        if is_static(coord) or not isinstance(self.engine, Pointer) or not isinstance(self.linear, Layout):
            return coord
        if not (cosize(self.linear) > _WIDE if is_static(self.linear) else self.engine.wide):
            return coord
        return _widen(coord)

    def __iter__(self) -> Iterator[Any]:
        for i in range(access.element_count(self.linear, "iteration")):
            yield self[i]

    # -- all elements --------------------------------------------------------------------------------------------

    def load(self, *, loc: Any = None, ip: Any = None) -> TensorSSA:
        """All elements as a TensorSSA; the shape must be static."""
        self._need_elements("load()")
        count = access.element_count(self.linear, "load()")
        where = access.places(self.linear, count)
        if isinstance(self.engine, Registers):
            vector = self.engine.load([_static(o) for o in where])
        else:
            vector = access.load_memory(self.engine, where)
        return TensorSSA(vector, self.shape, self.element_type)

    def store(self, data: Any, *, loc: Any = None, ip: Any = None) -> None:
        """Write all elements: a TensorSSA of this shape's size and element type, or a number."""
        self._need_elements("store()")
        count = access.element_count(self.linear, "store()")
        if not isinstance(data, TensorSSA):
            return self.fill(data)
        if data.numel != count:
            data = data.broadcast_to(self.shape)
        if data.dtype is not self.element_type:
            raise ConstraintError(
                f"store: a TensorSSA of {data.dtype} into {self}; convert it with .to({self.element_type})"
            )
        where = access.places(self.linear, count)
        if isinstance(self.engine, Registers):
            return self.engine.store(data.value, [_static(o) for o in where])
        return access.store_memory(self.engine, where, data.value)

    def fill(self, value: Any, *, loc: Any = None, ip: Any = None) -> None:
        """Set every element to ``value``."""
        self._need_elements("fill()")
        count = access.element_count(self.linear, "fill()")
        number = access.element_value(value, self.element_type, self)
        vector = Builder.current().splat(number, count)
        return self.store(TensorSSA(vector, self.shape, self.element_type))

    def to(self, dtype: Any) -> NoReturn:
        raise StagingError(f"a tensor has no .to({dtype}): load() it first, then .to() the TensorSSA")

    def _need_elements(self, what: str) -> None:
        if self.is_coordinate:
            raise ConstraintError(f"{what} on {self}: a coordinate tensor has coordinates for elements, not numbers")

    # -- arguments and control flow ------------------------------------------------------------------------------

    __carry_immutable__ = True

    def __extract_mlir_values__(self) -> list[Value]:
        if self.is_coordinate:
            own = dynamic_leaves(self.engine)
        else:
            own = self.engine.__extract_mlir_values__()
        return [*plain_values(own), *plain_values(dynamic_leaves(self.linear))]

    def __new_from_mlir_values__(self, values: list[Value]) -> Any:
        rest = iter(values)
        if self.is_coordinate:
            iterator = rebuild(self.engine, rest)
        else:
            count = len(self.engine.__get_mlir_types__())
            iterator = self.engine.__new_from_mlir_values__([next(rest) for _ in range(count)])
        return Tensor(iterator, rebuild(self.linear, rest))

    def __get_mlir_types__(self) -> list[Type]:
        own = [] if self.is_coordinate else self.engine.__get_mlir_types__()
        leaves = dynamic_leaves(self.engine) if self.is_coordinate else []
        return [*own, *[type(x).ir_type for x in [*leaves, *dynamic_leaves(self.linear)]]]

    def __carry_key__(self) -> Any:
        own = pattern(self.engine) if self.is_coordinate else self.engine.__carry_key__()
        return (type(self.engine), own, pattern(self.linear))

    def __carry_join__(self, other: Any) -> Tensor | None:
        """A tensor that stands for both in a loop or branch, where only what is known of the pointers differs."""
        if not isinstance(self.engine, Pointer) or not isinstance(other.engine, Pointer):
            return None
        if pattern(self.linear) != pattern(other.linear):
            return None
        iterator = self.engine.__carry_join__(other.engine)
        return None if iterator is None else Tensor(iterator, self.linear)

    def __carry_facts__(self) -> Any:
        return tuple((x.nonneg, x.divisibility, is_extent(x)) for x in dynamic_leaves(self.linear))

    # -- text ----------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        iterator = format_tree(self.engine) if self.is_coordinate else str(self.iterator)
        return f"tensor<{iterator} o {self.layout}>"

    __repr__ = __str__

    def __bool__(self) -> bool:
        raise StagingError(
            f"a tensor has no truth value ({self}): ask `if x is not None:` whether there is one, or test an element, "
            "`if x[0] != 0:`"
        )

    def __len__(self) -> int:
        raise ArgumentTypeError(
            f"len() of {self}: cute.size(x) is the number of elements, cute.size(x, mode=[0]) that of mode 0, and "
            "cute.rank(x) the number of modes"
        )


def make_tensor(iterator: Any, layout: Any, *, loc: Any = None, ip: Any = None) -> Tensor:
    """A tensor from an iterator (pointer, registers, coordinate) and a layout or shape.

    A swizzled layout permutes offsets in elements; a swizzled pointer (``recast_ptr``) permutes byte addresses.

    >>> def element(t, p):
    ...     x = cute.make_tensor(p, cute.make_layout((2, 4), stride=(4, 1)))
    ...     return x[1, t] - cute.make_tensor(p + 2, 2)[0]
    >>> per_thread(element, 4, memory=range(8))[0]
    [2, 3, 4, 5]
    """
    if isinstance(iterator, Tensor):
        iterator = iterator.iterator
    if not isinstance(layout, (Layout, ComposedLayout)):
        from tilewright.layout.layout import make_layout

        layout = make_layout(layout)
    if isinstance(layout, ComposedLayout) and isinstance(iterator, Pointer) and isinstance(layout.inner, Swizzle):
        iterator, layout = _swizzled(iterator, layout)
    if isinstance(iterator, (Pointer, Registers)) and isinstance(layout, Layout) and has_scaled_basis(layout):
        raise ConstraintError(f"make_tensor: the layout {layout} gives coordinates; {iterator} needs offsets")
    return Tensor(iterator, layout)


def _swizzled(pointer: Pointer, layout: ComposedLayout) -> tuple[Pointer, Any]:
    """The swizzle moves from the layout into the pointer, where slices leave it alone."""
    swizzle = bits_of(layout.inner).of_elements(element_bits(pointer.dtype))
    if isinstance(layout, PartOfSwizzled) and _is_part_begin(pointer, layout.origin):
        # The pointer says where the part begins, so that the layout counts from there: sw(offset + x) - sw(offset).
        pointer = pointer + -bits_of(layout.inner).of(layout.offset)
    if swizzle.bits:
        if pointer.swizzle is not None:
            raise ConstraintError(f"make_tensor: {pointer} is swizzled already; take {layout}'s outer layout")
        pointer = with_swizzle(pointer, swizzle, of_layout=True)
    return pointer + layout.offset, layout.outer


def _is_part_begin(pointer: Pointer, origin: Any) -> bool:
    """Whether a pointer was made from a number, other than that of ``origin``: the ``iterator`` of a part is its
    origin, so only such a pointer can hold the part's own offset."""

    def made_by(opcode: str, value: Any) -> Any:
        while isinstance(value, Value) and value.op is not None and value.op.opcode in ("cast", "bitcast"):
            value = value.op.operands[0]
        op = value.op if isinstance(value, Value) else None
        return op.operands[0] if op is not None and op.opcode == opcode else None

    number = made_by("ptr.fromint", pointer.base)
    return number is not None and made_by("ptr.toint", number) is not origin


def unwrap_tree(x: Any) -> Any:
    """Integer numerics whose numbers are known become ints, at every leaf; the same object if nothing changes."""
    if isinstance(x, tuple):
        made = tuple([unwrap_tree(i) for i in x])
        return made if any(a is not b for a, b in zip(made, x, strict=True)) else x
    return unwrap(x)


def _only(coord: Any, dynamic: bool) -> Any:
    """``coord`` with its static (``dynamic``) or run-time numbers as zero; None stays."""
    if isinstance(coord, tuple):
        return tuple([_only(c, dynamic) for c in coord])
    return coord if coord is None or isinstance(coord, Integer) == dynamic else 0


def coordinate(coord: Any) -> Any:
    """``coord`` in tuples of ints, integers of the language and None, whatever it was written in."""
    if isinstance(coord, list):
        coord = tuple(coord)
    if isinstance(coord, tuple):
        return tuple([coordinate(c) for c in coord])
    if isinstance(coord, slice):
        if coord == slice(None):
            return None
        raise StagingError(
            f"tensors take no Python slices such as {coord}; use None for a whole mode, local_tile for a part"
        )
    coord = unwrap(coord.load() if isinstance(coord, NumberInMemory) else coord)
    if isinstance(coord, Value):
        return wrap(coord)
    if coord is None or isinstance(coord, (int, RuntimeInt, ScaledBasis)):
        return int(coord) if isinstance(coord, bool) else coord
    index = getattr(coord, "__index__", None)
    if index is not None and not isinstance(coord, Numeric):
        return index()
    divided = "; // divides integers, / gives a float" if isinstance(coord, Numeric) and type(coord).is_float else ""
    raise StagingError(
        f"{coord!r} ({type(coord).__name__}) is not a coordinate: use ints, None, or tuples of them{divided}"
    )


def _outside(coord: Any, tensor: Tensor) -> str:
    """The error in a static coordinate, empty if none: at once, so that the error names the line."""
    if isinstance(tensor.linear, Layout) and not bounds.inside(coord, tensor.linear.shape):
        return f"the coordinate {format_tree(coord)} is outside {tensor}"
    return ""


Pointer.tensor_at = staticmethod(make_tensor)  # vectors through pointers are those of tensors, which stand above
_WIDE = 1 << 31


def _widen(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple([_widen(part) for part in x])
    return Int64(x) if isinstance(x, Integer) else x


def _static(place: access.SplitOffset) -> int:
    if not isinstance(place[0], int):
        raise ConstraintError("registers have static layouts")
    return place[1]
