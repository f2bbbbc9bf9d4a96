"""``cutlass.base_dsl.dsl``: the value protocol as functions."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.lang.staging.protocol": "extract_mlir_values get_mlir_types new_from_mlir_values",
        "tilewright.base_dsl.settings": "BaseDSL",
        "tilewright.base_dsl.later": "debug_print_mlir_values set_dynamic_debug",
    },
)
