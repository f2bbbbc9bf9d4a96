"""``utils.layout``: the older module of ``LayoutEnum``."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {"tilewright.utils.layout_enum": "LayoutEnum"})
