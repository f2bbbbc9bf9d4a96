# Made by `python tools/stubs.py` from tilewright/utils/sm100.py; do not edit.
"""``cutlass.utils.sm100``: another name of :mod:`tilewright.utils.blackwell_helpers`."""

from tilewright.utils.blackwell_helpers import *
