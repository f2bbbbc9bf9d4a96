# Made by `python tools/stubs.py` from tilewright/cute/experimental/__init__.py; do not edit.
"""``cute.experimental``: kernels whose copies leave out by themselves what lies outside the arguments.

Tensor arguments of an ``@experimental.kernel`` remember the coordinates of their elements through divisions, tiles and
slices; :func:`copy` makes predicates of them. The rest of ``cute`` is used as in other kernels.
"""

from tilewright.cute.experimental import host_runtime as host_runtime
from tilewright.cute.experimental import iket as iket
from tilewright.cute.experimental.copies import allocate as allocate
from tilewright.cute.experimental.copies import copy as copy
from tilewright.cute.experimental.copies import partition as partition
from tilewright.cute.experimental.kernels import kernel as kernel
from tilewright.cute.experimental.sm100_only import OperationTypeEnum as OperationTypeEnum
from tilewright.cute.experimental.sm100_only import TMAStorePipeline as TMAStorePipeline
from tilewright.cute.experimental.sm100_only import TMAToUMMAPipeline as TMAToUMMAPipeline
from tilewright.cute.experimental.sm100_only import UMMAtoAsyncPipeline as UMMAtoAsyncPipeline
from tilewright.cute.experimental.sm100_only import dot as dot
from tilewright.cute.experimental.sm100_only import dot_block_scaled as dot_block_scaled
from tilewright.cute.experimental.sm100_only import epilogue_tma_store as epilogue_tma_store
from tilewright.cute.experimental.sm100_only import get_cta_v_map_ab as get_cta_v_map_ab
from tilewright.cute.experimental.sm100_only import get_cta_v_map_c as get_cta_v_map_c
from tilewright.cute.experimental.sm100_only import get_mbarrier as get_mbarrier
from tilewright.cute.experimental.sm100_only import mainloop_mma as mainloop_mma
from tilewright.cute.experimental.sm100_only import make_t2r_rmem_layout as make_t2r_rmem_layout
from tilewright.cute.experimental.sm100_only import make_tmem_layout_acc as make_tmem_layout_acc
from tilewright.cute.experimental.sm100_only import partition_and_copy as partition_and_copy
from tilewright.cute.experimental.sm100_only import pipeline_advance_iterator as pipeline_advance_iterator
from tilewright.cute.experimental.sm100_only import tma_load as tma_load
from tilewright.cute.experimental.sm100_only import tma_load_multicast as tma_load_multicast
from tilewright.cute.experimental.sm100_only import tma_store as tma_store
from tilewright.lang.launch.compile import compile as compile
from tilewright.lang.launch.jit import jit as jit
