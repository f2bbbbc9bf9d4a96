"""``cutlass.cutlass_dsl``: the older module of the types and of the value protocol as functions."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright": (
            "Boolean Int8 Int16 Int32 Int64 Uint8 Uint16 "
            "Uint32 Uint64 Float16 BFloat16 Float32 Float64 Numeric Integer "
            "Float Constexpr const_expr dynamic_expr range range_constexpr min max dsl_user_op extract_mlir_values "
            "new_from_mlir_values"
        ),
        "tilewright.lang.numbers.numeric_class": "NumericMeta",
        "tilewright.lang.staging.generate": "and_ if_generate not_ or_",
        "tilewright.base_dsl.settings": "BaseDSL CuTeDSL",
        "tilewright.base_dsl.arch": "Arch",
        "tilewright.lang.staging.generate_loops": "for_generate while_generate yield_out",
        "tilewright.errors": "DSLCudaRuntimeError=MachineError DSLRuntimeError=TilewrightError",
        "tilewright._mlir.ir": "T",
    },
)
