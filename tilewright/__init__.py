"""Tilewright: CuTe in open Python.

One kernel source runs on a checking simulator on the CPU and on NVIDIA GPUs. The names are those of the CuTe DSL's
documentation: a program written to it runs with ``import tilewright as cutlass`` and ``from tilewright import cute``.
"""

from importlib import import_module

from tilewright._lazy import lazily

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.lang.numbers.numeric": (
            "Numeric Integer Float Boolean Int8 Int16 Int32 Int64 Uint8 Uint16 Uint32 Uint64 Float16 BFloat16 TFloat32 "
            "Float32 Float64 Float4E2M1FN Float6E2M3FN Float6E3M2FN Float8E4M3 Float8E4M3FN Float8E5M2 as_numeric"
        ),
        "tilewright.lang.numbers.wide": "Int128 Uint128",
        "tilewright.lang.tensors.choose": "min max select_=select",
        "tilewright.lang.staging.ranges": "range range_constexpr range_dynamic const_expr dynamic_expr",
        "tilewright.lang.tensors.pointer": "AddressSpace Pointer",
        "tilewright.lang.arguments.signature": "Constexpr",
        "tilewright.lang.arguments.protocol": "register_jit_arg_adapter",
        "tilewright.lang.numbers.dtypes": "dtype",
        "tilewright.lang.staging.generate_loops": "for_generate while_generate yield_out",
        "tilewright.cuda_version": "CUDA_VERSION",
        "builtins": "int",
        "tilewright.top_level_only": (
            "Array Float4E2M1FNx2 Float6E3M2FNx4 Float8E4M3B11FNUZ Float8E8M0FNU GridConstant Int4 Swizzle Vector full "
            "inttoptr make_array_view print_nd_vector target_version vector"
        ),
        "tilewright.lang.staging.protocol": "dsl_user_op extract_mlir_values new_from_mlir_values",
    },
    (
        "base_dsl",
        "compat",
        "cuda",
        "cute",
        "cutlass_dsl",
        "errors",
        "experimental",
        "gemm",
        "jax",
        "layout",
        "pipeline",
        "sim",
        "testing",
        "torch",
        "utils",
        "viz",
    ),  # fmt: skip
)


def load_ipython_extension(shell: object) -> None:
    """``%load_ext tilewright``: see :mod:`tilewright.compat.notebook`."""
    import_module("tilewright.compat.notebook").load(shell)


def unload_ipython_extension(shell: object) -> None:
    """``%unload_ext tilewright``."""
    import_module("tilewright.compat.notebook").unload(shell)
