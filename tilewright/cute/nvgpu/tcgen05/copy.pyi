# Made by `python tools/stubs.py` from tilewright/cute/nvgpu/tcgen05/copy.py; do not edit.
"""``cute.nvgpu.tcgen05.copy``: the older module of names that ``cute.nvgpu.tcgen05`` has."""

from tilewright.cute.nvgpu.tcgen05 import *
