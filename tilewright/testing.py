"""``cutlass.testing``: the older home of :mod:`tilewright.cute.testing`."""

from tilewright.cute.testing import (
    CantImplementError,
    JitArguments,
    assert_,
    autotune_jit,
    benchmark,
    convert,
    get_workspace_count,
    tune,
)

__all__ = [
    "CantImplementError",
    "JitArguments",
    "assert_",
    "autotune_jit",
    "benchmark",
    "convert",
    "get_workspace_count",
    "tune",
]
