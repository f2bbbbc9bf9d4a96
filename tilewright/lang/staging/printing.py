"""``print`` of staged functions, which prints while they are staged.

The trace of a region may be thrown away and done again. So what is printed inside of one waits until all are closed,
and is forgotten with its trace.
"""

from __future__ import annotations

import io
import threading
from typing import Any

from tilewright.ir.builder import Builder


class _Waiting(threading.local):
    """What one thread has printed in open regions: texts, their files, and whether these are flushed."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, Any, bool]] = []


_WAITING = _Waiting()


def print_(*items: Any, sep: str | None = None, end: str | None = None, file: Any = None, flush: bool = False) -> None:
    """``print``: the text is that of now, and it is shown when no region is open."""
    text = io.StringIO()
    print(*items, sep=sep, end=end, file=text)
    _WAITING.texts.append((text.getvalue(), file, flush))
    show()


def count() -> int:
    return len(_WAITING.texts)


def forget(after: int) -> None:
    """Drop what was printed since ``count()`` was ``after``."""
    del _WAITING.texts[after:]


def show() -> None:
    """Print what waits, if no region is open in any of the functions that are being staged."""
    if any(builder.regions for builder in Builder._stack.builders):
        return
    texts, _WAITING.texts = _WAITING.texts, []
    for text, file, flush in texts:
        print(text, end="", file=file, flush=flush)
