# Made by `python tools/stubs.py` from tilewright/cute/nvgpu/tcgen05/mma.py; do not edit.
"""``cute.nvgpu.tcgen05.mma``: the older module of names that ``cute.nvgpu.tcgen05`` has."""

from tilewright.cute.nvgpu.tcgen05 import *
