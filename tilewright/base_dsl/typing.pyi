# Made by `python tools/stubs.py` from tilewright/base_dsl/typing.py; do not edit.
"""``cutlass.base_dsl.typing``: numeric types, and the protocols of arguments."""

from tilewright import BFloat16 as BFloat16
from tilewright import Boolean as Boolean
from tilewright import Constexpr as Constexpr
from tilewright import Float as Float
from tilewright import Float16 as Float16
from tilewright import Float32 as Float32
from tilewright import Float64 as Float64
from tilewright import Float8E4M3FN as Float8E4M3FN
from tilewright import Float8E5M2 as Float8E5M2
from tilewright import Int16 as Int16
from tilewright import Int32 as Int32
from tilewright import Int64 as Int64
from tilewright import Int8 as Int8
from tilewright import Integer as Integer
from tilewright import Numeric as Numeric
from tilewright import TFloat32 as TFloat32
from tilewright import Uint16 as Uint16
from tilewright import Uint32 as Uint32
from tilewright import Uint64 as Uint64
from tilewright import Uint8 as Uint8
from tilewright import as_numeric as as_numeric
from tilewright.lang.arguments.protocol import DynamicExpression as DynamicExpression
from tilewright.lang.arguments.protocol import JitArgument as JitArgument
from tilewright.lang.arguments.protocol import get_c_pointers as get_c_pointers
from tilewright.lang.staging.protocol import get_mlir_types as get_mlir_types
