# Made by `python tools/stubs.py` from tilewright/cute/experimental/sm100_only.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""Pipelines, copies and MMAs of ``cute.experimental`` that are made for tcgen05, which are not here yet."""

from typing import Any

class OperationTypeEnum(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TMAStorePipeline(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TMAToUMMAPipeline(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class UMMAtoAsyncPipeline(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class dot(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class dot_block_scaled(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class epilogue_tma_store(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class get_cta_v_map_ab(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class get_cta_v_map_c(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class get_mbarrier(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class mainloop_mma(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class make_t2r_rmem_layout(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class make_tmem_layout_acc(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class partition_and_copy(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class pipeline_advance_iterator(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tma_load(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tma_load_multicast(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class tma_store(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
