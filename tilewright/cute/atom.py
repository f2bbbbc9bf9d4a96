"""``cute.atom``: the older module of names that ``cute`` has, and of names for annotations."""

from typing import Any

from tilewright._lazy import names_of

__getattr__, __dir__, __all__ = names_of("tilewright.cute")

CopyOp = MmaOp = Op = Trait = Any  # the base classes of operations and of what they become
