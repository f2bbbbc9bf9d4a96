# Made by `python tools/stubs.py` from tilewright/cute/arch/later.py; do not edit.
"""Single instructions that are not here yet under these names."""

from typing import Any

class prefetch(Any):
    """Not here yet: using it is an error that says why."""

class sext_unpacked_i4_i8_intrinsic(Any):
    """Not here yet: using it is an error that says why."""
