# Made by `python tools/stubs.py` from tilewright/cute/arch/later.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""Single instructions that are not here yet under these names."""

from typing import Any

class prefetch(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class sext_unpacked_i4_i8_intrinsic(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
