"""``cutlass.base_dsl.tvm_ffi_builder``: ``spec``, names that libraries use in converters of their own."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {}, ("spec",))
