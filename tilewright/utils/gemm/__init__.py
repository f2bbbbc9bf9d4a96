"""``cutlass.utils.gemm``: parts of GEMM kernels."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {}, ("sm100",))
