"""``cutlass.experimental.primitives``: what libraries call of it, as the instructions that they name."""

from tilewright.experimental.instructions import (
    CpReduceOp as CpReduceOp, CpReduceType as CpReduceType, GridDepAction as GridDepAction, PermuteMode as PermuteMode,
    ReductionKind as ReductionKind, convert_and_pack_integer as convert_and_pack_integer,
    cp_async_bulk_global_shared_cta as cp_async_bulk_global_shared_cta,
    cp_reduce_async_bulk_global_shared_cta as cp_reduce_async_bulk_global_shared_cta,
    griddepcontrol as griddepcontrol, mov_b32 as mov_b32, prmt as prmt, redux_sync as redux_sync,
)
from tilewright._mlir.dialects.nvvm import AtomicOpKind, atomicrmw as atomicrmw
from tilewright.lang.device.bulk import (
    cp_async_bulk_commit_group as cp_async_bulk_commit_group, cp_async_bulk_wait_group as cp_async_bulk_wait_group,
)
from tilewright.lang.device.bulk_bytes import load_bytes

AtomicOp = AtomicOpKind
cp_async_bulk_shared_cluster_global = load_bytes
