"""Libraries import Triton beside these kernels, which do not use it: without a GPU it need not be there."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from unittest.mock import MagicMock

# These ask for Triton, and must find that there is none.
for asker in ("torch._dynamo", "torch._inductor.runtime.triton_compat", "torch._inductor.utils"):
    importlib.import_module(asker)


class Config:
    """A choice of sizes, which modules compare while they are imported."""

    def __init__(self, kwargs: dict[str, int], num_warps: int = 4, num_stages: int = 3, **more: object) -> None:
        self.kwargs, self.num_warps, self.num_stages = kwargs, num_warps, num_stages


if find_spec("triton") is None:
    triton = MagicMock(
        __spec__=None, Config=Config, FileCacheManager=object, JITFunction=type("JITFunction", (), {}), __version__="0"
    )
    for path in ("", ".runtime", ".runtime.cache", ".runtime.jit", ".testing", ".language"):
        sys.modules[f"triton{path}"] = triton
