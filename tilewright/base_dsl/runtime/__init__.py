"""``cutlass.base_dsl.runtime``."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {}, ("cuda",))
