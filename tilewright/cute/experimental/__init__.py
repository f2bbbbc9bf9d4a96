"""``cute.experimental``: kernels whose copies leave out by themselves what lies outside the arguments.

Tensor arguments of an ``@experimental.kernel`` remember the coordinates of their elements through divisions, tiles and
slices; :func:`copy` makes predicates of them. The rest of ``cute`` is used as in other kernels.
"""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.lang.launch.jit": "jit",
        "tilewright.lang.launch.compile": "compile",
        "tilewright.cute.experimental.kernels": "kernel",
        "tilewright.cute.experimental.copies": "allocate copy partition",
    },
    ("iket",),
)
