"""``cutlass.base_dsl``: the modules beneath the CuTe DSL, of which programs import a few names."""

from tilewright.base_dsl.arch import Arch as Arch
from tilewright.base_dsl.settings import BaseDSL as BaseDSL
from tilewright.lang.staging.protocol import (
    extract_mlir_values as extract_mlir_values, new_from_mlir_values as new_from_mlir_values,
)
from tilewright.base_dsl import (
    arch as arch, common as common, dsl as dsl, runtime as runtime,
    tvm_ffi_builder as tvm_ffi_builder, typing as typing,
)
