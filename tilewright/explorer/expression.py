"""Expressions of the layout algebra: calls of its functions on operands in CuTe notation. Nothing else is evaluated.

expression = (function "(" [argument {"," argument}] ")"  |  notation) {"(" coordinate ")"}
argument   = [name "="] expression
"""

from __future__ import annotations

import difflib
import re
from functools import partial
from inspect import isfunction
from typing import Any, NoReturn

import tilewright.layout as algebra
from tilewright.errors import LayoutError, ParseError
from tilewright.layout.parsing import DEEPEST
from tilewright.layout.tuples import MOST_MODES

NOT_OPERATIONS = {  # classes apart: what takes a Python function or a word, or builds what the notation writes
    "E",
    "as_int_tuple",
    "assume",
    "basis_get",
    "basis_value",
    "coordinates",
    "divisor_of",
    "exact_quotient",
    "explain",
    "filter_tuple",
    "find",
    "find_if",
    "format_tree",
    "has_scaled_basis",
    "has_underscore",
    "is_static",
    "is_static_int",
    "make_basis_like",
    "make_smem_atom",
    "offsets",
    "parse",
    "same_int",
    "same_tree",
    "tiles_at",
    "transform_apply",
    "transform_leaf",
    "widest_smem_atom",
}
FUNCTIONS = tuple(name for name in dir(algebra) if isfunction(getattr(algebra, name)) and name not in NOT_OPERATIONS)
NAME = re.compile(r"\s*([A-Za-z]\w*)\s*\(")
COMPLETE = re.compile(r"[\d)>]\s*$")  # behind this, notation has no parenthesis
KEYWORD = re.compile(r"\s*([A-Za-z]\w*)\s*=")


def parts(text: str) -> list[tuple[str, Any]]:
    """What an expression consists of, each with its value: operands and calls from the inside out, itself last.

    >>> parts("coalesce(composition((4,8):(13,1), 8:2))")[2:]
    [('composition((4,8):(13,1), 8:2)', (2,4):(26,1)), ('coalesce(composition((4,8):(13,1), 8:2))', (2,4):(26,1))]
    """
    reader = _Reader(text, explain=False)
    reader.whole()
    return reader.parts


def operation(text: str) -> tuple[str, tuple[Any, ...]]:
    """The outermost call of an expression: the function's name and its operands; ("", ()) if there is none.

    >>> operation("size(composition((4,8):(13,1), 8:2))"), operation("8:2")
    (('size', ((2,4):(26,1),)), ('', ()))
    """
    reader = _Reader(text, explain=False)
    reader.whole()
    return reader.last_call


def evaluate(text: str, explain: bool = False) -> Any:
    """The value of an expression; or, with ``explain``, the steps of its outermost operation as text.

    Raises:
        ParseError: with the position in ``text`` of the character, or of the function, at fault.

    >>> evaluate("composition((4,8):(13,1), 8:2)")
    (2,4):(26,1)
    >>> evaluate("right_inverse((4,8):(8,1))(5)")
    20
    >>> evaluate("(4,8):(8,1)(3,2)")
    26
    """
    return _Reader(text, explain).whole()


def pointed(error: ParseError) -> str:
    """The message of ``error``, the text, and a mark under the character at fault; a long text is not repeated."""
    if len(error.text) > 160:
        return f"{error} (character {error.position + 1})"
    return f"{error}\n  {error.text}\n  {' ' * error.position}^"


def _leaves(value: Any) -> int:
    """The leaves of a tree or of a layout's shape, as far as they are not too many to be written out."""
    count, rest = 0, [getattr(value, "shape", value)]
    while rest and count + len(rest) <= MOST_MODES:
        part = rest.pop()
        if isinstance(part, tuple):
            rest += part
        else:
            count += 1
    return count + len(rest)


class _Reader:
    def __init__(self, text: str, explain: bool) -> None:
        self.text, self.at, self.explain, self.depth = text, 0, explain, 0
        self.parts: list[tuple[str, Any]] = []
        self.last_call: tuple[str, tuple[Any, ...]] = ("", ())

    def whole(self) -> Any:
        """The value of the text; nothing may follow it."""
        value = self.expression()
        if self.rest():
            self.fail("nothing more was expected here")
        return value

    def rest(self) -> str:
        return self.text[self.at :].strip()

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        at = self.at if position is None else position
        while at < len(self.text) and self.text[at].isspace():
            at += 1
        raise ParseError(message, self.text, at)

    def expression(self) -> Any:
        start = self.at
        call = NAME.match(self.text, start)
        value = self.notation() if call is None else self.called(call)
        while self.rest().startswith("("):
            if not callable(value):
                self.fail(f"{value} is not a layout: it takes no coordinate")
            self.at = self.text.index("(", self.at) + 1
            value = self.part(start, self.apply(value, str(value), start))
        return value

    def part(self, start: int, value: Any) -> Any:
        self.parts.append((self.text[start : self.at].strip(), value))
        return value

    def called(self, call: re.Match[str]) -> Any:
        """The result of the function whose name and parenthesis ``call`` matched."""
        name, start = call.group(1), call.start(1)
        if name not in FUNCTIONS:
            near = difflib.get_close_matches(name, FUNCTIONS, 1)
            self.fail(f"there is no function {name}" + (f"; did you mean {near[0]}?" if near else ""), start)
        if self.depth == DEEPEST:
            self.fail(f"calls nested more than {DEEPEST} deep", start)
        self.depth += 1
        self.at = call.end()
        explain, self.explain = self.explain, False
        function = partial(algebra.explain, name) if explain else getattr(algebra, name)
        value = self.apply(function, name, start)
        self.depth -= 1
        return self.part(start, value)

    def apply(self, function: Any, name: str, start: int) -> Any:
        """Call ``function`` with the arguments up to the closing parenthesis."""
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        while not self.rest().startswith(")"):
            keyword = KEYWORD.match(self.text, self.at)
            if keyword is not None:
                self.at = keyword.end()
                keywords[keyword.group(1)] = self.expression()
            else:
                arguments.append(self.expression())
            if self.rest().startswith(","):
                self.at = self.text.index(",", self.at) + 1
            elif not self.rest().startswith(")"):
                self.fail("expected , or )")
        self.at = self.text.index(")", self.at) + 1
        try:
            value = function(*arguments, **keywords)
        except ParseError:
            raise
        except LayoutError as error:
            self.fail(str(error), start)
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            # The algebra checks meanings, not kinds: a number in place of a layout fails inside it.
            shown = ", ".join([*map(str, arguments), *(f"{key}={value}" for key, value in keywords.items())])
            self.fail(f"{name} does not take ({shown}): {error}", start)
        self.last_call = (name, tuple(arguments)) if not keywords else ("", ())
        if _leaves(value) > MOST_MODES:
            self.fail(f"{name} gives a tuple of more than {MOST_MODES} numbers", start)
        return value

    def notation(self) -> Any:
        """The longest text up to a comma or parenthesis that belongs to the caller, in CuTe notation."""
        start = end = self.at
        nested = 0
        while end < len(self.text) and (nested or self.text[end] not in ",)"):
            if not nested and self.text[end] == "(" and COMPLETE.search(self.text, start, end):
                break  # a coordinate
            nested += (self.text[end] in "(<") - (self.text[end] in ")>")
            end += 1
        literal = self.text[start:end].rstrip()
        stripped = literal.lstrip()
        start += len(literal) - len(stripped)
        if not stripped:
            self.fail("expected a function or an operand in CuTe notation, such as (4,8):(8,1)", start)
        try:
            value = algebra.parse(stripped)
        except ParseError as error:
            message = str(error).removeprefix(f"{stripped!r}: ").replace(f" at {error.position},", ",")
            self.fail(message, start + error.position)
        self.at = end
        return self.part(start, value)
