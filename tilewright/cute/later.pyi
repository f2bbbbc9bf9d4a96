# Made by `python tools/stubs.py` from tilewright/cute/later.py; do not edit.
"""Options of test programs that are not here yet."""

from typing import Any

class add_tensor_init_args(Any):
    """Not here yet: using it is an error that says why."""

class validate_tensor_init_args(Any):
    """Not here yet: using it is an error that says why."""
