# Made by `python tools/stubs.py` from tilewright/cute/nvgpu/warp/sm120_only.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""Block-scaled MMAs of one warp, and matrices of 16 x 16 bytes, which are not here yet."""

from typing import Any

class LdMatrix16x16x8bOp(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class MmaMXF4NVF4Op(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class MmaMXF4Op(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class MmaMXF8F6F4Op(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class MmaMXF8Op(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
