"""Copies that are not here yet under these names."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "CopyBulkTensorTileG2SNonExecTrait CopyDsmemStoreOp CopyG2ROp CopyR2GOp",
    public="cute.nvgpu",
    why="it is a form of a copy that Tilewright has not built. Use cute.nvgpu.CopyUniversalOp",
    instead={
        "CopyBulkTensorTileG2SNonExecTrait": "the atom that cpasync.make_tiled_tma_atom gives",
        "CopyDsmemStoreOp": "cute.arch.store_shared_remote, or CopyUniversalOp to a pointer of cute.arch.map_dsmem_ptr",
        "CopyG2ROp": "CopyUniversalOp, or cute.arch.load with sem=, scope= and cop=",
        "CopyR2GOp": "CopyUniversalOp, or cute.arch.store with sem=, scope= and cop=",
    },
)
