# Made by `python tools/stubs.py` from tilewright/cute/nvgpu/copies_only.py; do not edit.
"""Copies that are not here yet under these names."""

from typing import Any

class CopyBulkTensorTileG2SNonExecTrait(Any):
    """Not here yet: using it is an error that says why."""

class CopyDsmemStoreOp(Any):
    """Not here yet: using it is an error that says why."""

class CopyG2ROp(Any):
    """Not here yet: using it is an error that says why."""

class CopyR2GOp(Any):
    """Not here yet: using it is an error that says why."""
