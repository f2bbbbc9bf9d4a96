"""CuTe notation: ``(2,(2,2)):(4,(2,1))``, ``1@0``, ``_``, ``?{div=8}``, ``Sw<3,4,3> o 0 o (8,64):(64,1)``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from tilewright.errors import LayoutError, ParseError
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.ints import format_int
from tilewright.layout.symbolic import SymbolicInt

_TOKEN = re.compile(r"\s*(-?\d+|\?|\{div=\d+\}|[(),:@_X]|Sw<|>|o\b)")
_fresh = itertools.count()


def format_tree(t: Any) -> str:
    """A tree, a layout or a tiler as text.

    >>> format_tree((2, (None, 4))), format_tree((8,))
    ('(2,(_,4))', '(8)')
    """
    if isinstance(t, tuple | list):
        return "(" + ",".join([format_tree(x) for x in t]) + ")"
    return "_" if t is None else format_int(t)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        return match.group(1) if match else ""

    def take(self, expected: str = "") -> str:
        match = _TOKEN.match(self.text, self.at)
        if match is None or (expected and match.group(1) != expected):
            found = repr(self.text[self.at : self.at + 12]) if self.at < len(self.text) else "the end"
            wanted = expected or "a number, ( or _"
            raise ParseError(f"{self.text!r}: expected {wanted} at {self.at}, found {found}", self.text, self.at)
        self.at = match.end()
        return match.group(1)

    def item(self) -> Any:
        start, tree = self.start(), self.tree()
        if self.peek() != ":":
            return tree
        from tilewright.layout.layout import make_layout
        from tilewright.layout.tuples import as_int_tuple

        self.checked(start, make_layout, tree)
        self.take(":")
        start, stride = self.start(), self.tree()
        self.checked(start, as_int_tuple, stride, "stride")
        return self.checked(start, lambda: make_layout(tree, stride=stride))

    def checked(self, start: int, make: Callable[..., Any], *arguments: Any) -> Any:
        """What ``make`` gives; its error points at ``start``."""
        try:
            return make(*arguments)
        except LayoutError as error:
            raise ParseError(f"{self.text!r}: {error}", self.text, start) from None

    def tree(self) -> Any:
        token = self.take()
        if token == "(":
            items = [self.item()]
            while self.peek() == ",":
                self.take(",")
                items.append(self.item())
            self.take(")")
            return tuple(items)
        if token in ("_", "X"):
            return None
        if token == "?":
            divisor = int(self.take()[5:-1]) if self.peek().startswith("{") else 1
            return SymbolicInt(f"n{next(_fresh)}", divisor)
        self.at -= len(token)
        value = self.number("a number, ( or _")
        modes = []
        while self.peek() == "@":
            self.take("@")
            modes.append(self.number("a mode"))
        return ScaledBasis(value, tuple(reversed(modes))) if modes else value

    def number(self, wanted: str = "a number") -> int:
        if not self.peek().lstrip("-").isdigit():
            self.take(wanted)  # never what stands here: the error
        return int(self.take())

    def start(self) -> int:
        """Where the next token begins."""
        return self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())

    def swizzle(self) -> Any:
        from tilewright.layout.swizzle import Swizzle

        start = self.start()
        numbers = []
        for sign in ("Sw<", ",", ","):
            self.take(sign)
            numbers.append(self.number())
        self.take(">")
        return self.checked(start, Swizzle, *numbers)

    def whole(self) -> Any:
        first = self.swizzle() if self.peek() == "Sw<" else self.item()
        if self.peek() == "o":
            from tilewright.layout.composed import make_composed_layout

            self.take("o")
            offset = self.item()
            self.take("o")
            start = self.start()
            return self.checked(start, make_composed_layout, first, offset, self.whole())
        return first


def parse(text: str) -> Any:
    """Read an int, a tree, a layout, a tiler, a swizzle or a composed layout. ``_`` and ``X`` are None.

    Each ``?`` becomes a new run-time int.

    >>> parse("(2,(2,2)):(4,(2,1))"), parse("(2:1,(4,2),_)"), parse("Sw<3,3,3> o 0 o (8,64):(64,1)")
    ((2,(2,2)):(4,(2,1)), (2:1, (4, 2), None), Sw<3,3,3> o 0 o (8,64):(64,1))
    """
    if not isinstance(text, str):
        raise ParseError(f"parse: {text!r} is not text")
    reader = _Reader(text)
    result = reader.whole()
    if reader.at != len(text.rstrip()):
        raise ParseError(f"{text!r}: cannot read {text[reader.at :]!r}", text, reader.at)
    return result
