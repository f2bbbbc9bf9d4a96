"""``cute.math``: elementary functions of numerics and TensorSSAs."""

from tilewright._names import attach
from tilewright.lang.tensors.math import *  # noqa: F403  # all that the module has, itself a list of them
from tilewright.lang.tensors.math import __all__ as __all__

attach(__name__)
