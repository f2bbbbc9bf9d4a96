"""``cutlass.base_dsl.typing``: numeric types, and the protocols of arguments."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.lang.arguments.protocol": "JitArgument DynamicExpression get_c_pointers",
        "tilewright.lang.staging.protocol": "get_mlir_types",
        "tilewright": (
            "Boolean Int8 Int16 Int32 Int64 Uint8 Uint16 Uint32 Uint64 Float16 BFloat16 TFloat32 Float32 Float64 "
            "Float8E4M3FN Float8E5M2 Numeric Integer Float Constexpr as_numeric"
        ),
    },
)
