"""``cute``: layouts, tensors, atoms, tiled operations, jit and kernel, under the CuTe DSL's documented names."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.layout": (
            "Layout ComposedLayout Swizzle ScaledBasis Ratio E IntTuple Shape Stride Coord flatten_to_tuple "
            "unflatten is_static is_weakly_congruent repeat repeat_as_tuple repeat_like transform_leaf "
            "transform_apply tuple_cat basis_value basis_get get_swizzle_portion get_nonswizzle_portion "
            "has_underscore has_scaled_basis"
        ),
        "tilewright.lang.tensors.layout_functions": (
            "append prepend append_ones prepend_ones coalesce filter filter_zeros composition with_shape flatten "
            "get group_modes select logical_divide zipped_divide tiled_divide flat_divide logical_product "
            "zipped_product tiled_product flat_product blocked_product raked_product complement left_inverse "
            "right_inverse nullspace tile_to_shape make_layout_tv recast_layout upcast downcast max_alignment "
            "size rank depth shape stride cosize coshape crd2idx idx2crd ceil_div round_up make_layout "
            "make_identity_layout make_ordered_layout make_layout_like product product_each product_like "
            "shape_div elem_less find find_if make_swizzle make_composed_layout assume slice_and_offset"
        ),
        "tilewright.lang.tensors.algebra": (
            "max_common_layout max_common_vector is_congruent size_in_bytes slice_ dice make_tile domain_offset "
            "local_tile local_partition inner_partition outer_partition make_identity_tensor make_rmem_tensor "
            "make_fragment make_rmem_tensor_like make_fragment_like recast_tensor make_layout_image_mask"
        ),
        "tilewright.lang.tensors.tensor": "Tensor make_tensor",
        "tilewright.lang.tensors.tensor_ssa": (
            "TensorSSA ReductionOp full full_like zeros_like ones_like empty_like where any_ all_"
        ),
        "tilewright.lang.tensors.pointer": "Pointer AddressSpace make_ptr recast_ptr",
        "tilewright.lang.tensors.struct": "struct union",
        "tilewright.lang.arguments.dlpack": "from_dlpack",
        "tilewright.lang.arguments.fake": "SymInt sym_int sym_int32 sym_int64",
        "tilewright.cute.typing": "Tile Tiler XTuple",
        "tilewright.viz.render": "print_latex",
        "tilewright.lang.tools.printing": "pretty_str printf print_tensor",
        "tilewright.lang.tensors.math": (
            "exp exp2 log log2 log10 sin cos tan asin acos atan atan2 tanh sqrt rsqrt erf fma"
        ),
        "tilewright.lang.numbers.wide": "Int128 Uint128",
        "tilewright.lang.tensors.choose": "min max",
        "tilewright.lang.numbers.numeric": (
            "Numeric Integer Float Boolean Int8 Int16 Int32 "
            "Int64 Uint8 Uint16 Uint32 Uint64 Float16 BFloat16 TFloat32 "
            "Float32 Float64 Float4E2M1FN Float6E2M3FN Float6E3M2FN Float8E4M3FN Float8E5M2"
        ),
        "tilewright.lang.numbers.fast_divmod": (
            "FastDivmodDivisor FastDivmodDivisorV2=FastDivmodDivisor fast_divmod_create_divisor"
        ),
        "tilewright.lang.launch.jit": "jit",
        "tilewright.lang.launch.kernel": "kernel",
        "tilewright.lang.launch.compile": "compile",
        "tilewright.lang.launch.options": (
            "GenerateLineInfo KeepPTX KeepCUBIN KeepSASS OptLevel EnableAssertions PtxasOptions GPUArch EnableTVMFFI"
        ),
        "tilewright.tiled.tma.descriptors": "prefetch",
        "tilewright.tiled": (
            "Atom CopyAtom MmaAtom TiledCopy TiledMma ThrCopy "
            "ThrMma make_copy_atom make_mma_atom make_atom copy gemm "
            "autovec_copy basic_copy basic_copy_if copy_atom_call mma_atom_call make_tiled_copy "
            "make_tiled_copy_tv make_tiled_copy_A make_tiled_copy_B make_tiled_copy_C make_tiled_copy_S "
            "make_tiled_copy_D make_tiled_copy_C_atom make_tiled_mma make_cotiled_copy"
        ),
    },
    ("arch", "atom", "core", "cuda", "experimental", "math", "nvgpu", "runtime", "tensor", "testing", "typing"),
)
