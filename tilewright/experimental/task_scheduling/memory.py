"""``task_scheduling.memory``: regions of shared and tensor memory, which are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "SmemAllocation SmemAllocator TmemAllocation TmemAllocator",
    why=stand_ins.EXPERIMENTAL,
)
