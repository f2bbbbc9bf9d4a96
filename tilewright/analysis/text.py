"""Reports as small tables: plain text for ``print``, a rich table for a console."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

Row = tuple[str, str]


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


def many(count: int, what: str) -> str:
    """
    >>> many(1, "block"), many(2, "block")
    ('1 block', '2 blocks')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
