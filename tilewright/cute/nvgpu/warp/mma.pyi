# Made by `python tools/stubs.py` from tilewright/cute/nvgpu/warp/mma.py; do not edit.
"""``cute.nvgpu.warp.mma``: what the block-scaled MMAs of sm_120 multiply, which are not here yet."""

from typing import Any

class MXF8F6F4_SUPPORTED_PAIRS(Any):
    """Not here yet: using it is an error that says why."""
