# Made by `python tools/stubs.py` from tilewright/top_level_only.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""Names of the module ``cutlass`` itself that are not here yet."""

from typing import Any

class Array(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Float4E2M1FNx2(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Float6E3M2FNx4(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Float8E4M3B11FNUZ(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Float8E8M0FNU(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class GridConstant(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Int4(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Swizzle(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class Vector(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class full(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class inttoptr(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class make_array_view(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class print_nd_vector(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class target_version(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""

class vector(Any):  # type: ignore[misc]
    """Not here yet: using it is an error that says why."""
