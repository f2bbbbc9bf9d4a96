"""f-strings of staged functions: texts that hold the run-time values in them; ``printf`` prints the numbers.

Python formats such a value while staging, when its number is not known; ``print`` shows a question mark for it.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.numbers.numeric_base import SHOWN_UNKNOWN
from tilewright.lang.staging.location import fail, here
from tilewright.lang.staging.refusals import is_dynamic
from tilewright.lang.staging.undefined import Undefined


class Field(NamedTuple):
    """A value in a text, its format, and what Python prints for it while staging (``?``, ``(?,4):(4,1)``)."""

    value: Any
    spec: str
    shown: str


class Text(str):
    """A text with run-time values: ``parts`` are texts and :class:`Field`."""

    parts: tuple[str | Field, ...]

    def __add__(self, other: Any) -> str:
        return NotImplemented if not isinstance(other, str) else joined(self, other)

    def __radd__(self, other: Any) -> str:
        return joined(other, self)

    def _fixed(self, *_: Any, **__: Any) -> Any:
        raise fail("a text with run-time numbers in it can only be printed, or added to another one", here(3))


_REFUSED = "mod rmod mul rmul getitem len iter contains eq ne lt le gt ge hash int float complex index bytes".split()
for _name in (*(name for name in dir(str) if not name.startswith("_")), *(f"__{name}__" for name in _REFUSED)):
    setattr(Text, _name, Text._fixed)


def watched(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, bool]:
    """What ``function`` gives, and whether it asked a number of the program for its text, however deep in an object."""
    before = SHOWN_UNKNOWN.count
    return function(*args, **options), SHOWN_UNKNOWN.count != before


def joined(*parts: str | Field) -> str:
    """Texts and fields as one text; a plain one where nothing in it is run-time."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, Text) else (part,)))
    made = Text("".join([str(p) if isinstance(p, str) else p.shown for p in flat]))
    made.parts = flat
    return made if any(isinstance(part, Field) for part in flat) else str(made)


def text(*parts: Any) -> str:
    """What an f-string gives: of its texts, and of a value, conversion (``!r``) and format for each of its fields."""
    return joined(*[part if isinstance(part, str) else _field(*part) for part in parts])


_CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("r"): repr, ord("s"): str, ord("a"): ascii}


def _field(value: Any, conversion: int, spec: str) -> str | Field:
    if isinstance(value, Text):
        return value
    shown, unknown = watched(
        lambda: format(_CONVERSIONS[conversion](value) if conversion in _CONVERSIONS else value, spec)
    )
    shown = "?" if isinstance(value, Numeric) and "?" in shown else shown
    return Field(value, spec, shown) if unknown or ("?" in shown and not isinstance(value, str)) else shown


def formatted(template: str, *args: Any, **named: Any) -> str:
    """``template.format(*args, **named)``, as the f-string with the same fields."""
    made, number = string.Formatter(), 0
    parts: list[Any] = []
    for plain, field, spec, conversion in made.parse(template):
        parts.append(plain)
        if field is None:
            continue
        if "{" in (spec or ""):
            raise fail("a format inside of a format, beside run-time numbers: write an f-string")
        if not re.match(r"[^.\[]", field):
            field, number = f"{number}{field}", number + 1
        value, _ = made.get_field(field, args, named)
        parts.append((value, ord(conversion) if conversion else -1, spec or ""))
    return text(*parts)


_PERCENT = re.compile(
    r"%(?:\((?P<name>[^)]*)\))?(?P<flags>[-+ 0#]*)(?P<width>\d*)(?P<precision>\.\d+)?(?P<kind>.)", re.S
)


def modulo(template: str, values: Any) -> str:
    """``template % values``, as the f-string with the same fields."""
    rest = iter(values if isinstance(values, tuple) else (values,))
    parts: list[Any] = []
    end = 0
    for match in _PERCENT.finditer(template):
        parts.append(template[end : match.start()])
        end = match.end()
        if match["kind"] == "%":
            parts.append("%")
            continue
        value = values[match["name"]] if match["name"] is not None else next(rest, Undefined)
        if value is Undefined:
            raise TypeError("not enough arguments for format string")
        one, unknown = ("", True) if holds_dynamic(value) else watched(_plain, match, value)
        parts.append(text((value, -1, _spec(match))) if unknown else one)
    if not isinstance(values, dict) and next(rest, Undefined) is not Undefined:
        raise TypeError("not all arguments converted during string formatting")
    return text(*parts, template[end:])


def _plain(match: re.Match[str], value: Any) -> str:
    name = f"({match['name']})" if match["name"] is not None else ""
    return str(match[0].replace(name, "", 1) % (value,))


def _spec(match: re.Match[str]) -> str:
    """The format of an f-string for that of a ``%``."""
    flags, kind = match["flags"], match["kind"]
    if kind not in "srdiufFeEgGxXo" or "#" in flags or (kind in "sr" and match["precision"]):
        raise fail(f"{match[0]!r} of a run-time number: write an f-string, f'{{n}}'")
    sign = next((sign for sign in "+ " if sign in flags), "")
    align = "<" if "-" in flags and match["width"] else ">" if match["width"] and "0" not in flags else ""
    zero = "0" if "0" in flags and not align else ""
    kind = "" if kind in "sr" else "d" if kind in "iu" else kind
    return f"{align}{sign}{zero}{match['width']}{match['precision'] or ''}{kind}"


def holds_dynamic(value: Any) -> bool:
    """Whether ``value`` is a run-time number, or a tuple or list with one."""
    return is_dynamic(value) or isinstance(value, (tuple, list)) and any(map(holds_dynamic, value))
