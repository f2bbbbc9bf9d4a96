# Made by `python tools/stubs.py` from tilewright/experimental/cuda.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""``cutlass.experimental.cuda``: tensor maps made by hand, which are not here yet."""

from typing import Any

class TensorMap(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TensorMapDataFormat(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class TensorMapSwizzle(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class create_tensor_map_tiled(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class create_tensor_map_tiled_from_view(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
