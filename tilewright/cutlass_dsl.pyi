# Made by `python tools/stubs.py` from tilewright/cutlass_dsl.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.cutlass_dsl``: the older module of the types and of the value protocol as functions."""

from tilewright import BFloat16 as BFloat16
from tilewright import Boolean as Boolean
from tilewright import Constexpr as Constexpr
from tilewright import Float as Float
from tilewright import Float16 as Float16
from tilewright import Float32 as Float32
from tilewright import Float64 as Float64
from tilewright import Int16 as Int16
from tilewright import Int32 as Int32
from tilewright import Int64 as Int64
from tilewright import Int8 as Int8
from tilewright import Integer as Integer
from tilewright import Numeric as Numeric
from tilewright import Uint16 as Uint16
from tilewright import Uint32 as Uint32
from tilewright import Uint64 as Uint64
from tilewright import Uint8 as Uint8
from tilewright import const_expr as const_expr
from tilewright import dsl_user_op as dsl_user_op
from tilewright import dynamic_expr as dynamic_expr
from tilewright import extract_mlir_values as extract_mlir_values
from tilewright import max as max
from tilewright import min as min
from tilewright import new_from_mlir_values as new_from_mlir_values
from tilewright import range as range
from tilewright import range_constexpr as range_constexpr
from tilewright._mlir.ir import T as T
from tilewright.base_dsl.later import BaseDSL as BaseDSL
from tilewright.errors import MachineError as DSLCudaRuntimeError
from tilewright.errors import TilewrightError as DSLRuntimeError
from tilewright.lang.numbers.numeric_class import NumericMeta as NumericMeta
from tilewright.lang.staging.generate import if_generate as if_generate
from tilewright.lang.staging.generate import not_ as not_
from tilewright.lang.staging.generate_loops import for_generate as for_generate
from tilewright.lang.staging.generate_loops import while_generate as while_generate
from tilewright.lang.staging.generate_loops import yield_out as yield_out
