"""``cute.experimental``: kernels whose copies leave out by themselves what lies outside the arguments.

Tensor arguments of an ``@experimental.kernel`` remember the coordinates of their elements through divisions, tiles and
slices; :func:`copy` makes predicates of them. The rest of ``cute`` is used as in other kernels.
"""

from tilewright.cute.experimental.copies import allocate as allocate, copy as copy, partition as partition
from tilewright.cute.experimental.kernels import kernel as kernel
from tilewright.lang.launch.compile import compile as compile
from tilewright.lang.launch.jit import jit as jit
from tilewright.cute.experimental import iket as iket
