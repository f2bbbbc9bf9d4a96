"""How results are shown: ``print`` gives aligned lines, a terminal that knows rich a table, a notebook HTML.

Nothing here depends on what is reported. :class:`Report` is for results that are rows of (what, value), :class:`Shown`
for those whose ``str()`` is to be seen as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

Row = tuple[str, str]
MOST_CHARACTERS = 200_000
"""Longest text in a notebook; a longer one would make the file slow to open."""
PRE = 'style="line-height:1.3;overflow:auto;max-height:60em;white-space:pre"'
CELL = 'style="text-align:left;vertical-align:top;white-space:pre-wrap"'


class Shown:
    """Something that a notebook shows as ``print`` does."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return preformatted(str(self))


class Report:
    """Rows of (what, value) below a heading."""

    __slots__ = ()

    def heading(self) -> str:
        """The line above the rows."""
        raise NotImplementedError

    def rows(self) -> list[Row]:
        """The reported items, in order."""
        raise NotImplementedError

    def __str__(self) -> str:
        return plain(self.heading(), self.rows())

    def __rich__(self) -> Any:
        return table(self.heading(), self.rows())

    def _repr_html_(self) -> str:
        return html(self.heading(), self.rows())


def plain(title: str, rows: Sequence[Row]) -> str:
    """The title and one aligned line for each row.

    >>> print(plain("copy", [("threads", "128"), ("registers", "8")]))
    copy
      threads    128
      registers  8
    """
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join([title, *(f"  {name:<{width}}  {value}".rstrip() for name, value in rows)])


def table(title: str, rows: Sequence[Row]) -> Table:
    """The same as a rich table."""
    from rich.table import Table
    from rich.text import Text

    made = Table("what", "value", title=title, title_justify="left")
    for name, value in rows:
        made.add_row(Text(name), Text(value))  # not markup: layouts and messages may have brackets
    return made


def html(title: str, rows: Iterable[Row]) -> str:
    """The same as an HTML table.

    >>> html("copy", [("threads", "< 128")]).count("&lt; 128")
    1
    """
    from html import escape

    lines = "".join(f"<tr><th {CELL}>{escape(name)}</th><td {CELL}>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table><caption {CELL}><b>{escape(title)}</b></caption>{lines}</table>"


def preformatted(text: str) -> str:
    """Text as it is; of one that is very long the beginning, with a line that says so.

    >>> preformatted("a < b").endswith("a &lt; b</pre>")
    True
    """
    from html import escape

    rest = len(text) - MOST_CHARACTERS
    shown = text[:MOST_CHARACTERS] + (f"\n... and {rest:,} characters more: print() shows all" if rest > 0 else "")
    return f"<pre {PRE}>{escape(shown)}</pre>"


def folded(parts: Iterable[tuple[str, str]]) -> str:
    """Texts under their names, each of which opens when it is clicked."""
    from html import escape

    return "".join(
        f"<details><summary>{escape(name)}</summary>{preformatted(text)}</details>" for name, text in parts if text
    )
