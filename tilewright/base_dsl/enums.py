"""``cutlass.base_dsl.enums``: architectures, by a newer module's name."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {"tilewright.base_dsl.arch": "Arch"})
