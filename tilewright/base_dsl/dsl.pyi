# Made by `python tools/stubs.py` from tilewright/base_dsl/dsl.py; do not edit.
"""``cutlass.base_dsl.dsl``: the value protocol as functions."""

from tilewright.base_dsl.later import debug_print_mlir_values as debug_print_mlir_values
from tilewright.base_dsl.later import set_dynamic_debug as set_dynamic_debug
from tilewright.base_dsl.settings import BaseDSL as BaseDSL
from tilewright.lang.staging.protocol import extract_mlir_values as extract_mlir_values
from tilewright.lang.staging.protocol import get_mlir_types as get_mlir_types
from tilewright.lang.staging.protocol import new_from_mlir_values as new_from_mlir_values
