"""``cutlass.utils.sm100``: another name of :mod:`tilewright.utils.blackwell_helpers`."""

from tilewright._lazy import names_of

__getattr__, __dir__, __all__ = names_of("tilewright.utils.blackwell_helpers")
