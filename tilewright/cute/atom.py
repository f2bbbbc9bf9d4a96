"""``cute.atom``: the older module of names that ``cute`` has, and of names for annotations."""

from typing import TYPE_CHECKING, Any

from tilewright._names import attach

if TYPE_CHECKING:
    from tilewright.cute import *  # noqa: F403  # its stub names them

attach(__name__, like="tilewright.cute")

CopyOp = MmaOp = Op = Trait = Any  # the base classes of operations and of their atoms
