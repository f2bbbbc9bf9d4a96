"""``cutlass.utils``: shared memory, matrix orders, the hardware, tile schedulers."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.lang.device.smem": "SmemAllocator get_smem_capacity_in_bytes",
        "tilewright.utils.layout_enum": "LayoutEnum",
        "tilewright.utils.tensormap_manager": "TensorMapManager TensorMapUpdateMode",
        "tilewright.lang.tools.hardware": "HardwareInfo",
        "tilewright.viz.render": "print_latex print_latex_tv",
        "tilewright.utils.tile_scheduler": ("PersistentTileSchedulerParams StaticPersistentTileScheduler WorkTileInfo"),
        "tilewright.utils.grouped_schedule": (
            "GroupSearchResult GroupedGemmGroupSearchState GroupedGemmTileSchedulerHelper GroupedWorkTileInfo "
            "StaticPersistentGroupTileScheduler StaticPersistentRuntimeTileScheduler create_initial_search_state"
        ),
        "tilewright.utils.persistent_schedule": "PersistentScheduleSm90",
        "tilewright.utils.sm100_only": (
            "ClcDynamicPersistentTileScheduler ClcDynamicPersistentTileSchedulerParams TmemAllocator "
            "get_num_tmem_alloc_cols"
        ),
        "tilewright.utils.blackwell_helpers": "compute_epilogue_tile_shape",
        "tilewright.utils.tensor_helpers": "is_fp8_dtype create_cute_tensor_for_fp8",
    },
    (
        "blackwell_helpers",
        "blockscaled_layout",
        "distributed",
        "gemm",
        "hardware_info",
        "hopper_helpers",
        "layout_enum",
        "mixed_input_helpers",
        "sm100",
        "sm90",
        "static_persistent_tile_scheduler",
        "tensor_helpers",
        "tensormap_manager",
        "tile_scheduler",
    ),  # fmt: skip
)
