"""Names that the CuTe DSL has and Tilewright does not have yet, which programs import beside names that are here.

They can be imported, and written into annotations and base classes. Calling one, or one of its members, is an error
that says why it is not here, and what to use in its place where there is something.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from tilewright._lazy import missing
from tilewright.errors import ConstraintError, MissingNameError, nearest

SM100 = (
    "it belongs to the instructions of sm_100 (tcgen05, tensor memory). "
    "Tilewright has mma.sync (sm_80 and later: cute.nvgpu.warp) and wgmma (sm_90a: cute.nvgpu.warpgroup)"
)
SM120 = "its instruction needs sm_120. Tilewright has mma.sync of sm_80 and sm_89 (cute.nvgpu.warp)"
EXPERIMENTAL = "it belongs to the experimental modules of the CuTe DSL. Write the kernel with cute and cute.arch"


class NotHereYet(type):
    """The class of such names."""

    path: str
    why: str
    members: tuple[str, ...]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise ConstraintError(f"{cls.path} is not here yet: {cls.why}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if cls.members and name not in cls.members:
            raise MissingNameError(lambda: f"{cls.path} has no attribute {name!r}{nearest(name, cls.members)}")
        return named(f"{cls.path}.{name}", cls.why)

    def __getitem__(cls, item: Any) -> Any:  # annotations: GridConstant[TensorMap]
        return cls

    def __repr__(cls) -> str:
        return f"<{cls.path}: not here yet>"


@functools.cache
def named(path: str, why: str = SM100, members: tuple[str, ...] = ()) -> Any:
    """The stand-in for ``path``, ``cutlass...``; ``members``: what is known of an enumeration (none: anything)."""
    return NotHereYet(path.rpartition(".")[2], (), {"path": path, "why": why, "members": members})


def names(
    module: str, known: str, has: tuple[str, ...] = (), public: str | None = None, why: str = SM100,
    instead: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], list[str]]:  # fmt: skip
    """``__getattr__`` of ``module`` for the names ``known``, and ``__all__`` with those that the module ``has`` itself.

    ``known``: names separated by spaces; ``Kind(A,B)`` is a class or an enumeration with the members A and B.
    ``public``: the module that shows the names, if it is another. ``why`` they are not here; ``instead``: for some
    names what is here in their place.
    """
    found = dict(map(_with_members, known.split()))
    shown = f"cutlass.{module.partition('.')[2] if public is None else public}".removesuffix(".")
    places = instead or {}

    def find(name: str) -> Any:
        if name in found:
            use = f"; use {places[name]}" if name in places else ""
            return named(f"{shown}.{name}", why.partition(". ")[0] + use if use else why, found[name])
        import sys

        raise missing(module, name, [*found, *has], sys._getframe(1))

    return find, sorted([*found, *has])


def _with_members(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, members = text.rstrip(")").partition("(")
    return name, tuple(members.split(",")) if members else ()
