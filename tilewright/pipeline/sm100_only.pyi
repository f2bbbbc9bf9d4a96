# Made by `python tools/stubs.py` from tilewright/pipeline/sm100_only.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""Pipelines to and from tcgen05 and of cluster launch control, which are not here yet."""

from typing import Any

class PipelineAsyncUmma(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class PipelineClcFetchAsync(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class PipelineTmaUmma(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class PipelineUmmaAsync(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
