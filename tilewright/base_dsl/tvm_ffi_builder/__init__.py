"""``cutlass.base_dsl.tvm_ffi_builder``: ``spec``, names that libraries use in converters of their own."""

from tilewright.base_dsl.tvm_ffi_builder import spec as spec
