"""The layout algebra on layouts *and* tensors, under CuTe's names.

Each function takes what its namesake in :mod:`tilewright.layout` takes; given a tensor it acts on the tensor's layout
and gives a tensor of the same elements. Integers that are known while staging count as static, except where a staged
function makes a layout: there ``Int32(10)`` is a run-time extent, as in the CuTe DSL, and ``10`` a static one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from tilewright import layout as _layout
from tilewright.errors import HOW_STATIC, ConstraintError, LayoutError
from tilewright.lang.numbers.numeric import Int64, Integer
from tilewright.lang.tensors.bounds import inside, note_tile
from tilewright.lang.tensors.layout_functions import cosize, make_layout, size
from tilewright.lang.tensors.overhung import overhung_engine
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.recast import recast_ptr, retyped
from tilewright.lang.tensors.registers import Registers, alloc
from tilewright.lang.tensors.tensor import Tensor, make_tensor, unwrap_tree
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import ComposedLayout, Layout, Swizzle, flatten_to_tuple, unflatten
from tilewright.layout.drawable import LayoutOrTensor
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import is_static


def max_common_layout(a: Any, b: Any, *, loc: Any = None, ip: Any = None) -> Layout:
    """The longest layout of elements that both layouts (or tensors) keep contiguous and in order.

    >>> max_common_layout(Layout((4, 8)), Layout((4, 8), (1, 8)))
    4:1
    """
    return _layout.max_common_layout(*(getattr(x, "layout", x) for x in (a, b)))


def max_common_vector(a: Any, b: Any, *, loc: Any = None, ip: Any = None) -> int:
    """How many elements both layouts (or tensors) keep contiguous and in order.

    >>> max_common_vector(Layout((4, 8)), Layout((4, 8), (1, 8)))
    4
    """
    return _layout.max_common_vector(*(getattr(x, "layout", x) for x in (a, b)))


def size_in_bytes(dtype: Any, layout: Any, swizzle: Any = None, *, loc: Any = None, ip: Any = None) -> int:
    """Bytes that a tensor of ``dtype`` with this layout (shape) spans; zero for no layout. Elements of less than a byte
    are packed.

    A swizzle, given (of byte addresses) or in the layout (of elements), may reach past the last element of a layout
    that is not a power of two.

    >>> from tilewright.lang.numbers.numeric import Float16
    >>> size_in_bytes(Float16, Layout((8, 4), (1, 10)))
    76
    """
    if layout is None:
        return 0
    inner = layout.inner if isinstance(layout, ComposedLayout) else None
    plain = _layout.get_nonswizzle_portion(layout)
    count = cosize(plain if isinstance(plain, Layout) else make_layout(plain))
    if isinstance(inner, Swizzle) and isinstance(count, int):
        count = inner.reach(count)
    bits = max(dtype.width, 8) if dtype.width == 1 else dtype.width
    nbytes = (count * bits + 7) // 8
    return swizzle.reach(nbytes) if isinstance(swizzle, Swizzle) and isinstance(nbytes, int) else nbytes


def slice_(src: Any, coord: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The modes of ``src`` (tensor, layout or tree) where ``coord`` has None; a tensor also moves to the slice.

    >>> slice_(Layout((4, 8, 2)), (None, 3, None))
    (4,2):(1,32)
    """
    if isinstance(coord, Tensor):
        raise LayoutError(f"slice_({src}, {coord}): the tensor comes first: slice_(tensor, coord)")
    return src[coord] if isinstance(src, Tensor) else _layout.slice_(src, unwrap_tree(coord))


@overload
def dice(src: LayoutOrTensor, dicer: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor: ...
@overload
def dice(src: Any, dicer: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def dice(src: Any, dicer: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The modes of ``src`` where ``dicer`` has a number.

    >>> dice(Layout((4, 8, 2)), (None, 3, None))
    (8):(4)
    """
    return src.with_layout(_layout.dice(src.linear, dicer)) if isinstance(src, Tensor) else _layout.dice(src, dicer)


@overload
def domain_offset(coord: Any, tensor: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor: ...
@overload
def domain_offset(coord: Any, tensor: Layout, *, loc: Any = None, ip: Any = None) -> tuple[Layout, Any]: ...
@overload
def domain_offset(coord: Any, tensor: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def domain_offset(coord: Any, tensor: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The tensor (or layout) whose origin is at ``coord``.

    >>> domain_offset((1, 2), Layout((4, 8)))
    ((4,8):(1,4), 9)
    """
    coord = unwrap_tree(coord)
    if not isinstance(tensor, Tensor):
        return _layout.domain_offset(coord, tensor)
    far = any(isinstance(c, int) and not 0 <= c < _FAR for c in flatten_to_tuple(coord))
    return tensor.moved(_far_offset if far else lambda layout, c: _layout.domain_offset(c, layout), coord)


_FAR = 1 << 16
"""The product of a stride of 32 bits with a known coordinate that is negative, or as large as this, is made in 64: such
an origin may be outside of the array, where the stride's type promises nothing."""


def _far_offset(layout: Any, coord: Any) -> tuple[Any, Any]:
    strides = [s.to(Int64) if isinstance(s, Integer) else s for s in flatten_to_tuple(layout.stride)]
    wide = Layout(layout.shape, unflatten(strides, layout.stride))
    return layout, _layout.domain_offset(coord, wide)[1]


@overload
def local_tile(
    input: LayoutOrTensor, tiler: Any, coord: Any, proj: Any = None, *, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def local_tile(input: Any, tiler: Any, coord: Any, proj: Any = None, *, loc: Any = None, ip: Any = None) -> Any: ...
def local_tile(input: Any, tiler: Any, coord: Any, proj: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Tile ``coord`` of a tensor: the tile's modes first, then the modes of tiles that ``coord`` leaves open (None).

    ``proj`` has 1 for the modes of ``tiler`` and ``coord`` that this tensor has, None for the others, so that one
    (M, N, K) tiler serves A, B and C.

    >>> local_tile(Layout((64, 32)), (16, 8), (None, 1))
    (16,8,4):(1,64,16)
    """
    tiler, coord = unwrap_tree(_tuple(tiler)), unwrap_tree(_tuple(coord))
    if not isinstance(input, Tensor):
        return _layout.local_tile(input, tiler, coord, proj)[0]
    if input.is_coordinate or not isinstance(input.linear, Layout):
        return input.moved(lambda layout, c: _layout.local_tile(layout, tiler, c, proj), coord)
    own, grid, steps = _layout.tiles_at(input.linear, tiler, coord, proj)
    tile = input.moved(
        lambda layout, c: _layout.local_tile(layout, tiler, c, proj),
        coord,
        lambda moved: note_tile(moved, input, own, grid, steps),
    )
    if inside(own, grid):
        return tile
    why = f"the tile {format_tree(own)} is outside {input}, which has {format_tree(grid)} tiles"
    return Tensor(overhung_engine(tile.engine, why), tile.linear)


@overload
def local_partition(
    target: LayoutOrTensor, tiler: Any, index: Any, proj: Any = 1, *, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def local_partition(target: Any, tiler: Any, index: Any, proj: Any = 1, *, loc: Any = None, ip: Any = None) -> Any: ...
def local_partition(target: Any, tiler: Any, index: Any, proj: Any = 1, *, loc: Any = None, ip: Any = None) -> Any:
    """The elements of thread ``index`` when the thread layout ``tiler`` is repeated over the tensor.

    >>> local_partition(Layout((64, 32)), Layout((8, 4)), 5)
    (8,8):(8,256)
    """
    tiler, index = unwrap_tree(tiler), unwrap_tree(index)
    if not isinstance(target, Tensor):
        return _layout.local_partition(target, tiler, index, proj)[0]
    return target.moved(lambda layout, i: _layout.local_partition(layout, tiler, i, proj), index)


@overload
def inner_partition(
    input: LayoutOrTensor, tiler: Any, coord: Any, *, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def inner_partition(input: Any, tiler: Any, coord: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def inner_partition(input: Any, tiler: Any, coord: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The tile at ``coord`` among the tiles.

    >>> inner_partition(Layout((64, 32)), (16, 8), (1, 2))
    (16,8):(1,64)
    """
    return _partition(_layout.inner_partition, input, tiler, coord)


@overload
def outer_partition(
    input: LayoutOrTensor, tiler: Any, coord: Any, *, loc: Any = None, ip: Any = None
) -> LayoutOrTensor: ...
@overload
def outer_partition(input: Any, tiler: Any, coord: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def outer_partition(input: Any, tiler: Any, coord: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Element ``coord`` of every tile.

    >>> outer_partition(Layout((64, 32)), (16, 8), (1, 2))
    (4,4):(16,512)
    """
    return _partition(_layout.outer_partition, input, tiler, coord)


def _partition(f: Callable[..., tuple[Any, Any]], input: Any, tiler: Any, coord: Any) -> Any:
    tiler, coord = unwrap_tree(_tuple(tiler)), unwrap_tree(_tuple(coord))
    if not isinstance(input, Tensor):
        return f(input, tiler, coord)[0]
    return input.moved(lambda layout, c: f(layout, tiler, c), coord)


def _tuple(x: Any) -> Any:
    return tuple(map(_tuple, x)) if isinstance(x, (tuple, list)) else x


def make_tile(*layouts: Any, loc: Any = None, ip: Any = None) -> tuple[Any, ...]:
    """A tiler by mode: each argument is a layout, an extent ``n`` (for ``n:1``), None or again a tiler.

    >>> from tilewright.layout import zipped_divide
    >>> zipped_divide(Layout((8, 12)), make_tile(Layout(2, 4), 3))
    ((2,3),(4,4)):((4,8),(1,24))
    """
    for part in layouts:
        if not (part is None or isinstance(part, (int, Integer, Layout, ComposedLayout, tuple))):
            raise ConstraintError(f"make_tile: {part!r} is not a layout, extent or None")
    return tuple([unwrap_tree(part) for part in layouts])


# -- making tensors --------------------------------------------------------------------------------------------------


def make_identity_tensor(shape: Any, *, loc: Any = None, ip: Any = None) -> Tensor:
    """The tensor whose element at a coordinate is that coordinate.

    >>> make_identity_tensor((8, 4))[3, 2]
    (3, 2)
    """
    shape = unwrap_tree(_tuple(shape.shape if isinstance(shape, (Tensor, Layout)) else shape))
    return Tensor(_layout.repeat_like(0, shape), _layout.make_identity_layout(shape))


def make_rmem_tensor(layout_or_shape: Any, dtype: Any, *, loc: Any = None, ip: Any = None) -> Tensor:
    """Fresh registers of ``dtype`` under a static layout (a shape means column-major). Their contents are undefined.

    >>> from tilewright import Float32
    >>> def sum_of_registers(t):
    ...     registers = cute.make_rmem_tensor((2, 2), Float32)  # four registers of this thread
    ...     registers.fill(t)
    ...     registers[1, 1] = 0.5
    ...     return registers.load().reduce(cute.ReductionOp.ADD, 0.0, 0)
    >>> per_thread(sum_of_registers, 3, dtype=Float32)
    [0.5, 3.5, 6.5]
    """
    if isinstance(layout_or_shape, type):
        layout_or_shape, dtype = dtype, layout_or_shape
    layout = layout_or_shape if isinstance(layout_or_shape, (Layout, ComposedLayout)) else make_layout(layout_or_shape)
    if not is_static(layout):
        raise ConstraintError(f"make_rmem_tensor: registers need a static layout, not {layout}; {HOW_STATIC}")
    return make_tensor(alloc(dtype, cosize(layout)), layout)


make_fragment = make_rmem_tensor


def make_rmem_tensor_like(src: Any, dtype: Any = None, *, loc: Any = None, ip: Any = None) -> Tensor:
    """Fresh registers with the shape of a tensor, of a value of ``load()`` or a layout, compact and column-major.

    >>> def own(t, p):
    ...     rows = cute.make_tensor(p, cute.make_layout((2, 4), stride=(4, 1)))
    ...     registers = cute.make_rmem_tensor_like(rows)
    ...     print(rows.layout, registers.layout)  # while staging: once
    ...     registers.store(rows.load())
    ...     return registers[1, 2]
    >>> per_thread(own, 1, memory=range(8))[0]
    (2,4):(4,1) (2,4):(1,2)
    [6]
    """
    return make_rmem_tensor(make_layout(src.shape), _element(src, dtype))


def make_fragment_like(src: Any, dtype: Any = None, *, loc: Any = None, ip: Any = None) -> Tensor:
    """Fresh registers with the shape of a tensor (or layout): mode 0 column-major, the others by ``src``'s strides.

    The value of a ``load()`` has no strides: all modes are column-major.

    >>> from tilewright import Float16
    >>> def own(t, p):
    ...     part = cute.make_tensor(p, cute.make_layout((4, 2, 3), stride=(1, 32, 8)))
    ...     print(cute.make_fragment_like(part).layout, cute.make_fragment_like(part, Float16).element_type)
    >>> _ = per_thread(own, 1, memory=range(64))
    (4,2,3):(1,12,4) Float16
    """
    if isinstance(src, TensorSSA):
        return make_rmem_tensor_like(src, dtype)
    layout = src.linear if isinstance(src, Tensor) else src
    if _layout.has_scaled_basis(layout):
        layout = Layout(layout.shape)
    made = _layout.make_fragment_like_layout(layout)
    if not _layout.is_congruent(
        made, layout
    ):  # CuTe wraps the last mode of a rank-2 fragment; here profiles stay the same
        made = Layout(layout.shape, _layout.unflatten(_layout.flatten_to_tuple(made.stride), layout.shape))
    return make_rmem_tensor(made, _element(src, dtype))


def _element(src: Any, dtype: Any) -> Any:
    if dtype is None and not isinstance(src, Tensor) and not isinstance(src, TensorSSA):
        raise ConstraintError(f"a fragment like the layout {src} needs a dtype")
    return src.element_type if dtype is None else dtype


def recast_tensor(src: Tensor, dtype: Any, swizzle_: Any = None, *, loc: Any = None, ip: Any = None) -> Tensor:
    """The same bits as elements of ``dtype``: the layout is recast with the element width.

    >>> from tilewright import Int8
    >>> def low_byte(t, p):
    ...     words = cute.make_tensor(p, cute.make_layout((2, 4), stride=(1, 2)))
    ...     parts = cute.recast_tensor(words, Int8)
    ...     print(parts.layout)
    ...     return parts[4 * t, 0]
    >>> per_thread(low_byte, 2, memory=[0x0102, 0x0304] + [0] * 6)[0]
    (8,4):(1,8)
    [2, 4]
    """
    if src.is_coordinate:
        raise ConstraintError(f"recast_tensor: {src} is a coordinate tensor")
    layout = _layout.recast_layout(dtype.width, src.element_type.width, src.linear)
    if isinstance(src.engine, Registers):
        return Tensor(src.engine.recast(dtype), layout)
    assert isinstance(src.engine, Pointer)
    engine = retyped(src.engine, dtype)
    return Tensor(recast_ptr(engine, swizzle_) if swizzle_ is not None else engine, layout)


def make_layout_image_mask(lay: Layout, coord: Any, mode: int, *, loc: Any = None, ip: Any = None) -> Any:
    """The multicast mask (Int16) of the blocks that differ from ``coord`` only in ``mode``: bit ``lay(c)`` for each.

    >>> make_layout_image_mask(Layout((2, 4)), (1, 0), mode=1).value
    170
    """
    from tilewright.lang.numbers.numeric import Int16

    coord = tuple(unwrap_tree(_tuple(coord)))
    image = 0
    for i in range(size(lay, mode=[mode])):
        image |= 1 << lay[mode](i)
    origin = unwrap_tree(lay(tuple(0 if k == mode else c for k, c in enumerate(coord))))
    return Int16(image << origin) if isinstance(origin, int) else (origin * 0 + image << origin).to(Int16)
