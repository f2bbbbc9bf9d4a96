"""``cute.atom``: the older module of names that ``cute`` has."""

from tilewright._lazy import names_of

__getattr__, __dir__, __all__ = names_of("tilewright.cute")
