# Made by `python tools/stubs.py` from tilewright/cute/experimental/sm100_only.py; do not edit.
"""Pipelines, copies and MMAs of ``cute.experimental`` that are made for tcgen05, which are not here yet."""

from typing import Any

class OperationTypeEnum(Any):
    """Not here yet: using it is an error that says why."""

class TMAStorePipeline(Any):
    """Not here yet: using it is an error that says why."""

class TMAToUMMAPipeline(Any):
    """Not here yet: using it is an error that says why."""

class UMMAtoAsyncPipeline(Any):
    """Not here yet: using it is an error that says why."""

class dot(Any):
    """Not here yet: using it is an error that says why."""

class dot_block_scaled(Any):
    """Not here yet: using it is an error that says why."""

class epilogue_tma_store(Any):
    """Not here yet: using it is an error that says why."""

class get_cta_v_map_ab(Any):
    """Not here yet: using it is an error that says why."""

class get_cta_v_map_c(Any):
    """Not here yet: using it is an error that says why."""

class get_mbarrier(Any):
    """Not here yet: using it is an error that says why."""

class mainloop_mma(Any):
    """Not here yet: using it is an error that says why."""

class make_t2r_rmem_layout(Any):
    """Not here yet: using it is an error that says why."""

class make_tmem_layout_acc(Any):
    """Not here yet: using it is an error that says why."""

class partition_and_copy(Any):
    """Not here yet: using it is an error that says why."""

class pipeline_advance_iterator(Any):
    """Not here yet: using it is an error that says why."""

class tma_load(Any):
    """Not here yet: using it is an error that says why."""

class tma_load_multicast(Any):
    """Not here yet: using it is an error that says why."""

class tma_store(Any):
    """Not here yet: using it is an error that says why."""
