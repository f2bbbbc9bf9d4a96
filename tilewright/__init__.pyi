# Made by `python tools/stubs.py` from tilewright/__init__.py; do not edit.
"""Tilewright: CuTe in open Python.

One kernel source runs on a checking simulator on the CPU and on NVIDIA GPUs. The names are those of the CuTe DSL's
documentation: a program written to it runs with ``import tilewright as cutlass`` and ``from tilewright import cute``.
"""

from builtins import int as int
from tilewright import base_dsl as base_dsl
from tilewright import compat as compat
from tilewright import cuda as cuda
from tilewright import cute as cute
from tilewright import cutlass_dsl as cutlass_dsl
from tilewright import errors as errors
from tilewright import experimental as experimental
from tilewright import gemm as gemm
from tilewright import jax as jax
from tilewright import layout as layout
from tilewright import pipeline as pipeline
from tilewright import sim as sim
from tilewright import testing as testing
from tilewright import torch as torch
from tilewright import utils as utils
from tilewright import viz as viz
from tilewright.cuda_version import CUDA_VERSION as CUDA_VERSION
from tilewright.lang.arguments.protocol import register_jit_arg_adapter as register_jit_arg_adapter
from tilewright.lang.arguments.signature import Constexpr as Constexpr
from tilewright.lang.numbers.dtypes import dtype as dtype
from tilewright.lang.numbers.numeric import BFloat16 as BFloat16
from tilewright.lang.numbers.numeric import Boolean as Boolean
from tilewright.lang.numbers.numeric import Float as Float
from tilewright.lang.numbers.numeric import Float16 as Float16
from tilewright.lang.numbers.numeric import Float32 as Float32
from tilewright.lang.numbers.numeric import Float4E2M1FN as Float4E2M1FN
from tilewright.lang.numbers.numeric import Float64 as Float64
from tilewright.lang.numbers.numeric import Float6E2M3FN as Float6E2M3FN
from tilewright.lang.numbers.numeric import Float6E3M2FN as Float6E3M2FN
from tilewright.lang.numbers.numeric import Float8E4M3 as Float8E4M3
from tilewright.lang.numbers.numeric import Float8E4M3FN as Float8E4M3FN
from tilewright.lang.numbers.numeric import Float8E5M2 as Float8E5M2
from tilewright.lang.numbers.numeric import Int16 as Int16
from tilewright.lang.numbers.numeric import Int32 as Int32
from tilewright.lang.numbers.numeric import Int64 as Int64
from tilewright.lang.numbers.numeric import Int8 as Int8
from tilewright.lang.numbers.numeric import Integer as Integer
from tilewright.lang.numbers.numeric import Numeric as Numeric
from tilewright.lang.numbers.numeric import TFloat32 as TFloat32
from tilewright.lang.numbers.numeric import Uint16 as Uint16
from tilewright.lang.numbers.numeric import Uint32 as Uint32
from tilewright.lang.numbers.numeric import Uint64 as Uint64
from tilewright.lang.numbers.numeric import Uint8 as Uint8
from tilewright.lang.numbers.numeric import as_numeric as as_numeric
from tilewright.lang.numbers.wide import Int128 as Int128
from tilewright.lang.numbers.wide import Uint128 as Uint128
from tilewright.lang.staging.generate_loops import for_generate as for_generate
from tilewright.lang.staging.generate_loops import while_generate as while_generate
from tilewright.lang.staging.generate_loops import yield_out as yield_out
from tilewright.lang.staging.protocol import dsl_user_op as dsl_user_op
from tilewright.lang.staging.protocol import extract_mlir_values as extract_mlir_values
from tilewright.lang.staging.protocol import new_from_mlir_values as new_from_mlir_values
from tilewright.lang.staging.ranges import const_expr as const_expr
from tilewright.lang.staging.ranges import dynamic_expr as dynamic_expr
from tilewright.lang.staging.ranges import range as range
from tilewright.lang.staging.ranges import range_constexpr as range_constexpr
from tilewright.lang.staging.ranges import range_dynamic as range_dynamic
from tilewright.lang.tensors.choose import max as max
from tilewright.lang.tensors.choose import min as min
from tilewright.lang.tensors.choose import select as select_
from tilewright.lang.tensors.pointer import AddressSpace as AddressSpace
from tilewright.lang.tensors.pointer import Pointer as Pointer
from tilewright.top_level_only import Array as Array
from tilewright.top_level_only import Float4E2M1FNx2 as Float4E2M1FNx2
from tilewright.top_level_only import Float6E3M2FNx4 as Float6E3M2FNx4
from tilewright.top_level_only import Float8E4M3B11FNUZ as Float8E4M3B11FNUZ
from tilewright.top_level_only import Float8E8M0FNU as Float8E8M0FNU
from tilewright.top_level_only import GridConstant as GridConstant
from tilewright.top_level_only import Int4 as Int4
from tilewright.top_level_only import Swizzle as Swizzle
from tilewright.top_level_only import Vector as Vector
from tilewright.top_level_only import full as full
from tilewright.top_level_only import inttoptr as inttoptr
from tilewright.top_level_only import make_array_view as make_array_view
from tilewright.top_level_only import print_nd_vector as print_nd_vector
from tilewright.top_level_only import target_version as target_version
from tilewright.top_level_only import vector as vector

__version__: str

def load_ipython_extension(shell: object) -> None:
    """``%load_ext tilewright``: see :mod:`tilewright.compat.notebook`."""
    ...

def unload_ipython_extension(shell: object) -> None:
    """``%unload_ext tilewright``."""
    ...
