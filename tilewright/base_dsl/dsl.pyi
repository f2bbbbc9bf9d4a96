"""``cutlass.base_dsl.dsl``: the value protocol as functions."""

from tilewright.base_dsl.settings import BaseDSL as BaseDSL
from tilewright.lang.staging.protocol import (
    extract_mlir_values as extract_mlir_values, get_mlir_types as get_mlir_types,
    new_from_mlir_values as new_from_mlir_values,
)
