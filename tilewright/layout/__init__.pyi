"""The layout algebra of CuTe: layouts, swizzles, and every operation on them, in plain Python."""

from tilewright.layout.analysis import (
    AccessReport as AccessReport, bank_conflicts as bank_conflicts, coalescing as coalescing,
    contiguity as contiguity, is_bijective as is_bijective, is_compact as is_compact, is_injective as is_injective,
)
from tilewright.layout.basis import (
    E as E, ScaledBasis as ScaledBasis, basis_get as basis_get, basis_value as basis_value,
    make_basis_like as make_basis_like,
)
from tilewright.layout.compose import (
    composition as composition, make_composed_layout as make_composed_layout, with_shape as with_shape,
)
from tilewright.layout.composed import AnyLayout as AnyLayout, ComposedLayout as ComposedLayout
from tilewright.layout.coords import compact_order as compact_order, crd2crd as crd2crd
from tilewright.layout.design import (
    SwizzleSolution as SwizzleSolution, design_swizzle as design_swizzle, solve_swizzle as solve_swizzle,
)
from tilewright.layout.distribute import (
    domain_distribute as domain_distribute, is_major as is_major, leading_dim as leading_dim,
)
from tilewright.layout.divides import (
    ceil_div as ceil_div, flat_divide as flat_divide, logical_divide as logical_divide, tiled_divide as tiled_divide,
    zipped_divide as zipped_divide,
)
from tilewright.layout.evaluate import coordinates as coordinates, offsets as offsets
from tilewright.layout.ints import (
    IntLike as IntLike, RuntimeInt as RuntimeInt, assume as assume, divisor_of as divisor_of,
    exact_quotient as exact_quotient, is_static_int as is_static_int, same_int as same_int,
)
from tilewright.layout.inverse import (
    complement as complement, left_inverse as left_inverse, max_common_layout as max_common_layout,
    max_common_vector as max_common_vector, nullspace as nullspace, right_inverse as right_inverse,
)
from tilewright.layout.layout import (
    Layout as Layout, has_scaled_basis as has_scaled_basis, has_underscore as has_underscore,
    make_identity_layout as make_identity_layout, make_layout as make_layout, make_layout_like as make_layout_like,
    make_layout_right as make_layout_right, make_ordered_layout as make_ordered_layout,
)
from tilewright.layout.modes import (
    append as append, append_ones as append_ones, coshape as coshape, cosize as cosize, crd2idx as crd2idx,
    depth as depth, dice as dice, domain_offset as domain_offset, flatten as flatten, get as get,
    group_modes as group_modes, idx2crd as idx2crd, is_compatible as is_compatible, prepend as prepend,
    prepend_ones as prepend_ones, rank as rank, select as select, shape as shape, size as size, stride as stride,
)
from tilewright.layout.parsing import parse as parse
from tilewright.layout.products import (
    blocked_product as blocked_product, flat_product as flat_product, logical_product as logical_product,
    make_fragment_like_layout as make_fragment_like_layout, make_layout_tv as make_layout_tv,
    raked_product as raked_product, tile_to_shape as tile_to_shape, tiled_product as tiled_product,
    zipped_product as zipped_product,
)
from tilewright.layout.ratio import Ratio as Ratio
from tilewright.layout.recast import (
    downcast as downcast, max_alignment as max_alignment, recast_layout as recast_layout, upcast as upcast,
)
from tilewright.layout.simplify import (
    coalesce as coalesce, coalesce_shape as coalesce_shape, filter as filter, filter_zeros as filter_zeros,
)
from tilewright.layout.smem_atoms import make_smem_atom as make_smem_atom, widest_smem_atom as widest_smem_atom
from tilewright.layout.steps import explain as explain
from tilewright.layout.slicing import slice_ as slice_, slice_and_offset as slice_and_offset
from tilewright.layout.swizzle import (
    Swizzle as Swizzle, get_nonswizzle_portion as get_nonswizzle_portion,
    get_swizzle_portion as get_swizzle_portion, make_swizzle as make_swizzle, swizzle_of_masks as swizzle_of_masks,
)
from tilewright.layout.symbolic import SymbolicBool as SymbolicBool, SymbolicInt as SymbolicInt
from tilewright.layout.text import format_tree as format_tree
from tilewright.layout.tile import (
    inner_partition as inner_partition, local_partition as local_partition, local_tile as local_tile, tiles_at as tiles_at,
    outer_partition as outer_partition,
)
from tilewright.layout.tuple_functions import (
    filter_tuple as filter_tuple, front as front, increment_coord as increment_coord, unwrap as unwrap, wrap as wrap,
)
from tilewright.layout.tuples import (
    Coord as Coord, IntTuple as IntTuple, Shape as Shape, Stride as Stride, as_int_tuple as as_int_tuple,
    elem_less as elem_less, find as find, find_if as find_if,
    flatten_to_tuple as flatten_to_tuple, is_congruent as is_congruent, is_static as is_static,
    is_weakly_congruent as is_weakly_congruent, product as product, product_each as product_each,
    product_like as product_like, repeat as repeat, repeat_as_tuple as repeat_as_tuple, repeat_like as repeat_like,
    round_up as round_up, same_tree as same_tree, shape_div as shape_div, transform_apply as transform_apply,
    transform_leaf as transform_leaf, tuple_cat as tuple_cat, unflatten as unflatten,
)
