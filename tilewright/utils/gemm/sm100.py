"""``cutlass.utils.gemm.sm100``: epilogues from tensor memory, which are not here yet."""

from tilewright import stand_ins

__getattr__, __all__ = stand_ins.names(
    __name__,
    "epilogue epilogue_smem_copy_and_partition epilogue_tma_store epilogue_tmem_copy_and_partition "
    "transform_partitioned_tensor_layout",
)
