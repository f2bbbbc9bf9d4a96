"""``cutlass.base_dsl._mlir_helpers.op``: an older place of ``dsl_user_op``."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {"tilewright.lang.staging.protocol": "dsl_user_op"})
