"""``cutlass.cutlass_dsl``: the older module of the types and of the value protocol as functions."""

from tilewright import (
    BFloat16 as BFloat16, Boolean as Boolean, Constexpr as Constexpr, Float as Float, Float16 as Float16,
    Float32 as Float32, Float64 as Float64, Int16 as Int16, Int32 as Int32, Int64 as Int64, Int8 as Int8,
    Float4E2M1FN as Float4E2M1FN, Float8E4M3FN as Float8E4M3FN, Float8E5M2 as Float8E5M2, Integer as Integer,
    Numeric as Numeric, TFloat32 as TFloat32, Uint16 as Uint16, Uint32 as Uint32, Uint64 as Uint64, Uint8 as Uint8,
    const_expr as const_expr, dsl_user_op as dsl_user_op, dynamic_expr as dynamic_expr,
    extract_mlir_values as extract_mlir_values, max as max, min as min,
    new_from_mlir_values as new_from_mlir_values, range as range, range_constexpr as range_constexpr,
)
from tilewright._mlir.ir import T as T
from tilewright.base_dsl.arch import Arch as Arch
from tilewright.base_dsl.settings import BaseDSL as BaseDSL, CuTeDSL as CuTeDSL
from tilewright.cuda_version import target_version as target_version
from tilewright.errors import MachineError, TilewrightError
from tilewright.lang.launch.executor import CompiledFunction
from tilewright.lang.numbers.numeric_class import NumericMeta as NumericMeta
from tilewright.lang.staging.generate import and_ as and_, if_generate as if_generate, not_ as not_, or_ as or_
from tilewright.lang.staging.generate_loops import (
    for_generate as for_generate, while_generate as while_generate, yield_out as yield_out,
)

DSLCudaRuntimeError = MachineError
DSLRuntimeError = TilewrightError
JitCompiledFunction = CompiledFunction
