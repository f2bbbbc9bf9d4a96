"""Atoms over many threads: TiledCopy, TiledMma, partitioning, retile, ``cute.copy`` and ``cute.gemm``.

``views``, ``atom``, ``tiled_mma``, ``tiled_copy``, ``make_copy`` and ``retile`` are layout algebra and act on plain
layouts as on tensors; ``staged_copy``, ``vectors`` and ``staged_gemm`` stage instructions.
"""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.tiled.atom": "Atom MmaAtom CopyAtom make_atom make_mma_atom make_copy_atom",
        "tilewright.tiled.tiled_mma": (
            "TiledMma ThrMma make_tiled_mma partition_shape_A partition_shape_B partition_shape_C"
        ),
        "tilewright.tiled.tiled_copy": "TiledCopy ThrCopy",
        "tilewright.tiled.make_copy": (
            "make_tiled_copy make_tiled_copy_tv make_tiled_copy_A make_tiled_copy_B make_tiled_copy_C "
            "make_tiled_copy_S "
            "make_tiled_copy_D make_tiled_copy_C_atom make_cotiled_copy"
        ),
        "tilewright.tiled.thread_values": "derive_tv_from_thread_value thrfrg",
        "tilewright.tiled.retile": "retile_through check_retiled",
        "tilewright.tiled.staged_copy": "copy basic_copy basic_copy_if copy_atom_call",
        "tilewright.tiled.vectors": "autovec_copy",
        "tilewright.tiled.staged_gemm": "gemm mma_atom_call",
    },
)
