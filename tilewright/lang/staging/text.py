"""f-strings of staged functions: texts that remember the run-time values in them; ``printf`` prints the numbers.

Python formats such a value while staging, when its number is not known; ``print`` shows a question mark for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.staging.location import fail, here


class Field(NamedTuple):
    """A value in a text, its format, and what Python prints for it while staging (``?``, ``(?,4):(4,1)``)."""

    value: Any
    spec: str
    shown: str


class Text(str):
    """A text with run-time values: ``parts`` are texts and :class:`Field`."""

    parts: tuple[str | Field, ...]

    __hash__ = object.__hash__  # two of them differ where their numbers do, which is not known

    def __add__(self, other: Any) -> str:
        return NotImplemented if not isinstance(other, str) else joined(self, other)

    def __radd__(self, other: Any) -> str:
        return joined(other, self)

    def _fixed(self, *_: Any, **__: Any) -> Any:
        raise fail("a text with run-time numbers in it can only be printed, or added to another one", here(3))


_REFUSED = "mod rmod mul rmul getitem len iter contains eq ne lt le gt ge".split()
for _name in (*(name for name in dir(str) if not name.startswith("_")), *(f"__{name}__" for name in _REFUSED)):
    setattr(Text, _name, Text._fixed)


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
    shown = format(_CONVERSIONS[conversion](value) if conversion in _CONVERSIONS else value, spec)
    shown = "?" if isinstance(value, Numeric) and "?" in shown else shown
    return Field(value, spec, shown) if "?" in shown and not isinstance(value, str) else shown
