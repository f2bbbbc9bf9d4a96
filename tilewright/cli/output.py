"""Output on terminals and files of any encoding: Windows' code pages, ASCII."""

from __future__ import annotations

import codecs
import io
import sys

PLAIN = {"\u00b7": "*", "\u00d7": "x", "\u2026": "...", "\u22ef": "...", "\u22ee": ":", "\u2192": "->", "\u2295": "^"}
"""What is printed for characters that the encoding lacks; "?" for others."""
HANDLER = "tilewright.plain"


def print_anything() -> None:
    """Make standard output and error print whatever they are given, with stand-ins for characters that they lack."""
    codecs.register_error(HANDLER, plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors=HANDLER)


def plain(error: UnicodeError) -> tuple[str, int]:
    """The error handler: what stands in for the characters that cannot be encoded.

    >>> plain(UnicodeEncodeError("ascii", "A\u00b7B \u03bb", 1, 2, ""))
    ('*', 2)
    """
    assert isinstance(error, UnicodeEncodeError)
    return "".join(PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end
