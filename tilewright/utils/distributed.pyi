# Made by `python tools/stubs.py` from tilewright/utils/distributed.py; do not edit.
"""``cutlass.utils.distributed``: locks and sums across GPUs, which are not here yet under these names."""

from typing import Any

class multimem_ld_reduce(Any):
    """Not here yet: using it is an error that says why."""

class multimem_ld_reduce_4xf32(Any):
    """Not here yet: using it is an error that says why."""

class multimem_red_add1(Any):
    """Not here yet: using it is an error that says why."""

class multimem_st(Any):
    """Not here yet: using it is an error that says why."""

class multimem_st_4xb32(Any):
    """Not here yet: using it is an error that says why."""

class red_add1(Any):
    """Not here yet: using it is an error that says why."""

class spin_lock_atom_cas_acquire_wait(Any):
    """Not here yet: using it is an error that says why."""

class spin_lock_atom_cas_relaxed_wait(Any):
    """Not here yet: using it is an error that says why."""

class spin_lock_ld_lt_relaxed_wait(Any):
    """Not here yet: using it is an error that says why."""

_LOCK: str
