"""``cutlass.utils``: shared memory, matrix orders, the hardware, tile schedulers.

``sm90`` and ``blackwell_helpers`` choose tiles, layouts and operations as CUTLASS' collective builders do;
``tile_scheduler``, ``grouped_schedule`` and ``persistent_schedule`` assign output tiles to persistent blocks;
``tensormap_manager`` changes tensor maps in a kernel. Start with ``tile_scheduler.py``.
"""

from tilewright.lang.device.smem import (
    SmemAllocator as SmemAllocator, SmemPartition as SmemPartition,
    get_smem_capacity_in_bytes as get_smem_capacity_in_bytes,
)
from tilewright.lang.launch.kernel_smem import get_kernel_smem_size as get_kernel_smem_size
from tilewright.lang.tools.hardware import HardwareInfo as HardwareInfo
from tilewright.utils.blackwell_helpers import (
    compute_epilogue_tile_shape as compute_epilogue_tile_shape, get_permutation_mnk as get_permutation_mnk,
    get_smem_layout_atom_ab as get_smem_layout_atom_ab, get_smem_layout_atom_epi as get_smem_layout_atom_epi,
    get_smem_store_op as get_smem_store_op, get_tmem_load_op as get_tmem_load_op,
    make_blockscaled_trivial_tiled_mma as make_blockscaled_trivial_tiled_mma, make_smem_layout as make_smem_layout,
    make_smem_layout_a as make_smem_layout_a, make_smem_layout_b as make_smem_layout_b,
    make_smem_layout_epi as make_smem_layout_epi, make_trivial_tiled_mma as make_trivial_tiled_mma,
)
from tilewright.utils.cluster_loads import (
    cluster_shape_to_tma_atom_A as cluster_shape_to_tma_atom_A,
    cluster_shape_to_tma_atom_B as cluster_shape_to_tma_atom_B,
    cluster_shape_to_tma_atom_SFB as cluster_shape_to_tma_atom_SFB,
)
from tilewright.utils.grouped_schedule import (
    GroupSearchResult as GroupSearchResult, GroupedGemmGroupSearchState as GroupedGemmGroupSearchState,
    GroupedGemmTileSchedulerHelper as GroupedGemmTileSchedulerHelper, GroupedWorkTileInfo as GroupedWorkTileInfo,
    StaticPersistentGroupTileScheduler as StaticPersistentGroupTileScheduler,
    StaticPersistentRuntimeTileScheduler as StaticPersistentRuntimeTileScheduler,
    create_initial_search_state as create_initial_search_state,
)
from tilewright.utils.layout_enum import LayoutEnum as LayoutEnum
from tilewright.utils.mixed_input_helpers import (
    TransformMode as TransformMode, compute_smem_layout as compute_smem_layout,
    get_copy_atom_a_transform as get_copy_atom_a_transform, get_divisibility as get_divisibility,
    get_gmem_layout_scale as get_gmem_layout_scale, get_smem_layout_scale as get_smem_layout_scale,
    get_tma_atom_kind as get_tma_atom_kind, get_transform_a_source as get_transform_a_source,
    is_valid_scale_granularity as is_valid_scale_granularity, scale_partition as scale_partition,
    scale_tma_partition as scale_tma_partition, transform_partition as transform_partition,
)
from tilewright.utils.persistent_schedule import PersistentScheduleSm90 as PersistentScheduleSm90
from tilewright.utils.sm90 import (
    sm90_get_smem_layout_atom as sm90_get_smem_layout_atom,
    sm90_make_trivial_tiled_mma as sm90_make_trivial_tiled_mma,
)
from tilewright.utils.tensor_helpers import (
    create_cute_tensor_for_fp8 as create_cute_tensor_for_fp8, is_fp8_dtype as is_fp8_dtype,
)
from tilewright.utils.tensormap_manager import (
    TensorMapManager as TensorMapManager, TensorMapUpdateMode as TensorMapUpdateMode,
)
from tilewright.utils.clc_tile_scheduler import (
    ClcDynamicPersistentTileScheduler as ClcDynamicPersistentTileScheduler,
    ClcDynamicPersistentTileSchedulerParams as ClcDynamicPersistentTileSchedulerParams,
)
from tilewright.utils.tile_scheduler import (
    PersistentTileSchedulerParams as PersistentTileSchedulerParams,
    StaticPersistentTileScheduler as StaticPersistentTileScheduler, WorkTileInfo as WorkTileInfo,
)
from tilewright.utils.tmem_allocator import (
    TmemAllocator as TmemAllocator, TmemBufferPool as TmemBufferPool,
    compute_tmem_cols_from_layout as compute_tmem_cols_from_layout,
    get_num_tmem_alloc_cols as get_num_tmem_alloc_cols,
)
from tilewright.utils.whole_tiles import block_copy as block_copy
from tilewright.viz.render import print_latex as print_latex, print_latex_tv as print_latex_tv
from tilewright.utils import (
    blackwell_helpers as blackwell_helpers, blockscaled_layout as blockscaled_layout, distributed as distributed,
    hopper_helpers as hopper_helpers, layout_enum as layout_enum,
    mixed_input_helpers as mixed_input_helpers, sm90 as sm90,
    tensor_helpers as tensor_helpers,
    tensormap_manager as tensormap_manager, tile_scheduler as tile_scheduler,
)
