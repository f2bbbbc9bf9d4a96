"""PyTorch's CUDA device served by the CPU, from the moment when a program imports PyTorch.

A tensor "on cuda" is a CPU tensor with a mark: it says ``device='cuda:0'`` to the program, copies between it and the
host are copies (a kernel that writes it does not change the host's), and everything else is PyTorch on the CPU.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_patch: Any = None
_finder: _AtImport | None = None


class _AtImport(MetaPathFinder):
    """Serves the device as soon as PyTorch's package has been imported; programs without PyTorch never load it."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = sys.modules["importlib.util"].find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_serve(module: ModuleType) -> None:
            load(module)
            _serve()

        spec.loader.exec_module = load_and_serve  # type: ignore[method-assign]  # on purpose: serves when loaded
        return spec  # type: ignore[no-any-return]


def install() -> None:
    import importlib.util  # noqa: F401 (the finder finds it loaded)

    global _finder
    if _patch is not None or _finder is not None:
        return
    if "torch" in sys.modules:
        _serve()
    else:
        _finder = _AtImport()
        sys.meta_path.insert(0, _finder)


def _serve() -> None:
    global _patch
    from tilewright.compat.torch_patch import Patch

    _patch = Patch()


def uninstall() -> None:
    global _patch, _finder
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)  # type: ignore[arg-type]  # it has what finders need
    if _patch is not None:
        _patch.undo()
    _patch = _finder = None
