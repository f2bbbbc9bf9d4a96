"""``cute``: layouts, tensors, atoms, tiled operations, jit and kernel, under the CuTe DSL's documented names.

The names of this package are in ``__init__.pyi``: imports from where each is defined (``layout``, ``lang``, ``tiled``).
``arch`` has the indices of threads and single instructions, ``nvgpu`` the operations by architecture (``warp``,
``warpgroup``, ``cpasync``, ``tcgen05``), ``runtime`` the arguments of the host, ``testing`` benchmarks and tuning.
``atom``, ``core`` and ``tensor`` are older modules with the same names.
"""

from tilewright.cute.typing import Tile as Tile, Tiler as Tiler, XTuple as XTuple
from tilewright.lang.arguments.dlpack import from_dlpack as from_dlpack
from tilewright.lang.arguments.fake import (
    SymInt as SymInt, sym_int as sym_int, sym_int32 as sym_int32, sym_int64 as sym_int64,
)
from tilewright.lang.launch.compile import compile as compile
from tilewright.lang.launch.jit import jit as jit
from tilewright.lang.launch.kernel import kernel as kernel
from tilewright.lang.launch.options import (
    EnableAssertions as EnableAssertions, EnableTVMFFI as EnableTVMFFI, GPUArch as GPUArch,
    GenerateLineInfo as GenerateLineInfo, KeepCUBIN as KeepCUBIN, KeepPTX as KeepPTX, KeepSASS as KeepSASS,
    OptLevel as OptLevel, PtxasOptions as PtxasOptions,
)
from tilewright.lang.numbers.fast_divmod import (
    FastDivmodDivisor as FastDivmodDivisor,
    fast_divmod_create_divisor as fast_divmod_create_divisor,
)
from tilewright.lang.numbers.numeric import (
    BFloat16 as BFloat16, Boolean as Boolean, Float as Float, Float16 as Float16, Float32 as Float32,
    Float4E2M1FN as Float4E2M1FN, Float64 as Float64, Float6E2M3FN as Float6E2M3FN, Float6E3M2FN as Float6E3M2FN,
    Float8E4M3FN as Float8E4M3FN, Float8E5M2 as Float8E5M2, Float8E8M0FNU as Float8E8M0FNU, Int16 as Int16,
    Int32 as Int32, Int64 as Int64,
    Int8 as Int8, Integer as Integer, Numeric as Numeric, TFloat32 as TFloat32, Uint16 as Uint16, Uint32 as Uint32,
    Uint64 as Uint64, Uint8 as Uint8,
)
from tilewright.lang.numbers.wide import Int128 as Int128, Uint128 as Uint128
from tilewright.lang.tensors.algebra import (
    dice as dice, domain_offset as domain_offset, inner_partition as inner_partition,
    local_partition as local_partition, local_tile as local_tile, make_fragment as make_fragment,
    make_fragment_like as make_fragment_like, make_identity_tensor as make_identity_tensor,
    make_layout_image_mask as make_layout_image_mask, make_rmem_tensor as make_rmem_tensor,
    make_rmem_tensor_like as make_rmem_tensor_like, make_tile as make_tile, max_common_layout as max_common_layout,
    max_common_vector as max_common_vector, outer_partition as outer_partition, recast_tensor as recast_tensor,
    size_in_bytes as size_in_bytes, slice_ as slice_,
)
from tilewright.lang.tensors.select import max as max, min as min
from tilewright.lang.tensors.layout_functions import (
    append as append, append_ones as append_ones, blocked_product as blocked_product, ceil_div as ceil_div,
    coalesce as coalesce, complement as complement, composition as composition, coshape as coshape, cosize as cosize,
    crd2idx as crd2idx, depth as depth, downcast as downcast, filter as filter, filter_zeros as filter_zeros,
    flat_divide as flat_divide, flat_product as flat_product, flatten as flatten, get as get,
    group_modes as group_modes, idx2crd as idx2crd, left_inverse as left_inverse, logical_divide as logical_divide,
    logical_product as logical_product, make_identity_layout as make_identity_layout, make_layout as make_layout,
    make_layout_like as make_layout_like, make_layout_tv as make_layout_tv, make_ordered_layout as make_ordered_layout,
    max_alignment as max_alignment, nullspace as nullspace, prepend as prepend, prepend_ones as prepend_ones,
    raked_product as raked_product, rank as rank, recast_layout as recast_layout, right_inverse as right_inverse,
    round_up as round_up, select as select, shape as shape, size as size, stride as stride,
    tile_to_shape as tile_to_shape, tiled_divide as tiled_divide, tiled_product as tiled_product, upcast as upcast,
    with_shape as with_shape, zipped_divide as zipped_divide, zipped_product as zipped_product,
)
from tilewright.lang.tensors.host_pointer import make_ptr as make_ptr
from tilewright.lang.tensors.math import (
    acos as acos, asin as asin, atan as atan, atan2 as atan2, cos as cos, erf as erf, exp as exp, exp2 as exp2,
    fma as fma, log as log, log10 as log10, log2 as log2, rsqrt as rsqrt, sin as sin, sqrt as sqrt, tan as tan,
    tanh as tanh,
)
from tilewright.lang.tensors.pointer import AddressSpace as AddressSpace
from tilewright.lang.tensors.recast import recast_ptr as recast_ptr
from tilewright.lang.arguments.native_struct import native_struct as native_struct
from tilewright.lang.tensors.struct import struct as struct, union as union
from tilewright.lang.tensors.pointer_class import Pointer as Pointer
from tilewright.lang.tensors.tensor import Tensor as Tensor, make_tensor as make_tensor
from tilewright.lang.tensors.tensor_ssa import (
    ReductionOp as ReductionOp, TensorSSA as TensorSSA, all_ as all_, any_ as any_, empty_like as empty_like,
    full as full, full_like as full_like, ones_like as ones_like, where as where, zeros_like as zeros_like,
)
from tilewright.lang.tools.printing import pretty_str as pretty_str, print_tensor as print_tensor, printf as printf
from tilewright.layout import (
    ComposedLayout as ComposedLayout, Coord as Coord, E as E, IntTuple as IntTuple, Layout as Layout, Ratio as Ratio,
    ScaledBasis as ScaledBasis, Shape as Shape, Stride as Stride, Swizzle as Swizzle, assume as assume,
    basis_get as basis_get, basis_value as basis_value, elem_less as elem_less, filter_tuple as filter_tuple,
    find as find, find_if as find_if, front as front,
    flatten_to_tuple as flatten_to_tuple, get_nonswizzle_portion as get_nonswizzle_portion,
    get_swizzle_portion as get_swizzle_portion, has_scaled_basis as has_scaled_basis, has_underscore as has_underscore,
    increment_coord as increment_coord, is_major as is_major, leading_dim as leading_dim, unwrap as unwrap,
    wrap as wrap,
    is_congruent as is_congruent, is_static as is_static, is_weakly_congruent as is_weakly_congruent,
    make_composed_layout as make_composed_layout, make_swizzle as make_swizzle, product as product,
    product_each as product_each, product_like as product_like, repeat as repeat, repeat_as_tuple as repeat_as_tuple,
    repeat_like as repeat_like, shape_div as shape_div, slice_and_offset as slice_and_offset,
    transform_apply as transform_apply, transform_leaf as transform_leaf, tuple_cat as tuple_cat,
    unflatten as unflatten,
)
from tilewright.tiled import (
    Atom as Atom, CopyAtom as CopyAtom, MmaAtom as MmaAtom, ThrCopy as ThrCopy, ThrMma as ThrMma,
    TiledCopy as TiledCopy, TiledMma as TiledMma, autovec_copy as autovec_copy, basic_copy as basic_copy,
    basic_copy_if as basic_copy_if, copy as copy, copy_atom_call as copy_atom_call, gemm as gemm,
    make_atom as make_atom, make_copy_atom as make_copy_atom, make_cotiled_copy as make_cotiled_copy,
    make_mma_atom as make_mma_atom, make_tiled_copy as make_tiled_copy, make_tiled_copy_A as make_tiled_copy_A,
    make_tiled_copy_B as make_tiled_copy_B, make_tiled_copy_C as make_tiled_copy_C,
    make_tiled_copy_C_atom as make_tiled_copy_C_atom, make_tiled_copy_D as make_tiled_copy_D,
    make_tiled_copy_S as make_tiled_copy_S, make_tiled_copy_tv as make_tiled_copy_tv,
    make_tiled_mma as make_tiled_mma, mma_atom_call as mma_atom_call,
)
from tilewright.tiled.tma.descriptors import prefetch as prefetch
from tilewright.viz.render import print_latex as print_latex
from tilewright.cute import (
    arch as arch, atom as atom, core as core, cuda as cuda, experimental as experimental, math as math, nvgpu as nvgpu,
    runtime as runtime, tensor as tensor, testing as testing, typing as typing,
)

FastDivmodDivisorV2 = FastDivmodDivisor
fast_divmod_create_divisor_v2 = fast_divmod_create_divisor
ReductionKind = ReductionOp
