"""``cute.tensor``: the older module of names that ``cute`` has."""

from tilewright._lazy import names_of
from tilewright.lang.tensors.tensor import Tensor

__getattr__, __dir__, __all__ = names_of("tilewright.cute")
_Tensor = Tensor  # the class behind the annotation, where both are not one
