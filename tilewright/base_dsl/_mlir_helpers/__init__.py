"""``cutlass.base_dsl._mlir_helpers``: where programs import ``dsl_user_op`` from."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {}, ("op",))
