"""Atoms over many threads: TiledCopy, TiledMma, partitioning, retile, ``cute.copy`` and ``cute.gemm``.

``views``, ``atom``, ``tiled_mma``, ``tiled_copy``, ``make_copy`` and ``retile`` are layout algebra and act on plain
layouts as on tensors; ``staged_copy``, ``vectors`` and ``staged_gemm`` stage instructions.
"""

from tilewright._names import attach

attach(__name__)
