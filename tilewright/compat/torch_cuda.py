"""PyTorch's CUDA device served by the CPU, from the moment when a program imports PyTorch.

A tensor "on cuda" is a CPU tensor with a mark: it says ``device='cuda:0'`` to the program, copies between it and the
host are copies (a kernel that writes it does not change the host's), and everything else is PyTorch on the CPU.
"""

from __future__ import annotations

from typing import Any

from tilewright._at_import import AtImport

_patch: Any = None
_pending: AtImport | None = None


def install() -> None:
    global _pending
    if _patch is None and _pending is None:
        _pending = AtImport("torch", _serve)


def _serve() -> None:
    global _patch
    from tilewright.compat.torch_patch import Patch

    _patch = Patch()


def uninstall() -> None:
    global _patch, _pending
    if _pending is not None:
        _pending.cancel()
    if _patch is not None:
        _patch.undo()
    _patch = _pending = None
