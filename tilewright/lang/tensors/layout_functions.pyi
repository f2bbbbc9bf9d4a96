# Made by `python tools/stubs.py` from tilewright/lang/tensors/layout_functions.py; do not edit.
"""The functions of :mod:`tilewright.layout` on tensors, too, and with ``loc`` and ``ip``, as documented functions have.

Their parameters and texts are those of their namesakes. Type checkers read ``layout_functions.pyi``, which
``tools/stubs.py`` writes from this table and from the sources of the namesakes.
"""

from collections.abc import Callable
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.ints import I
from tilewright.layout.ints import IntLike
from tilewright.layout.layout import Layout
from tilewright.layout.swizzle import Swizzle
from tilewright.layout.tuples import Coord
from tilewright.layout.tuples import Shape
from tilewright.layout.tuples import Stride
from typing import Any
from typing import overload

@overload
def append(input: Tensor, elem: Any=None, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Tensor:
    """``input`` with ``elem`` as further last mode, or as many as make its rank ``up_to_rank``.

    ``elem`` defaults to ``1:0`` for a layout and 1 for a tree.

    >>> append(Layout(8), Layout(4, 8)), append(Layout((8,), (1,)), up_to_rank=3)
    ((8,4):(1,8), (8,1,1):(1,0,0))
    """
@overload
def append(input: Layout, elem: Any=None, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def append(input: ComposedLayout, elem: Any=None, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def append(input: Any, elem: Any=None, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def prepend(input: Tensor, elem: Any=None, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Tensor:
    """``input`` with ``elem`` as further first mode, or as many as make its rank ``up_to_rank``.

    >>> prepend(Layout(8), Layout(4, 8))
    (4,8):(8,1)
    """
@overload
def prepend(input: Layout, elem: Any=None, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def prepend(input: ComposedLayout, elem: Any=None, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def prepend(input: Any, elem: Any=None, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def coalesce(input: Tensor, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> Tensor:
    """The shortest flat layout that is the same function of the 1-D index.

    With ``target_profile`` only the modes below each of its leaves are coalesced, so that the rank survives.

    >>> from tilewright.layout import make_layout
    >>> coalesce(Layout((2, (3, 1)), (1, (2, 6)))), coalesce(Layout((4, 2), (4, 2)))
    (6:1, (4,2):(4,2))
    >>> coalesce(Layout(((2, 4), (3, 5)), ((1, 2), (8, 30))), target_profile=(1, 1))
    (8,(3,5)):(1,(8,30))
    """
@overload
def coalesce(input: Layout, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def coalesce(input: ComposedLayout, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def coalesce(input: Any, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def filter(input: Tensor, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> Tensor:
    """Stride-0 and size-1 modes removed, the rest coalesced; ``1:0`` when nothing is left.

    >>> filter(Layout((4, (1, 2), 3), (1, (7, 0), 4)))
    12:1
    """
@overload
def filter(input: Layout, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def filter(input: ComposedLayout, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def filter(input: Any, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def filter_zeros(input: Tensor, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> Tensor:
    """Modes of stride 0 become size 1: what is left are the elements that differ.

    With ``target_profile`` its zeros, not those of the stride, say which modes.

    >>> filter_zeros(Layout((4, 2), (0, 1)))
    (1,2):(0,1)
    """
@overload
def filter_zeros(input: Layout, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def filter_zeros(input: ComposedLayout, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def filter_zeros(input: Any, *, target_profile: Any=None, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def composition(lhs: Tensor, rhs: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """The layout ``R`` with ``R(c) == lhs(rhs(c))``; its shape refines that of ``rhs``.

    A tuple on the right is a tiler: it composes mode by mode, an int ``n`` meaning ``n:1`` and None leaving its mode
    alone; modes beyond it are dropped. Raises LayoutError when no layout has these values.

    >>> composition(Layout((4, 8), (13, 1)), Layout(8, 2))
    (2,4):(26,1)
    >>> composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    ((2,2),3):((24,2),8)
    >>> composition(Layout((12, (4, 8)), (59, (13, 1))), (Layout(3, 4), Layout(8, 2)))
    (3,(2,4)):(236,(26,1))
    >>> composition(Layout((4, 6), (1, 10)), Layout(5, 1))
    Traceback (most recent call last):
    tilewright.errors.LayoutError: composition((4,6):(1,10), 5:1) does not exist: 5 is not divisible by 4 (shape ...
    """
@overload
def composition(lhs: Layout, rhs: Layout | int | tuple[Any, ...], *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def composition(lhs: Any, rhs: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def flatten(a: Tensor, *, loc: Any=None, ip: Any=None) -> Tensor:
    """Every leaf a mode of its own; a scalar stays scalar.

    >>> flatten(Layout((2, (2, 2)), (4, (2, 1))))
    (2,2,2):(4,2,1)
    """
@overload
def flatten(a: Layout, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def flatten(a: ComposedLayout, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def flatten(a: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def with_shape(layout: Tensor, shape: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """The elements of ``layout`` in the same order under another shape.

    >>> with_shape(Layout((8, 4), (4, 1)), (2, 4, 4))
    (2,4,4):(4,8,1)
    """
@overload
def with_shape(layout: Layout, shape: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def with_shape(layout: ComposedLayout, shape: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def with_shape(layout: Any, shape: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def append_ones(t: Tensor, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Tensor:
    """:func:`append` of size-1 modes.

    >>> append_ones((4, 8), 3)
    (4, 8, 1)
    """
@overload
def append_ones(t: Layout, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def append_ones(t: ComposedLayout, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def append_ones(t: Any, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def prepend_ones(t: Tensor, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Tensor:
    """:func:`prepend` of size-1 modes.

    >>> prepend_ones((4, 8), 3)
    (1, 4, 8)
    """
@overload
def prepend_ones(t: Layout, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def prepend_ones(t: ComposedLayout, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def prepend_ones(t: Any, up_to_rank: int | None=None, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def get(input: Tensor, mode: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """Mode ``mode`` (an index, or a path of indices from the outside in) of a tree or layout.

    >>> get(Layout((4, (2, 3)), (1, (4, 8))), [1, 0]), get((4, (2, 3)), 1)
    (2:4, (2, 3))
    """
@overload
def get(input: Layout, mode: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def get(input: ComposedLayout, mode: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def get(input: Any, mode: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def group_modes(input: Tensor, begin: int, end: int | None=-1, *, loc: Any=None, ip: Any=None) -> Tensor:
    """Modes ``begin`` up to ``end`` (exclusive; -1 or None: to the last) wrapped into one.

    >>> group_modes(Layout((2, 3, 5, 7)), 1, 3)
    (2,(3,5),7):(1,(2,6),30)
    """
@overload
def group_modes(input: Layout, begin: int, end: int | None=-1, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def group_modes(input: ComposedLayout, begin: int, end: int | None=-1, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def group_modes(input: Any, begin: int, end: int | None=-1, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def select(input: Tensor, mode: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """A tree or layout of the top-level modes listed in ``mode``.

    >>> select(Layout((4, 8, 3), (1, 4, 32)), mode=[0, 2])
    (4,3):(1,32)
    """
@overload
def select(input: Layout, mode: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def select(input: ComposedLayout, mode: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def select(input: Any, mode: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def logical_divide(target: Tensor, tiler: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """``target`` as (tile, rest), mode by mode for a tuple tiler.

    >>> logical_divide(Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2))
    ((2,2),(2,3)):((4,1),(2,8))
    >>> logical_divide(Layout((9, (4, 8)), (59, (13, 1))), (Layout(3, 3), Layout((2, 4), (1, 8))))
    ((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))
    """
@overload
def logical_divide(target: Layout, tiler: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def logical_divide(target: ComposedLayout, tiler: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def logical_divide(target: Any, tiler: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def zipped_divide(target: Tensor, tiler: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """``((tile...), (rest..., untouched modes...))``: one index picks within the tile, the other picks the tile.

    >>> zipped_divide(Layout((9, (4, 8)), (59, (13, 1))), (Layout(3, 3), Layout((2, 4), (1, 8))))
    ((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))
    """
@overload
def zipped_divide(target: Layout, tiler: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def zipped_divide(target: ComposedLayout, tiler: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def zipped_divide(target: Any, tiler: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def tiled_divide(target: Tensor, tiler: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """``((tile...), rest0, rest1, ...)``.

    >>> tiled_divide(Layout((16, 8)), (4, 2))
    ((4,2),4,4):((1,16),4,32)
    """
@overload
def tiled_divide(target: Layout, tiler: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def tiled_divide(target: ComposedLayout, tiler: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def tiled_divide(target: Any, tiler: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def flat_divide(target: Tensor, tiler: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """``(tile0, tile1, ..., rest0, rest1, ...)``.

    >>> flat_divide(Layout((16, 8)), (4, 2))
    (4,2,4,4):(1,16,4,32)
    """
@overload
def flat_divide(target: Layout, tiler: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def flat_divide(target: ComposedLayout, tiler: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def flat_divide(target: Any, tiler: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def logical_product(block: Tensor, tiler: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """``(block, copies)``, mode by mode for a tuple tiler.

    >>> logical_product(Layout((2, 2), (4, 1)), Layout(6))
    ((2,2),(2,3)):((4,1),(2,8))
    """
@overload
def logical_product(block: Layout, tiler: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def logical_product(block: ComposedLayout, tiler: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def logical_product(block: Any, tiler: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def zipped_product(block: Tensor, tiler: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """``((block...), (copies...))``.

    >>> zipped_product(Layout((4, 4)), (Layout(2), Layout(3)))
    ((4,4),(2,3)):((1,4),(4,1))
    """
@overload
def zipped_product(block: Layout, tiler: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def zipped_product(block: ComposedLayout, tiler: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def zipped_product(block: Any, tiler: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def tiled_product(block: Tensor, tiler: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """``((block...), copies0, copies1, ...)``.

    >>> tiled_product(Layout(2), Layout((4, 2)))
    (2,4,2):(1,2,8)
    """
@overload
def tiled_product(block: Layout, tiler: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def tiled_product(block: ComposedLayout, tiler: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def tiled_product(block: Any, tiler: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def flat_product(block: Tensor, tiler: Any, *, loc: Any=None, ip: Any=None) -> Tensor:
    """``(block0, block1, ..., copies0, copies1, ...)``.

    >>> flat_product(Layout((2, 2)), Layout((3, 5)))
    (2,2,3,5):(1,2,4,12)
    """
@overload
def flat_product(block: Layout, tiler: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def flat_product(block: ComposedLayout, tiler: Any, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def flat_product(block: Any, tiler: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def blocked_product(block: Tensor, tiler: Layout, *, loc: Any=None, ip: Any=None) -> Tensor:
    """Copies of ``block`` side by side: mode i is (block_i, copies_i).

    >>> blocked_product(Layout((2, 5), (5, 1)), Layout((3, 4)))
    ((2,3),(5,4)):((5,10),(1,30))
    """
@overload
def blocked_product(block: Layout, tiler: Layout, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def blocked_product(block: ComposedLayout, tiler: Layout, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def blocked_product(block: Any, tiler: Layout, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def raked_product(block: Tensor, tiler: Layout, *, loc: Any=None, ip: Any=None) -> Tensor:
    """Copies of ``block`` interleaved: mode i is (copies_i, block_i).

    >>> raked_product(Layout((2, 5), (5, 1)), Layout((3, 4)))
    ((3,2),(4,5)):((10,5),(30,1))
    """
@overload
def raked_product(block: Layout, tiler: Layout, *, loc: Any=None, ip: Any=None) -> Layout:
    ...
@overload
def raked_product(block: ComposedLayout, tiler: Layout, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def raked_product(block: Any, tiler: Layout, *, loc: Any=None, ip: Any=None) -> Any:
    ...
def recast_layout(new_type_bits: int, old_type_bits: int, src_layout: Any, *, loc: Any=None, ip: Any=None) -> Any:
    """The layout of the same bytes seen as elements of another width.

    >>> recast_layout(16, 8, Layout((16, 8), (1, 16))), recast_layout(8, 16, Layout((16, 8), (1, 16)))
    ((8,8):(1,8), (32,8):(1,32))
    """
def max_alignment(input: Any, *, loc: Any=None, ip: Any=None) -> int:
    """The widest unit in which the layout can be moved: all its offsets are in whole runs of ``n``, ``n`` apart.

    Run-time extents and strides are taken to be large multiples.

    >>> max_alignment(Layout((8, 4), (1, 32))), max_alignment(Layout((8, 4), (4, 32)))
    (8, 1)
    """
@overload
def tile_to_shape(atom: Layout, trg_shape: Any, order: Any=None, *, loc: Any=None, ip: Any=None) -> Layout:
    """``atom`` repeated until it has the shape ``trg_shape``; ``order`` ranks the modes to repeat along (0 first).

    >>> tile_to_shape(Layout((8, 64), (64, 1)), (128, 128), order=(0, 1))
    ((8,16),(64,2)):((64,512),(1,8192))
    """
@overload
def tile_to_shape(atom: ComposedLayout, trg_shape: Any, order: Any=None, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def tile_to_shape(atom: Any, trg_shape: Any, order: Any=None, *, loc: Any=None, ip: Any=None) -> Any:
    ...
def make_layout_tv(thr_layout: Layout, val_layout: Layout, *, loc: Any=None, ip: Any=None) -> tuple[Any, Layout]:
    """Tiler and thread-value layout of threads ``thr_layout`` that hold values ``val_layout`` each.

    The layout maps (thread, value) to the 1-D coordinate in the tile; the threads interleave the value blocks.

    >>> make_layout_tv(Layout((4, 8), (8, 1)), Layout((1, 4)))
    ((4, 32), ((8,4),4):((16,1),4))
    """
def make_layout_like(layout: Layout, *, loc: Any=None, ip: Any=None) -> Layout:
    """A compact layout with the shape of ``layout`` and the order of its strides; stride-0 modes stay 0.

    >>> make_layout_like(Layout((4, 3, 2), (10, 0, 1)))
    (4,3,2):(2,0,1)
    """
def size(a: Any, mode: Any=None, *, loc: Any=None, ip: Any=None) -> Any:
    """Number of elements of a layout, a shape or of the given modes of it; of a tiled copy or MMA, its threads.

    >>> size(Layout((4, (2, 3)))), size((4, (2, 3)), mode=[1])
    (24, 6)
    """
def rank(a: Any, mode: Any=None, *, loc: Any=None, ip: Any=None) -> int:
    """Number of top-level modes (1 for a scalar).

    >>> rank((2, (3, 4))), rank((2, (3, 4)), [1]), rank(7)
    (2, 2, 1)
    """
def depth(a: Any, mode: Any=None, *, loc: Any=None, ip: Any=None) -> int:
    """Nesting depth: 0 for a scalar, 1 for a flat tuple.

    >>> depth(7), depth((2, 3)), depth((2, (3, 4)))
    (0, 1, 2)
    """
def shape(input: Any, *, mode: Any=None, loc: Any=None, ip: Any=None) -> Any:
    """The shape of a layout or tree, or of one of its modes.

    >>> shape((2, (3, 4)), mode=[1])
    (3, 4)
    """
def stride(input: Any, *, mode: Any=None, loc: Any=None, ip: Any=None) -> Any:
    """The stride of a layout, or of one of its modes.

    >>> from tilewright.layout import Layout
    >>> stride(Layout((2, (3, 4)), (12, (4, 1))), mode=[1, 0])
    4
    """
def cosize(a: Any, mode: Any=None, *, loc: Any=None, ip: Any=None) -> Any:
    """Size of the codomain: the largest offset plus one. Of a composed layout, that of the layout below its swizzle,
    which may move offsets further, to :meth:`Swizzle.reach` of it.

    >>> cosize(Layout((4, (3, 2)), (2, (8, 1))))
    24
    """
def coshape(layout: Any, mode: Any=None, *, loc: Any=None, ip: Any=None) -> Any:
    """The smallest shape that holds every result of the layout; a tuple for basis strides.

    >>> coshape(Layout((4, 8), (1, 10)))
    74
    """
def crd2idx(coord: Coord, shape: Any, stride: Any=None, *, loc: Any=None, ip: Any=None) -> Any:
    """The offset of ``coord`` in a layout, or in ``shape:stride`` (column-major without a stride).

    >>> crd2idx((1, 2), Layout((4, 8), (1, 10))), crd2idx((1, 2), (4, 8))
    (21, 9)
    """
def idx2crd(idx: Any, shape: Any, stride: Any=None, *, loc: Any=None, ip: Any=None) -> Coord:
    """The coordinate in ``shape`` (a shape or a compact layout) of the index ``idx``.

    >>> idx2crd(11, (4, (2, 3))), idx2crd(3, Layout((4, 8), (8, 1)))
    ((3, (0, 1)), (0, 3))
    """
def ceil_div(input: Any, tiler: Any, *, loc: Any=None, ip: Any=None) -> Any:
    """How many tiles cover ``input``: element by element, a scalar divisor folded over a tuple, or a tiler layout.

    >>> ceil_div((100, 64), (32, 16)), ceil_div((5, 6), 10), ceil_div(29, 8)
    ((4, 4), (1, 3), 4)
    """
def round_up(a: Any, b: Any, *, loc: Any=None, ip: Any=None) -> Any:
    """``a`` raised to the next multiple of ``b``, element by element.

    >>> round_up(29, 8), round_up((5, 9), (4, 4))
    (32, (8, 12))
    """
def complement(input: Any, cotarget: Any=None, *, loc: Any=None, ip: Any=None) -> Layout:
    """The layout of the copies of ``input`` that fill ``cotarget`` (an int, a shape or a layout; default its cosize).

    Ordered, and disjoint from ``input`` except at 0; it covers at least ``cotarget`` (the last copy is rounded up).
    Raises LayoutError for a layout that is not one-to-one, apart from stride-0 modes, which are ignored.

    >>> complement(Layout(4, 2), 24), complement(Layout((2, 4), (4, 8)), 29)
    ((2,3):(1,8), 4:1)
    """
@overload
def left_inverse(input: Layout, *, loc: Any=None, ip: Any=None) -> Layout:
    """A layout ``R`` with ``R(input(c)) == c`` (as 1-D index) for a one-to-one ``input``.

    In general ``input(R(input(c))) == input(c)``: of several coordinates with one offset R gives one, possibly past
    the end of the last mode. Offsets that ``input`` skips are bridged by stride-0 modes. A run-time extent is taken to
    end below the next larger stride.

    >>> left_inverse(Layout((2, 2), (24, 4))), left_inverse(Layout((8, 4), (4, 1)))
    ((4,6,2):(0,2,1), (4,8):(8,1))
    """
@overload
def left_inverse(input: ComposedLayout, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def left_inverse(input: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def right_inverse(input: Layout, *, loc: Any=None, ip: Any=None) -> Layout:
    """The largest layout ``R`` with ``input(R(i)) == i`` for every index ``i`` of R; ``1:0`` without a stride of 1.

    >>> right_inverse(Layout((8, 4), (4, 1))), right_inverse(Layout((4, 2), (1, 8)))
    ((4,8):(8,1), 4:1)
    """
@overload
def right_inverse(input: ComposedLayout, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def right_inverse(input: Any, *, loc: Any=None, ip: Any=None) -> Any:
    ...
def nullspace(input: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    """The layout of the 1-D coordinates that ``input`` maps to 0: its stride-0 modes.

    >>> nullspace(Layout((4, 2, 3), (0, 1, 0)))
    (4,3):(1,8)
    """
@overload
def upcast(input: Layout, n: int, *, loc: Any=None, ip: Any=None) -> Layout:
    """The layout in units of ``n`` elements: strides are divided by ``n``, contiguous modes become shorter.

    A swizzle loses what it permutes within a unit; a mode of fewer than ``n`` elements becomes one unit.

    >>> upcast(Layout((8, 4), (1, 8)), 4), upcast(Swizzle(3, 4, 3), 2)
    ((2,4):(1,2), Sw<3,3,3>)
    """
@overload
def upcast(input: ComposedLayout, n: int, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def upcast(input: Any, n: int, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def downcast(input: Layout, n: int, *, loc: Any=None, ip: Any=None) -> Layout:
    """The layout in units of one ``n``-th of an element: the contiguous mode becomes longer, other strides grow.

    >>> downcast(Layout((2, 4), (1, 2)), 4)
    (8,4):(1,8)
    """
@overload
def downcast(input: ComposedLayout, n: int, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    ...
@overload
def downcast(input: Any, n: int, *, loc: Any=None, ip: Any=None) -> Any:
    ...
@overload
def make_layout(shape: Shape, *, stride: Stride=None, loc: Any=None, ip: Any=None) -> Layout:
    """A layout from a shape and a stride (column-major when left out), or several layouts as the modes of one.

    Raises LayoutError when the profiles differ or an extent is not positive.

    >>> make_layout((4, 8)), make_layout((4, 8), stride=(8, 1)), make_layout(Layout(4), Layout(2, 4))
    ((4,8):(1,4), (4,8):(8,1), (4,2):(1,4))
    """
@overload
def make_layout(layout: Layout, /, *layouts: Layout, loc: Any=None, ip: Any=None) -> Layout:
    ...
def make_identity_layout(shape: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    """The layout that maps every coordinate of ``shape`` to itself.

    >>> identity = make_identity_layout((4, (2, 3)))
    >>> identity, identity(5)
    ((4,(2,3)):(1@0,(1@0@1,1@1@1)), (1, (1, 0)))
    """
def make_ordered_layout(shape: Any, order: Any, *, loc: Any=None, ip: Any=None) -> Layout:
    """A compact layout of ``shape`` whose strides grow in the order of the ranks in ``order`` (lowest rank first).

    >>> make_ordered_layout((8, 16, 3), order=(1, 0, 2))
    (8,16,3):(16,1,128)
    """
def make_swizzle(b: int, m: int, s: int, *, loc: Any=None, ip: Any=None) -> Swizzle:
    """``Sw<b,m,s>``.

    >>> make_swizzle(3, 4, 3)
    Sw<3,4,3>
    """
def make_composed_layout(inner: Any, offset: Any, outer: Layout | ComposedLayout, *, loc: Any=None, ip: Any=None) -> ComposedLayout:
    """``inner o offset o outer``: ``inner`` is a swizzle, a layout or any function of an offset.

    >>> from tilewright.layout import make_swizzle
    >>> make_composed_layout(make_swizzle(2, 1, 2), 128, Layout((4, 8)))
    Sw<2,1,2> o 128 o (4,8):(1,4)
    """
def assume(n: I, divby: int=1, *, loc: Any=None, ip: Any=None) -> I:
    """``n`` with the promise that ``divby`` divides it; a static ``n`` is checked here and now.

    >>> from tilewright.layout import SymbolicInt
    >>> assume(SymbolicInt("m"), divby=8).divisibility
    8
    """
def slice_and_offset(coord: Coord, src: Any, *, loc: Any=None, ip: Any=None) -> tuple[Any, Any]:
    """The slice of ``src`` at ``coord`` and the offset where it starts.

    A swizzled layout becomes an ordinary one where the slice allows it; see :mod:`tilewright.layout.swizzle`.

    >>> slice_and_offset((None, 3), Layout((4, 8), (1, 10)))
    ((4):(1), 30)
    """
def product(a: Any, *, loc: Any=None, ip: Any=None) -> Any:
    """The product of all leaves (1 for an empty tuple).

    >>> product((2, (3, 4)))
    24
    """
def product_each(a: Any, *, loc: Any=None, ip: Any=None) -> tuple[Any, ...]:
    """The product of every top-level mode.

    >>> product_each((2, (3, 4)))
    (2, 12)
    """
def product_like(a: Any, target_profile: Any, *, loc: Any=None, ip: Any=None) -> Any:
    """Products of ``a`` at the leaves of ``target_profile``.

    >>> product_like(((2, 3), 4), (0, 0))
    (6, 4)
    """
def shape_div(lhs: Any, rhs: Any, *, loc: Any=None, ip: Any=None) -> Any:
    """Division of shapes: one side must divide the other; a quotient below one is one.

    >>> shape_div((4, 5, 6), 40), shape_div(12, (2, 3)), shape_div((8, 3), (2, 6))
    ((1, 1, 3), 2, (4, 1))
    """
def elem_less(lhs: Any, rhs: Any, *, loc: Any=None, ip: Any=None) -> Any:
    """Whether every element of ``lhs`` is below its partner: the bounds test of predication.

    Missing trailing elements of ``lhs`` count as below. A run-time operand makes the answer a run-time boolean.
    A number in place of a tuple is an index: it is compared with the number of elements.

    Raises LayoutError where ``lhs`` has several elements and ``rhs`` fewer: no bound says whether they are inside.

    >>> elem_less((3, (1, 2)), (4, (2, 3))), elem_less((3, 5), (4, 5)), elem_less((3, 11), (4, (2, 6)))
    (True, False, True)
    """
def find(t: Any, x: IntLike, *, loc: Any=None, ip: Any=None) -> int | tuple[int, ...] | None:
    """Position of the first leaf equal to ``x``, or None.

    >>> find((4, (8, 2)), 2), find((4, 8), 4), find((4, 8), 3)
    ((1, 1), 0, None)
    """
def find_if(t: Any, pred_fn: Callable[[Any, tuple[int, ...]], bool], *, loc: Any=None, ip: Any=None) -> int | tuple[int, ...] | None:
    """Position of the first leaf that satisfies ``pred_fn(leaf, position)``; nested positions are tuples.

    >>> find_if((3, (1, 4)), lambda x, _: x == 4)
    (1, 1)
    """
