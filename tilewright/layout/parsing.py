"""Reading CuTe notation: ``(2,(2,2)):(4,(2,1))``, ``1@0``, ``_``, ``?{div=8}``, ``Sw<3,4,3> o 0 o (8,64):(64,1)``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, NoReturn

from tilewright.errors import LayoutError, ParseError
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.compose import make_composed_layout
from tilewright.layout.layout import make_layout
from tilewright.layout.swizzle import Swizzle
from tilewright.layout.symbolic import SymbolicInt
from tilewright.layout.tuples import as_int_tuple

_TOKEN = re.compile(r"\s*(-?\d+|\?|\{div=\d+\}|[(),:@_X]|Sw<|>|o\b)")
_fresh = itertools.count()
DEEPEST = 64  # levels of parentheses, of basis modes and of composed layouts
LARGEST = 1 << 63


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def fail(self, message: str, position: int) -> NoReturn:
        raise ParseError(f"{self.text!r}: {message}", self.text, position)

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        return match.group(1) if match else ""

    def take(self, expected: str = "") -> str:
        match = _TOKEN.match(self.text, self.at)
        if match is None or (expected and match.group(1) != expected):
            rest = repr(self.text[self.at : self.at + 12]) if self.at < len(self.text) else "the end"
            expected = expected or "a number, ( or _"
            raise ParseError(f"{self.text!r}: expected {expected} at {self.at}, found {rest}", self.text, self.at)
        self.at = match.end()
        return match.group(1)

    def item(self) -> Any:
        start, tree = self.start(), self.tree()
        if self.peek() != ":":
            return tree
        self.checked(start, make_layout, tree)
        self.take(":")
        start, stride = self.start(), self.tree()
        self.checked(start, as_int_tuple, stride, "stride")
        return self.checked(start, lambda: make_layout(tree, stride=stride))

    def checked(self, start: int, make: Callable[..., Any], *arguments: Any) -> Any:
        """The result of ``make``; its error points at ``start``."""
        try:
            return make(*arguments)
        except LayoutError as error:
            raise ParseError(f"{self.text!r}: {error}", self.text, start) from None

    def tree(self) -> Any:
        token = self.take()
        if token == "(":
            self.deeper("parentheses")
            items = [self.item()]
            while self.peek() == ",":
                self.take(",")
                items.append(self.item())
            self.take(")")
            self.depth -= 1
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
            modes.append(self.number("a mode", DEEPEST))
            if len(modes) > DEEPEST:
                self.fail(f"more than {DEEPEST} nested modes", self.at)
        return ScaledBasis(value, tuple(reversed(modes))) if modes else value

    def number(self, expected: str = "a number", largest: int = LARGEST) -> int:
        digits = self.peek().lstrip("-")
        if not digits.isdigit():
            self.take(expected)  # never what is here: the error
        if len(digits) > len(str(largest)) or int(digits) > largest:
            self.fail(f"{digits[:24]}{'...' if len(digits) > 24 else ''} is larger than {largest}", self.start())
        return int(self.take())

    def deeper(self, what: str) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"{what} nested more than {DEEPEST} deep", self.at)

    def start(self) -> int:
        """Where the next token begins."""
        return self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())

    def swizzle(self) -> Any:
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
            self.take("o")
            self.deeper("layouts")
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
