"""The text of one kernel and where each of its lines comes from in the user's Python."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.ir.core import Location


@dataclass(frozen=True)
class Source:
    """``text`` is the CUDA C++ (without ``#line``); ``origins[i]`` is the Python line behind line ``i + 1``."""

    name: str
    text: str
    origins: tuple[Location | None, ...]

    def annotated(self) -> str:
        """The text with ``#line`` directives, so that profilers and debuggers show the user's Python."""
        lines: list[str] = []
        expected: Location | None = None
        after_pragma = False
        for line, origin in zip(self.text.splitlines(), self.origins, strict=True):
            # No directive may come between `#pragma unroll` and its loop.
            if origin is not None and origin != expected and not after_pragma:
                lines.append(f'#line {origin.line} "{_quoted(origin.file)}"')
                expected = origin
            lines.append(line)
            after_pragma = line.lstrip().startswith("#pragma")
            if expected is not None:
                expected = Location(expected.file, expected.line + 1)
        return "\n".join(lines) + "\n"

    def excerpt(self, line: int, before: int = 3, after: int = 2) -> str:
        """The numbered lines around ``line``, the line itself marked; for error messages."""
        lines = self.text.splitlines()
        shown = range(max(1, line - before), min(len(lines), line + after) + 1)
        return "\n".join(f"{'>' if n == line else ' '} {n:4d} | {lines[n - 1]}" for n in shown)


def _quoted(path: str) -> str:
    """``path`` in a C++ string; Windows' paths with the slashes that every tool there takes, too."""
    if re.match(r"[A-Za-z]:\\|\\\\", path):
        path = path.replace("\\", "/")
    return path.replace("\\", "\\\\").replace('"', '\\"')
