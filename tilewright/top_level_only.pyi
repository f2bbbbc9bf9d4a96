# Made by `python tools/stubs.py` from tilewright/top_level_only.py; do not edit.
"""Names of the module ``cutlass`` itself that are not here yet."""

from typing import Any

class Array(Any):
    """Not here yet: using it is an error that says why."""

class Float4E2M1FNx2(Any):
    """Not here yet: using it is an error that says why."""

class Float6E3M2FNx4(Any):
    """Not here yet: using it is an error that says why."""

class Float8E4M3B11FNUZ(Any):
    """Not here yet: using it is an error that says why."""

class Float8E8M0FNU(Any):
    """Not here yet: using it is an error that says why."""

class GridConstant(Any):
    """Not here yet: using it is an error that says why."""

class Int4(Any):
    """Not here yet: using it is an error that says why."""

class Swizzle(Any):
    """Not here yet: using it is an error that says why."""

class Vector(Any):
    """Not here yet: using it is an error that says why."""

class full(Any):
    """Not here yet: using it is an error that says why."""

class inttoptr(Any):
    """Not here yet: using it is an error that says why."""

class make_array_view(Any):
    """Not here yet: using it is an error that says why."""

class print_nd_vector(Any):
    """Not here yet: using it is an error that says why."""

class target_version(Any):
    """Not here yet: using it is an error that says why."""

class vector(Any):
    """Not here yet: using it is an error that says why."""
