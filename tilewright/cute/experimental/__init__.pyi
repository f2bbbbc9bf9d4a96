# Made by `python tools/stubs.py` from tilewright/cute/experimental/__init__.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cute.experimental``: kernels whose copies leave out by themselves what lies outside the arguments.

Tensor arguments of an ``@experimental.kernel`` remember the coordinates of their elements through divisions, tiles and
slices; :func:`copy` makes predicates of them. The rest of ``cute`` is used as in other kernels.
"""

from tilewright.cute.experimental import iket as iket
from tilewright.cute.experimental.copies import allocate as allocate
from tilewright.cute.experimental.copies import copy as copy
from tilewright.cute.experimental.copies import partition as partition
from tilewright.cute.experimental.kernels import kernel as kernel
from tilewright.lang.launch.compile import compile as compile
from tilewright.lang.launch.jit import jit as jit
