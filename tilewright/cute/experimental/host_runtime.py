"""``cute.experimental.host_runtime``, which is not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "QueryDeviceWorkspaceFunc",
    why="it belongs to the experimental modules of the CuTe DSL. Allocate workspaces as arrays and pass them in",
)
