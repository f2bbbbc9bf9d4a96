"""``cute.experimental.iket``: named markers and ranges inside kernels, for NVIDIA's in-kernel profiler.

That profiler collects what its own compiler adds to a kernel; without it such calls add nothing, as documented, and
neither do they here. What warps do when, the simulator's traces show (``tilewright.sim.trace``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright._names import attach
from tilewright.errors import ConstraintError

__all__ = ["mark", "range_end", "range_pop", "range_push", "range_start", "sentinel_token"]


class Token(NamedTuple):
    """A range that was started; ``has_payload`` must agree at its end."""

    name: str
    has_payload: bool = False
    is_sentinel: bool = False


def mark(name: str, payload: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """Mark a moment."""


def range_push(name: str, payload: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """Begin the range ``name``."""


def range_pop(*, loc: Any = None, ip: Any = None) -> None:
    """End the range that began last."""


def range_start(name: str, payload: Any = None, *, loc: Any = None, ip: Any = None) -> Token:
    """Begin the range ``name``; the token ends it."""
    return Token(name, payload is not None)


def range_end(token: Token, payload: Any = None, *, loc: Any = None, ip: Any = None) -> None:
    """End the range of ``token``, with a payload if it began with one."""
    if not isinstance(token, Token):
        raise ConstraintError(f"iket.range_end takes the token of range_start or sentinel_token, not {token!r}")
    if not token.is_sentinel and token.has_payload != (payload is not None):
        raise ConstraintError(f"iket: the range {token.name!r} has a payload at one of its ends only")


def sentinel_token(name: str, *, loc: Any = None, ip: Any = None) -> Token:
    """A token of no range, to begin a loop with whose iterations end the range of the iteration before."""
    return Token(name, is_sentinel=True)


attach(__name__)
