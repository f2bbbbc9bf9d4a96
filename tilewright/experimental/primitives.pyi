"""``cutlass.experimental.primitives``: what libraries call of it, as the instructions that they name."""

from tilewright.experimental.instructions import (
    CpReduceOp as CpReduceOp, CpReduceType as CpReduceType, GridDepAction as GridDepAction,
    cp_async_bulk_global_shared_cta as cp_async_bulk_global_shared_cta,
    cp_reduce_async_bulk_global_shared_cta as cp_reduce_async_bulk_global_shared_cta,
    griddepcontrol as griddepcontrol, mov_b32 as mov_b32,
)
