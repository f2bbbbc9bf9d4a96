"""``cute.tensor``: the older module of names that ``cute`` has."""

from typing import TYPE_CHECKING

from tilewright._names import attach
from tilewright.lang.tensors.tensor import Tensor

if TYPE_CHECKING:
    from tilewright.cute import *  # noqa: F403  # its stub names them

attach(__name__, like="tilewright.cute")
_Tensor = Tensor  # the class behind the annotation, where both are not one
