# Made by `python tools/stubs.py` from tilewright/utils/__init__.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.utils``: shared memory, matrix orders, the hardware, tile schedulers."""

from tilewright.lang.device.smem import SmemAllocator as SmemAllocator
from tilewright.lang.device.smem import get_smem_capacity_in_bytes as get_smem_capacity_in_bytes
from tilewright.lang.tools.hardware import HardwareInfo as HardwareInfo
from tilewright.utils import blackwell_helpers as blackwell_helpers
from tilewright.utils import blockscaled_layout as blockscaled_layout
from tilewright.utils import distributed as distributed
from tilewright.utils import gemm as gemm
from tilewright.utils import hardware_info as hardware_info
from tilewright.utils import hopper_helpers as hopper_helpers
from tilewright.utils import layout_enum as layout_enum
from tilewright.utils import mixed_input_helpers as mixed_input_helpers
from tilewright.utils import sm100 as sm100
from tilewright.utils import sm90 as sm90
from tilewright.utils import static_persistent_tile_scheduler as static_persistent_tile_scheduler
from tilewright.utils import tensor_helpers as tensor_helpers
from tilewright.utils import tensormap_manager as tensormap_manager
from tilewright.utils import tile_scheduler as tile_scheduler
from tilewright.utils.blackwell_helpers import compute_epilogue_tile_shape as compute_epilogue_tile_shape
from tilewright.utils.grouped_schedule import GroupSearchResult as GroupSearchResult
from tilewright.utils.grouped_schedule import GroupedGemmGroupSearchState as GroupedGemmGroupSearchState
from tilewright.utils.grouped_schedule import GroupedGemmTileSchedulerHelper as GroupedGemmTileSchedulerHelper
from tilewright.utils.grouped_schedule import GroupedWorkTileInfo as GroupedWorkTileInfo
from tilewright.utils.grouped_schedule import StaticPersistentGroupTileScheduler as StaticPersistentGroupTileScheduler
from tilewright.utils.grouped_schedule import StaticPersistentRuntimeTileScheduler as StaticPersistentRuntimeTileScheduler
from tilewright.utils.grouped_schedule import create_initial_search_state as create_initial_search_state
from tilewright.utils.layout_enum import LayoutEnum as LayoutEnum
from tilewright.utils.persistent_schedule import PersistentScheduleSm90 as PersistentScheduleSm90
from tilewright.utils.sm100_only import ClcDynamicPersistentTileScheduler as ClcDynamicPersistentTileScheduler
from tilewright.utils.sm100_only import ClcDynamicPersistentTileSchedulerParams as ClcDynamicPersistentTileSchedulerParams
from tilewright.utils.sm100_only import TmemAllocator as TmemAllocator
from tilewright.utils.sm100_only import get_num_tmem_alloc_cols as get_num_tmem_alloc_cols
from tilewright.utils.tensor_helpers import create_cute_tensor_for_fp8 as create_cute_tensor_for_fp8
from tilewright.utils.tensor_helpers import is_fp8_dtype as is_fp8_dtype
from tilewright.utils.tensormap_manager import TensorMapManager as TensorMapManager
from tilewright.utils.tensormap_manager import TensorMapUpdateMode as TensorMapUpdateMode
from tilewright.utils.tile_scheduler import PersistentTileSchedulerParams as PersistentTileSchedulerParams
from tilewright.utils.tile_scheduler import StaticPersistentTileScheduler as StaticPersistentTileScheduler
from tilewright.utils.tile_scheduler import WorkTileInfo as WorkTileInfo
from tilewright.viz.render import print_latex as print_latex
from tilewright.viz.render import print_latex_tv as print_latex_tv
