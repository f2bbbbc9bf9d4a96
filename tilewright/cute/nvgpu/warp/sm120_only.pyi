# Made by `python tools/stubs.py` from tilewright/cute/nvgpu/warp/sm120_only.py; do not edit.
"""Block-scaled MMAs of one warp, and matrices of 16 x 16 bytes, which are not here yet."""

from typing import Any

class LdMatrix16x16x8bOp(Any):
    """Not here yet: using it is an error that says why."""

class MmaMXF4NVF4Op(Any):
    """Not here yet: using it is an error that says why."""

class MmaMXF4Op(Any):
    """Not here yet: using it is an error that says why."""

class MmaMXF8F6F4Op(Any):
    """Not here yet: using it is an error that says why."""

class MmaMXF8Op(Any):
    """Not here yet: using it is an error that says why."""
