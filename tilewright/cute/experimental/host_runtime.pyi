# Made by `python tools/stubs.py` from tilewright/cute/experimental/host_runtime.py; do not edit.
"""``cute.experimental.host_runtime``, which is not here yet."""

from typing import Any

class QueryDeviceWorkspaceFunc(Any):
    """Not here yet: using it is an error that says why."""
