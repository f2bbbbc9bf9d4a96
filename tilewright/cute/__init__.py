"""``cute``: layouts, tensors, atoms, tiled operations, jit and kernel, under the CuTe DSL's documented names.

The names of this package are in ``__init__.pyi``: imports from where each is defined (``layout``, ``lang``, ``tiled``).
``arch`` has the indices of threads and single instructions, ``nvgpu`` the operations by architecture (``warp``,
``warpgroup``, ``cpasync``, ``tcgen05``), ``runtime`` the arguments of the host, ``testing`` benchmarks and tuning.
``atom``, ``core`` and ``tensor`` are older modules with the same names.
"""

from tilewright._names import attach

attach(__name__)
