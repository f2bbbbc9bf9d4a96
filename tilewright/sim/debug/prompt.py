"""The Python debugger at a line of a kernel."""

from __future__ import annotations

from typing import Any

from tilewright.errors import TilewrightError
from tilewright.sim.debug.frame import Frame


class DebuggerNames(dict[str, Any]):
    """The names that the debugger sees: ``frame``, and the kernel's variables by what they hold."""


def names(frame: Frame) -> DebuggerNames:
    """Variables that can be shown have their own names; for others ``frame.value`` says why not."""
    names = DebuggerNames(frame=frame)
    for name in frame.names():
        try:
            names.setdefault(name, frame[name])
        except TilewrightError:
            continue
    return names


def prompt(frame: Frame) -> None:
    """Open what ``breakpoint()`` opens (``pdb``, or what PYTHONBREAKPOINT says), at the kernel's own line."""
    print(frame)
    # Code that seems to be at the kernel's line: the debugger then shows the kernel's source around it.
    text = "\n" * (frame.location.line - 1) + "breakpoint()"
    # What the user types at the prompt is Python.
    exec(compile(text, frame.location.file, "exec", dont_inherit=True), {"__name__": frame.kernel, **names(frame)})
