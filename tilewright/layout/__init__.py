"""The layout algebra of CuTe: layouts, swizzles, and every operation on them, in plain Python.

- :mod:`tuples`, :mod:`ints`: integer trees, whose leaves are ints or run-time integers; :mod:`symbolic`: integers
  with names
- :mod:`layout`: ``Layout``; :mod:`composed`: a layout behind a swizzle; :mod:`swizzle`, :mod:`basis`, :mod:`tile`
- :mod:`coords`, :mod:`modes`, :mod:`simplify`: indices and coordinates; choosing and changing modes; coalesce and
  filter
- :mod:`compose`, :mod:`inverse`, :mod:`divides`, :mod:`products`: the algebra itself
- :mod:`analysis`, :mod:`design`: contiguity, bank conflicts, and swizzles without them; :mod:`steps`: operations
  explained

Start at :mod:`layout`, then :mod:`compose`.

>>> from tilewright.layout import *
>>> A = make_layout((8, 16), stride=(16, 1))
>>> A, zipped_divide(A, (4, 8)), composition(A, make_layout(16, stride=2))
((8,16):(16,1), ((4,8),(2,2)):((16,1),(64,8)), (4,4):(32,1))
"""

# isort: off
# fmt: off
from tilewright.layout.analysis import (
    AccessReport, bank_conflicts, coalescing, contiguity, is_bijective, is_compact, is_injective,
)
from tilewright.layout.basis import E, ScaledBasis, basis_get, basis_value, make_basis_like
from tilewright.layout.compose import composition, with_shape
from tilewright.layout.composed import AnyLayout, ComposedLayout, make_composed_layout
from tilewright.layout.coords import compact_order, crd2crd
from tilewright.layout.design import SwizzleSolution, design_swizzle, solve_swizzle
from tilewright.layout.distribute import domain_distribute, is_major, leading_dim
from tilewright.layout.divides import flat_divide, logical_divide, tiled_divide, zipped_divide
from tilewright.layout.evaluate import coordinates, offsets
from tilewright.layout.ints import IntLike, RuntimeInt, assume, divisor_of, exact_quotient, is_static_int, same_int
from tilewright.layout.inverse import (
    complement, left_inverse, max_common_layout, max_common_vector, nullspace, right_inverse,
)
from tilewright.layout.layout import (
    Layout, has_scaled_basis, has_underscore, make_identity_layout, make_layout, make_layout_like,
    make_layout_right, make_ordered_layout,
)
from tilewright.layout.modes import (
    append, append_ones, coshape, cosize, crd2idx, depth, dice, domain_offset, flatten, get, group_modes, idx2crd,
    is_compatible, prepend, prepend_ones, rank, select, shape, size, slice_, slice_and_offset, stride,
)
from tilewright.layout.products import (
    blocked_product, flat_product, logical_product, make_fragment_like_layout, make_layout_tv, raked_product,
    tile_to_shape, tiled_product, zipped_product,
)
from tilewright.layout.ratio import Ratio
from tilewright.layout.recast import downcast, max_alignment, recast_layout, upcast
from tilewright.layout.simplify import coalesce, coalesce_shape, filter, filter_zeros
from tilewright.layout.smem_atoms import make_smem_atom, widest_smem_atom
from tilewright.layout.steps import explain
from tilewright.layout.swizzle import (
    Swizzle, get_nonswizzle_portion, get_swizzle_portion, make_swizzle, swizzle_of_masks,
)
from tilewright.layout.symbolic import SymbolicBool, SymbolicInt
from tilewright.layout.text import format_tree, parse
from tilewright.layout.tile import inner_partition, local_partition, local_tile, outer_partition
from tilewright.layout.tuples import (
    Coord, IntTuple, Shape, Stride, as_int_tuple, ceil_div, elem_less, find, find_if, flatten_to_tuple,
    is_congruent, is_static, is_weakly_congruent, product, product_each, product_like, repeat, repeat_as_tuple,
    repeat_like, round_up, same_tree, shape_div, transform_apply, transform_leaf, tuple_cat, unflatten,
)
# fmt: on
# isort: on

__all__ = [
    "AccessReport",
    "AnyLayout",
    "ComposedLayout",
    "Coord",
    "E",
    "IntLike",
    "IntTuple",
    "Layout",
    "Ratio",
    "RuntimeInt",
    "ScaledBasis",
    "Shape",
    "Stride",
    "Swizzle",
    "SwizzleSolution",
    "SymbolicBool",
    "SymbolicInt",
    "append",
    "append_ones",
    "as_int_tuple",
    "assume",
    "bank_conflicts",
    "basis_get",
    "basis_value",
    "blocked_product",
    "ceil_div",
    "coalesce",
    "coalesce_shape",
    "coalescing",
    "compact_order",
    "complement",
    "composition",
    "contiguity",
    "coordinates",
    "coshape",
    "cosize",
    "crd2crd",
    "crd2idx",
    "depth",
    "design_swizzle",
    "dice",
    "divisor_of",
    "domain_distribute",
    "domain_offset",
    "downcast",
    "elem_less",
    "exact_quotient",
    "explain",
    "filter",
    "filter_zeros",
    "find",
    "find_if",
    "flat_divide",
    "flat_product",
    "flatten",
    "flatten_to_tuple",
    "format_tree",
    "get",
    "get_nonswizzle_portion",
    "get_swizzle_portion",
    "group_modes",
    "has_scaled_basis",
    "has_underscore",
    "idx2crd",
    "inner_partition",
    "is_bijective",
    "is_compact",
    "is_compatible",
    "is_congruent",
    "is_injective",
    "is_major",
    "is_static",
    "is_static_int",
    "is_weakly_congruent",
    "leading_dim",
    "left_inverse",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_basis_like",
    "make_composed_layout",
    "make_fragment_like_layout",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_layout_right",
    "make_layout_tv",
    "make_ordered_layout",
    "make_smem_atom",
    "make_swizzle",
    "max_alignment",
    "max_common_layout",
    "max_common_vector",
    "nullspace",
    "offsets",
    "outer_partition",
    "parse",
    "prepend",
    "prepend_ones",
    "product",
    "product_each",
    "product_like",
    "raked_product",
    "rank",
    "recast_layout",
    "repeat",
    "repeat_as_tuple",
    "repeat_like",
    "right_inverse",
    "round_up",
    "same_int",
    "same_tree",
    "select",
    "shape",
    "shape_div",
    "size",
    "slice_",
    "slice_and_offset",
    "solve_swizzle",
    "stride",
    "swizzle_of_masks",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "transform_apply",
    "transform_leaf",
    "tuple_cat",
    "unflatten",
    "upcast",
    "widest_smem_atom",
    "with_shape",
    "zipped_divide",
    "zipped_product",
]
