# Made by `python tools/stubs.py` from tilewright/cute/later.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""Options of test programs that are not here yet."""

from typing import Any

class add_tensor_init_args(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class validate_tensor_init_args(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
