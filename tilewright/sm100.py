"""Names of Blackwell's instructions (tcgen05, tensor memory, cluster launch control), which are not here yet.

Programs import them beside names that are here; so they can be imported, and written into annotations. Calling one, or
one of its methods, is an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright._lazy import missing
from tilewright.errors import ConstraintError


class NotHereYet(type):
    """The class of such names."""

    path: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise ConstraintError(
            f"{cls.path} is not here yet: it belongs to the instructions of sm_100 (tcgen05, tensor memory). "
            "Tilewright has mma.sync (sm_80 and later: cute.nvgpu.warp) and wgmma (sm_90a: cute.nvgpu.warpgroup)"
        )

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return named(f"{cls.path}.{name}")

    def __repr__(cls) -> str:
        return f"<{cls.path}: not here yet>"


def named(path: str) -> Any:
    """The stand-in for ``path``, ``cutlass...``"""
    return NotHereYet(path.rpartition(".")[2], (), {"path": path})


def names(
    module: str, known: str, has: tuple[str, ...] = (), public: str | None = None
) -> tuple[Callable[[str], Any], list[str]]:
    """``__getattr__`` of ``module`` for the names ``known``, separated by spaces, and ``__all__`` with those that the
    module ``has`` itself. ``public``: the module that shows the names, if it is another."""
    found = known.split()
    shown = public or module.partition(".")[2]

    def find(name: str) -> Any:
        if name in found:
            return named(f"cutlass.{shown}.{name}")
        import sys

        raise missing(module, name, [*found, *has], sys._getframe(1))

    return find, sorted([*found, *has])
