"""What a tab consists of, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tilewright.errors import ArgumentError, ParseError, TilewrightError
from tilewright.explorer.expression import evaluate
from tilewright.layout import ComposedLayout, Layout
from tilewright.viz import Picture

LARGEST_SVG = 2_000_000  # bytes: a larger one makes the page slow


@dataclass(frozen=True)
class Field:
    """An entry of a tab's form. ``choices`` make it a menu, or suggestions where it is ``open``; ``rows`` of text make
    it an editor. It is shown where the entry ``where[0]`` holds one of ``where[1]``."""

    name: str
    label: str
    default: str
    choices: tuple[str, ...] = ()
    open: bool = False
    rows: int = 1
    where: tuple[str, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class SourceLine:
    """A line of a program; lines with the same number of a Python line belong together (0: no such line)."""

    text: str
    line: int


@dataclass
class Answer:
    """Pictures with titles, texts with titles, programs side by side, and Python that gives the same."""

    pictures: list[tuple[str, Picture]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    sources: list[tuple[str, list[SourceLine]]] = field(default_factory=list)
    python: str = ""

    def as_json(self) -> dict[str, Any]:
        """Only dicts, lists, strings and numbers."""
        return {
            "pictures": [{"title": title, "svg": _svg(picture)} for title, picture in self.pictures],
            "texts": [{"title": title, "text": text} for title, text in self.texts],
            "sources": [
                {"title": title, "lines": [[line.text, line.line] for line in lines]} for title, lines in self.sources
            ],
            "python": self.python,
        }


@lru_cache(maxsize=16)  # an edit changes some of a tab's pictures
def _svg(picture: Picture) -> str:
    svg = picture.svg()
    return svg if len(svg) <= LARGEST_SVG else picture.shortened(LARGEST_SVG).svg()


@dataclass(frozen=True)
class Tab:
    """A tab: what ``act`` makes of the texts in its fields."""

    name: str
    title: str
    about: str
    fields: tuple[Field, ...]
    act: Callable[[Form], Answer]
    live: bool = True
    """Whether each edit is answered at once; if not, there is a button, and a link alone runs nothing."""
    samples: tuple[tuple[str, dict[str, str]], ...] = ()
    """Names and what the fields hold."""


class FieldError(TilewrightError):
    """A mistake in the text of one field, at ``position`` (-1: in all of it)."""

    def __init__(self, name: str, message: str, position: int = -1) -> None:
        super().__init__(message)
        self.name, self.position = name, position


class Form(Mapping[str, str]):
    """The texts in a tab's fields, and what they mean. What is wrong is a FieldError with the field's name."""

    def __init__(self, tab: Tab, texts: Mapping[str, str]) -> None:
        self._texts = {entry.name: str(texts.get(entry.name, entry.default)) for entry in tab.fields}
        for entry in tab.fields:
            if entry.choices and not entry.open and self[entry.name] not in entry.choices:
                raise FieldError(entry.name, f"{entry.label}: one of {', '.join(entry.choices)}")

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Errors of the library in here are mistakes in the field ``name``."""
        try:
            yield
        except ParseError as error:
            raise FieldError(name, str(error), error.position) from error
        except FieldError:
            raise
        except TilewrightError as error:
            raise FieldError(name, str(error)) from error

    def number(self, name: str, least: int = 1, most: int = 1 << 20) -> int:
        """The whole number in a field, from ``least`` to ``most``."""
        try:
            value = int(self[name])
        except ValueError:
            raise FieldError(name, f"{self[name]!r} is not a whole number") from None
        if not least <= value <= most:
            raise FieldError(name, f"{value}: it is {least} to {most}")
        return value

    def expression(self, name: str) -> Any:
        """The value of the expression in a field."""
        with self.at(name):
            return evaluate(self[name])

    def layout(self, name: str, *kinds: type) -> Any:
        """The static layout that the expression in a field gives."""
        value: Any = self.expression(name)
        fits = isinstance(value, kinds or (Layout, ComposedLayout))
        if not fits or not value.is_static():
            raise FieldError(name, f"{value} is not a static layout, such as (8,64):(64,1)")
        return value

    def pair(self, name: str) -> tuple[int, int]:
        """Two whole numbers, such as (64,32); they may be negative."""
        parts = self[name].strip().removeprefix("(").removesuffix(")").split(",")
        try:
            first, second = map(int, parts)
        except ValueError:
            raise FieldError(name, f"{self[name]!r} is not a pair of whole numbers, such as (64,32)") from None
        return first, second


def answer(tab: Tab, texts: Mapping[str, str]) -> dict[str, Any]:
    """What ``tab`` makes of its fields, as JSON; a mistake of the user is ``{"error": {message, field, position}}``."""
    try:
        return tab.act(Form(tab, texts)).as_json()
    except FieldError as error:
        return {"error": {"message": str(error), "field": error.name, "position": error.position}}
    except (TilewrightError, ArgumentError) as error:
        return {"error": {"message": str(error), "field": "", "position": -1}}
    except (MemoryError, RecursionError) as error:
        message = f"this is too large for the browser ({type(error).__name__})"
        return {"error": {"message": message, "field": "", "position": -1}}


def tex(tab: Tab, texts: Mapping[str, str], number: int) -> str:
    """A picture of the answer as LaTeX."""
    return tab.act(Form(tab, texts)).pictures[number][1].tex()
