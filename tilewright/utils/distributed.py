"""``cutlass.utils.distributed``: locks and sums across GPUs, which are not here yet under these names."""

from tilewright import stand_ins

_LOCK = "a loop of cute.arch.atomic_cas or cute.arch.load with sem= and scope="

__getattr__, __all__ = stand_ins.names(
    __name__,
    "multimem_ld_reduce multimem_ld_reduce_4xf32 multimem_red_add1 multimem_st multimem_st_4xb32 red_add1 "
    "spin_lock_atom_cas_acquire_wait spin_lock_atom_cas_relaxed_wait spin_lock_ld_lt_relaxed_wait",
    why="it needs memory that several GPUs map at once (multimem). Tilewright's kernels work on one GPU",
    instead={
        "red_add1": "cute.arch.atomic_add(pointer, 1, sem=..., scope=...)",
        "spin_lock_atom_cas_acquire_wait": _LOCK,
        "spin_lock_atom_cas_relaxed_wait": _LOCK,
        "spin_lock_ld_lt_relaxed_wait": _LOCK,
    },
)
