"""How much Python a piece of code executes: a measure of speed that does not depend on the machine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any


def calls_in(action: Callable[[], Any]) -> int:
    """Calls of Python and C functions that ``action()`` makes."""
    count = 0

    def note(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # what is collected may have finalizers, whose calls are not the action's
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count
