"""The Layout: a shape and a stride of one profile, which together are a function from coordinates to offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, overload

from tilewright.errors import LayoutError, explained
from tilewright.layout.basis import ScaledBasis, make_basis_like
from tilewright.layout.coords import compact, compact_order, compact_right, coord_of, crd2crd, offset_of
from tilewright.layout.drawable import Drawable
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import (
    Coord,
    IntTuple,
    Shape,
    Stride,
    as_int_tuple,
    flatten_to_tuple,
    is_congruent,
    is_static,
    ones_at_zeros,
    repeat,
    same_tree,
)


@explained
class Layout(Drawable):
    """``shape:stride``. Immutable; hashable when everything in it is static.

    As a function it takes the natural coordinate, any coarser coordinate, or the 1-D (colexicographic) index, and
    gives the inner product of the natural coordinate with the stride. A coordinate with ``None`` in it slices.
    The constructor looks at the outermost level of its arguments; :func:`make_layout` checks all.

    >>> layout = Layout((2, (2, 2)), (4, (2, 1)))
    >>> layout, layout(1, (0, 1)), layout(1, 2), layout(5)
    ((2,(2,2)):(4,(2,1)), 5, 5, 5)
    >>> layout(1, None), layout[1]
    (((2,2)):((2,1)), (2,2):(2,1))
    """

    __slots__ = ("_hash", "_memo", "shape", "stride")
    shape: Shape
    stride: Stride
    _hash: int | None
    _memo: dict[Any, Any] | None  # results of the cheapest operations on this layout object, see kept()

    def __init__(self, shape: Shape, stride: Stride = None) -> None:
        # Layouts are made often: only the outermost level is checked. `make_layout` checks all levels, and refuses an
        # extent of 0, which arrays without elements have.
        for step in stride if type(stride) is tuple else (stride,):
            if type(step) is float or type(step) is str:
                raise LayoutError(f"Layout: {step!r} in the stride {stride!r} is not a whole number")
        for extent in shape if type(shape) is tuple else (shape,):
            if type(extent) is int:
                if extent < 0:
                    raise _no_extent(extent, shape)
            elif type(extent) is float or type(extent) is str or extent is None:
                raise _no_extent(extent, shape)
        if stride is None:
            stride = compact(shape)
        elif (len(shape) if type(shape) is tuple else 0) != (len(stride) if type(stride) is tuple else 0):
            raise LayoutError(
                f"Layout: the stride {format_tree(stride)} does not have the profile of the shape {format_tree(shape)}"
            )
        _set_shape(self, shape)
        _set_stride(self, stride)
        _set_hash(self, None)
        _set_memo(self, None)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Layout is immutable: make a new one instead of setting {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, (self.shape, self.stride)

    @staticmethod
    def parse(text: str) -> Any:
        """Read ``shape:stride``, a shape alone (column-major), or a composed layout.

        >>> Layout.parse("(8):(1)"), Layout.parse("(4,8)"), Layout.parse("Sw<1,0,1> o 0 o 4:1")
        ((8):(1), (4,8):(1,4), Sw<1,0,1> o 0 o 4:1)
        """
        from tilewright.layout.parsing import parse

        result = parse(text)
        return result if isinstance(result, Drawable) else make_layout(result)

    @property
    def value(self) -> Self:
        """What functions of the CuTe DSL's internals take: the layout itself."""
        return self

    def __call__(self, *coord: Coord, loc: Any = None, ip: Any = None) -> Any:
        c = coord[0] if len(coord) == 1 else coord
        if type(c) is list:
            c = tuple(c)
        if c is None or (type(c) is tuple and _has_none(c)):
            from tilewright.layout.slicing import slice_

            return slice_(self, c)
        try:
            result = offset_of(c, self.shape, self.stride)
        except TypeError as error:
            raise LayoutError(f"{self}: {c!r} is not a coordinate ({error})") from error
        return result.to_tuple() if result.__class__ is ScaledBasis else result

    def __getitem__(self, mode: int | tuple[int, ...], *, loc: Any = None, ip: Any = None) -> Layout:
        from tilewright.layout.modes import get

        return get(self, mode)

    def __len__(self) -> int:
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    def __iter__(self) -> Iterator[Layout]:
        if isinstance(self.shape, tuple):
            return iter([Layout(s, d) for s, d in zip(self.shape, self.stride, strict=True)])
        return iter([self])

    def get_hier_coord(self, idx: Any, *, loc: Any = None, ip: Any = None) -> Coord:
        """The natural coordinate of offset ``idx``; meaningful for compact layouts.

        Raises:
            LayoutError: ``idx`` is a coordinate, not an offset.

        >>> Layout((8, (2, 8)), (1, (8, 16))).get_hier_coord(20)
        (4, (0, 1))
        """
        if isinstance(idx, tuple):
            raise LayoutError(
                f"{self}: {format_tree(idx)} is a coordinate; get_hier_coord, get_flat_coord and get_1d_coord take an "
                "offset, one integer. idx2crd(coordinate, layout.shape) gives the natural coordinate of a coordinate"
            )
        return coord_of(idx, self.shape, self.stride)

    def get_flat_coord(self, idx: Any, *, loc: Any = None, ip: Any = None) -> Coord:
        """The coordinate of offset ``idx`` with one entry per mode."""
        return crd2crd(self.get_hier_coord(idx), self.shape, repeat(1, len(self)))

    def get_1d_coord(self, idx: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """The 1-D coordinate of offset ``idx``."""
        return offset_of(self.get_hier_coord(idx), self.shape, compact(self.shape))

    def compose(self, *rhs: Any) -> Any:
        """``composition(self, rhs)``; several arguments are the modes of a tiler.

        >>> Layout((4, 8), (13, 1)).compose(Layout(8, 2))
        (2,4):(26,1)
        """
        from tilewright.layout.compose import composition

        return composition(self, rhs[0] if len(rhs) == 1 else rhs)

    @property
    def max_alignment(self) -> int:
        """The widest unit, in elements, in which the layout can be moved.

        >>> Layout((8, 4), (1, 32)).max_alignment
        8
        """
        from tilewright.layout.recast import max_alignment

        return max_alignment(self)

    def with_shape(self, *shape: Any) -> Layout:
        """The same elements in the same order under another shape (see the free function of the same name)."""
        from tilewright.layout.compose import with_shape

        return with_shape(self, shape[0] if len(shape) == 1 else shape)

    def is_static(self) -> bool:
        return self._hash is not None or (is_static(self.shape) and is_static(self.stride))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Layout):
            return NotImplemented
        if self._hash is not None and other._hash is not None:
            return self._hash == other._hash and bool(self.shape == other.shape and self.stride == other.stride)
        return same_tree(self.shape, other.shape) and same_tree(self.stride, other.stride)

    def __hash__(self) -> int:
        if self._hash is None:
            _set_hash(self, hash((self.shape, self.stride)))
        return self._hash  # type: ignore[return-value]  # set where it was None

    def __repr__(self) -> str:
        return f"{format_tree(self.shape)}:{format_tree(self.stride)}"


_set_shape = Layout.__dict__["shape"].__set__
_set_stride = Layout.__dict__["stride"].__set__
_set_hash = Layout.__dict__["_hash"].__set__
_set_memo = Layout.__dict__["_memo"].__set__


def kept(layout: Layout, key: Any, result: Layout) -> Layout:
    """``result`` (flat), remembered in ``layout`` under ``key`` if it is static and this is not the layout's first use:
    a loop over one layout soon computes nothing, and a layout that is used once costs nothing more.

    Run-time leaves are never kept: their arithmetic may be in a region that the next call is not in.
    """
    memo = layout._memo
    if memo is None:
        _set_memo(layout, {})
    elif is_static(result.shape) and is_static(result.stride):
        memo[key] = result
    return result


def _has_none(c: tuple[Any, ...]) -> bool:
    return any(x is None or (type(x) is tuple and _has_none(x)) for x in c)


def has_underscore(a: Any) -> bool:
    """Whether ``a`` contains None, the placeholder that CuTe writes ``_``.

    >>> has_underscore((3, (None, 2))), has_underscore((3, 2))
    (True, False)
    """
    return a is None or (isinstance(a, tuple) and _has_none(a))


def has_scaled_basis(a: Any) -> bool:
    """Whether the tree or layout ``a`` contains basis strides.

    >>> from tilewright.layout import make_identity_layout
    >>> has_scaled_basis(make_identity_layout((4, 8))), has_scaled_basis(Layout((4, 8)))
    (True, False)
    """
    a = getattr(a, "stride", a)
    return isinstance(a, ScaledBasis) or (isinstance(a, tuple) and any(map(has_scaled_basis, a)))


@overload
def make_layout(shape: Shape | list[Layout], *, stride: Stride = None, loc: Any = None, ip: Any = None) -> Layout: ...
@overload
def make_layout(layout: Layout, /, *layouts: Layout, loc: Any = None, ip: Any = None) -> Layout: ...
def make_layout(shape: Any, *layouts: Layout, stride: Any = None, loc: Any = None, ip: Any = None) -> Layout:
    """A layout from a shape and a stride (column-major when left out), or several layouts, also in a list, as the modes
    of one.

    Raises LayoutError when the profiles differ or an extent is not positive.

    >>> make_layout((4, 8)), make_layout((4, 8), stride=(8, 1)), make_layout(Layout(4), Layout(2, 4))
    ((4,8):(1,4), (4,8):(8,1), (4,2):(1,4))
    """
    if not layouts and isinstance(shape, (list, tuple)) and shape and all(isinstance(x, Layout) for x in shape):
        shape, *layouts = shape  # type: ignore[assignment]  # the modes
    if layouts or isinstance(shape, Layout):
        if stride is not None:
            raise LayoutError("make_layout: a stride belongs to a shape, not to a list of layouts")
        return _of_modes((shape, *layouts))
    if shape == () and stride in (None, ()):  # the layout of a scalar
        return Layout(())
    shape = _extents(shape, "make_layout")
    if stride is None:
        return Layout(shape)
    stride = as_int_tuple(stride, "stride")
    if not is_congruent(shape, stride):
        raise LayoutError(
            f"make_layout: the stride {format_tree(stride)} does not have the profile of the shape {format_tree(shape)}"
        )
    return Layout(shape, stride)


def _of_modes(modes: tuple[Any, ...]) -> Layout:
    """The layout with these layouts as its modes."""
    if len(modes) == 2 and all(isinstance(mode, int | tuple) for mode in modes):
        first, second = map(format_tree, modes)
        raise LayoutError(f"make_layout: the stride is given by its name: make_layout({first}, stride={second})")
    for mode in modes:
        if not isinstance(mode, Layout):
            raise LayoutError(f"make_layout: {format_tree(mode)} is not a layout; the other arguments are")
    return Layout(tuple([mode.shape for mode in modes]), tuple([mode.stride for mode in modes]))


def _no_extent(extent: Any, shape: Any) -> LayoutError:
    return LayoutError(f"Layout: {extent!r} in the shape {shape!r} is not a positive extent")


def _extents(shape: Any, operation: str) -> IntTuple:
    """``shape`` as an integer tree; every static extent in it must be positive."""
    shape = as_int_tuple(shape)
    for s in flatten_to_tuple(shape):
        if isinstance(s, ScaledBasis) or (isinstance(s, int) and s < 1):
            raise LayoutError(f"{operation}: {s} in the shape {format_tree(shape)} is not a positive extent")
    return shape


def make_layout_right(shape: Any) -> Layout:
    """The compact row-major layout of ``shape``.

    >>> make_layout_right((2, (3, 4)))
    (2,(3,4)):(12,(4,1))
    """
    shape = _extents(shape, "make_layout_right")
    return Layout(shape, compact_right(shape))


def make_ordered_layout(shape: Any, order: Any, *, loc: Any = None, ip: Any = None) -> Layout:
    """A compact layout of ``shape`` whose strides grow in the order of the ranks in ``order`` (lowest rank first).

    >>> make_ordered_layout((8, 16, 3), order=(1, 0, 2))
    (8,16,3):(16,1,128)
    """
    shape = _extents(shape, "make_ordered_layout")
    return Layout(shape, compact_order(shape, as_int_tuple(order, "order")))


def make_layout_like(layout: Layout, *, loc: Any = None, ip: Any = None) -> Layout:
    """A compact layout with the shape of ``layout`` and the order of its strides; stride-0 modes stay 0.

    >>> make_layout_like(Layout((4, 3, 2), (10, 0, 1)))
    (4,3,2):(2,0,1)
    """
    shape = ones_at_zeros(layout.shape, layout.stride)
    return Layout(layout.shape, compact_order(shape, layout.stride))


def make_identity_layout(shape: Any, *, loc: Any = None, ip: Any = None) -> Layout:
    """The layout that maps every coordinate of ``shape`` to itself.

    >>> identity = make_identity_layout((4, (2, 3)))
    >>> identity, identity(5)
    ((4,(2,3)):(1@0,(1@0@1,1@1@1)), (1, (1, 0)))
    """
    shape = _extents(shape, "make_identity_layout")
    return Layout(shape, make_basis_like(shape))
