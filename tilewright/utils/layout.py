"""``utils.layout``: the older module of ``LayoutEnum``."""

from tilewright._lazy import names_of

__getattr__, __dir__, __all__ = names_of("tilewright.utils.layout_enum")
