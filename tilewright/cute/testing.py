"""``cute.testing``: benchmarks, tuning, conversions and run-time assertions."""

from tilewright._names import attach
from tilewright.lang.tools.autotune import autotune_jit, autotune_suite
from tilewright.lang.tools.benchmark import JitArguments, benchmark, get_workspace_count
from tilewright.lang.tools.tuning import CantImplementError, assert_, convert, tune

__all__ = [
    "CantImplementError",
    "JitArguments",
    "assert_",
    "autotune_jit",
    "autotune_suite",
    "benchmark",
    "convert",
    "get_workspace_count",
    "tune",
]

attach(__name__)
