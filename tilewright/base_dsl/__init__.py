"""``cutlass.base_dsl``: the modules beneath the CuTe DSL, of which programs import a few names."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.lang.staging.protocol": "extract_mlir_values new_from_mlir_values",
        "tilewright.base_dsl.arch": "Arch",
        "tilewright.base_dsl.settings": "BaseDSL",
    },
    ("_mlir_helpers", "arch", "common", "dsl", "enums", "runtime", "tvm_ffi_builder", "typing"),
)
