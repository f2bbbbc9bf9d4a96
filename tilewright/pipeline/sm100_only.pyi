# Made by `python tools/stubs.py` from tilewright/pipeline/sm100_only.py; do not edit.
"""Pipelines to and from tcgen05 and of cluster launch control, which are not here yet."""

from typing import Any

class PipelineAsyncUmma(Any):
    """Not here yet: using it is an error that says why."""

class PipelineClcFetchAsync(Any):
    """Not here yet: using it is an error that says why."""

class PipelineTmaUmma(Any):
    """Not here yet: using it is an error that says why."""

class PipelineUmmaAsync(Any):
    """Not here yet: using it is an error that says why."""
