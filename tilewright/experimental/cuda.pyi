# Made by `python tools/stubs.py` from tilewright/experimental/cuda.py; do not edit.
"""``cutlass.experimental.cuda``: tensor maps made by hand, which are not here yet."""

from typing import Any

class TensorMap(Any):
    """Not here yet: using it is an error that says why."""

class TensorMapDataFormat(Any):
    """Not here yet: using it is an error that says why."""

class TensorMapSwizzle(Any):
    """Not here yet: using it is an error that says why."""

class create_tensor_map_tiled(Any):
    """Not here yet: using it is an error that says why."""

class create_tensor_map_tiled_from_view(Any):
    """Not here yet: using it is an error that says why."""
