"""``cute.testing``: benchmarks, tuning, conversions and run-time assertions."""

from tilewright.lang.tools.autotune import autotune_jit as autotune_jit, autotune_suite as autotune_suite
from tilewright.lang.tools.benchmark import (
    JitArguments as JitArguments, benchmark as benchmark, get_workspace_count as get_workspace_count,
)
from tilewright.lang.tools.tuning import (
    CantImplementError as CantImplementError, assert_ as assert_, convert as convert, tune as tune,
)
