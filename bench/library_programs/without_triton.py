"""Libraries import Triton beside these kernels, which do not use it: without a GPU it need not be there."""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from unittest.mock import MagicMock

# These ask for Triton, and must find that there is none.
for asker in ("torch._dynamo", "torch._inductor.runtime.triton_compat", "torch._inductor.utils"):
    importlib.import_module(asker)


class Config:
    """A choice of sizes, which modules compare while they are imported."""

    def __init__(self, kwargs: dict[str, int], num_warps: int = 4, num_stages: int = 3, **more: object) -> None:
        self.kwargs, self.num_warps, self.num_stages = kwargs, num_warps, num_stages


class Modules(MetaPathFinder, Loader):
    """Triton's modules, whose names are anything."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        ours = name.partition(".")[0] in ("triton", "triton_kernels")
        return ModuleSpec(name, self, is_package=True) if ours else None

    def create_module(self, spec: ModuleSpec) -> MagicMock:  # it stands for a module
        return MagicMock(
            __spec__=spec,
            __path__=[],
            __version__="3.6.0",
            Config=Config,
            FileCacheManager=object,
            JITFunction=type("JITFunction", (), {}),
        )

    def exec_module(self, module: object) -> None:
        """Nothing is run."""


if find_spec("triton") is None:
    sys.meta_path.append(Modules())
