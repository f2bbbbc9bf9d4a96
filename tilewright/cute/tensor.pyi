# Made by `python tools/stubs.py` from tilewright/cute/tensor.py; do not edit.
"""``cute.tensor``: the older module of names that ``cute`` has."""

from tilewright.lang.tensors.tensor import Tensor
from tilewright.cute import *

_Tensor = Tensor  # the class behind the annotation, where both are not one
