"""``cute.experimental``: kernels whose copies leave out what is outside the arguments.

Tensor arguments of an ``@experimental.kernel`` remember the coordinates of their elements through divisions, tiles and
slices; :func:`copy` makes predicates of them. The rest of ``cute`` is used as in other kernels.
"""

from tilewright._names import attach

attach(__name__)
