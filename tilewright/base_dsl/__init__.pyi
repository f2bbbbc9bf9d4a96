# Made by `python tools/stubs.py` from tilewright/base_dsl/__init__.py; do not edit.
"""``cutlass.base_dsl``: the modules beneath the CuTe DSL, of which programs import a few names."""

from tilewright.base_dsl import _mlir_helpers as _mlir_helpers
from tilewright.base_dsl import arch as arch
from tilewright.base_dsl import common as common
from tilewright.base_dsl import dsl as dsl
from tilewright.base_dsl import enums as enums
from tilewright.base_dsl import runtime as runtime
from tilewright.base_dsl import tvm_ffi_builder as tvm_ffi_builder
from tilewright.base_dsl import typing as typing
from tilewright.base_dsl.arch import Arch as Arch
from tilewright.base_dsl.settings import BaseDSL as BaseDSL
from tilewright.lang.staging.protocol import extract_mlir_values as extract_mlir_values
from tilewright.lang.staging.protocol import new_from_mlir_values as new_from_mlir_values
