"""``cutlass.base_dsl.typing``: numeric types, and the protocols of arguments."""

from tilewright import (
    BFloat16 as BFloat16, Boolean as Boolean, Constexpr as Constexpr, Float as Float, Float16 as Float16,
    Float32 as Float32, Float64 as Float64, Float8E4M3FN as Float8E4M3FN, Float8E5M2 as Float8E5M2, Int16 as Int16,
    Int32 as Int32, Int64 as Int64, Int8 as Int8, Integer as Integer, Numeric as Numeric, TFloat32 as TFloat32,
    Uint16 as Uint16, Uint32 as Uint32, Uint64 as Uint64, Uint8 as Uint8, Vector as Vector, as_numeric as as_numeric,
)
from tilewright.lang.arguments.protocol import (
    DynamicExpression as DynamicExpression, JitArgument as JitArgument, get_c_pointers as get_c_pointers,
)
from tilewright.lang.staging.protocol import get_mlir_types as get_mlir_types
from tilewright.lang.numbers.numeric_class import NumericMeta as NumericMeta
from tilewright.lang.tensors.pointer_class import Pointer as Pointer
