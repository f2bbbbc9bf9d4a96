# Made by `python tools/stubs.py` from tilewright/cute/experimental/host_runtime.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cute.experimental.host_runtime``, which is not here yet."""

from typing import Any

class QueryDeviceWorkspaceFunc(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
