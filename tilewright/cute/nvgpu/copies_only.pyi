# Made by `python tools/stubs.py` from tilewright/cute/nvgpu/copies_only.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""Copies that are not here yet under these names."""

from typing import Any

class CopyBulkTensorTileG2SNonExecTrait(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class CopyDsmemStoreOp(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class CopyG2ROp(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class CopyR2GOp(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
