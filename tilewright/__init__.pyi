"""Tilewright: CuTe in open Python.

One kernel source runs on a checking simulator on the CPU and on NVIDIA GPUs. The names are those of the CuTe DSL's
documentation: a program written to it runs with ``import tilewright as cutlass`` and ``from tilewright import cute``.
"""

from builtins import int as int
from tilewright.cuda_version import CUDA_VERSION as CUDA_VERSION, target_version as target_version
from tilewright.lang.arguments.protocol import register_jit_arg_adapter as register_jit_arg_adapter
from tilewright.lang.arguments.signature import Constexpr as Constexpr
from tilewright.lang.device.array import (
    Array as Array, GridConstant as GridConstant, inttoptr as inttoptr, make_array_view as make_array_view,
)
from tilewright.lang.numbers.dtypes import dtype as dtype
from tilewright.lang.numbers.numeric import (
    BFloat16 as BFloat16, Boolean as Boolean, Float as Float, Float16 as Float16, Float32 as Float32,
    Float4E2M1FN as Float4E2M1FN, Float64 as Float64, Float6E2M3FN as Float6E2M3FN, Float6E3M2FN as Float6E3M2FN,
    Float8E4M3 as Float8E4M3, Float8E4M3FN as Float8E4M3FN, Float8E5M2 as Float8E5M2,
    Float8E8M0FNU as Float8E8M0FNU, Int16 as Int16,
    Int32 as Int32, Int4 as Int4, Int64 as Int64, Int8 as Int8, Integer as Integer, Numeric as Numeric,
    TFloat32 as TFloat32, Uint16 as Uint16, Uint32 as Uint32, Uint4 as Uint4, Uint64 as Uint64, Uint8 as Uint8, as_numeric as as_numeric,
)
from tilewright.lang.numbers.wide import Int128 as Int128, Uint128 as Uint128
from tilewright.lang.staging.generate_loops import (
    for_generate as for_generate, while_generate as while_generate, yield_out as yield_out,
)
from tilewright.lang.staging.protocol import (
    dsl_user_op as dsl_user_op, extract_mlir_values as extract_mlir_values,
    new_from_mlir_values as new_from_mlir_values,
)
from tilewright.lang.staging.ranges import (
    const_expr as const_expr, dynamic_expr as dynamic_expr, range as range, range_constexpr as range_constexpr,
    range_dynamic as range_dynamic,
)
from tilewright.lang.tensors.select import max as max, min as min, select
from tilewright.lang.tensors.pointer import AddressSpace as AddressSpace
from tilewright.lang.tensors.pointer_class import Pointer as Pointer
from tilewright.lang.tensors.tensor import Tensor as Tensor
from tilewright.lang.tensors.tensor_ssa import full as full
from tilewright.lang.tensors.vector import Vector as Vector
from tilewright.layout import Layout as Layout, Swizzle as Swizzle
from tilewright import (
    base_dsl as base_dsl, compat as compat, cuda as cuda, cute as cute, cutlass_dsl as cutlass_dsl,
    errors as errors, gemm as gemm, jax as jax, layout as layout, pipeline as pipeline, sim as sim,
    testing as testing, torch as torch, utils as utils, viz as viz,
)

__version__: str

def load_ipython_extension(shell: object) -> None: ...
def unload_ipython_extension(shell: object) -> None: ...

select_ = select
