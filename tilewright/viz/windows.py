"""Which rows and columns of a large grid are drawn: the first and the last, so that its corners are seen."""

from __future__ import annotations

import math

LONGEST_SIDE = 256
MOST_CELLS = 32768  # of a panel in a file
MOST_BYTES = 1_000_000  # of a picture inside a notebook

Window = tuple[int, ...]  # the rows or columns that are drawn, ascending


def cut(rows: int, columns: int, most: int = MOST_CELLS) -> tuple[Window, Window]:
    """The rows and columns that are drawn, ``most`` cells at the most.

    >>> cut(4, 3), [len(window) for window in cut(1024, 1024)]
    (((0, 1, 2, 3), (0, 1, 2)), [181, 181])
    >>> cut(1, 1000, 6)
    ((0,), (0, 1, 2, 997, 998, 999))
    """
    down, across = _sides(rows, columns, most)
    return ends(range(rows), down), ends(range(columns), across)


def narrower(rows: Window, columns: Window, most: int) -> tuple[Window, Window]:
    """Fewer of rows and columns that are drawn already."""
    down, across = _sides(len(rows), len(columns), most)
    return ends(rows, down), ends(columns, across)


def ends(indices: range | Window, count: int) -> Window:
    """``count`` of the indices: as many from the beginning as from the end."""
    if len(indices) <= count:
        return tuple(indices)
    last = count // 2
    return (*indices[: count - last], *indices[len(indices) - last :])


def left_out(window: Window, extent: int, what: str) -> str:
    """The part that a window does not show, in words; empty where it shows all.

    >>> left_out((0, 1, 6, 7), 8, "rows"), left_out((0, 1), 2, "rows")
    ('rows 2 to 5 of 8', '')
    """
    gaps = [(a + 1, b - 1) for a, b in zip((-1, *window), (*window, extent), strict=True) if b > a + 1]
    return f"{what} {', '.join(f'{a} to {b}' for a, b in gaps)} of {extent}" if gaps else ""


def positions(window: Window) -> dict[int, float]:
    """Where each row or column of a window is drawn, counted in cells: what is left out takes the width of one.

    >>> positions((0, 1, 8))
    {0: 0.0, 1: 1.0, 8: 3.0}
    """
    places: dict[int, float] = {}
    at, before = -1.0, -1
    for index in window:
        at += 1.0 if index == before + 1 else 2.0
        places[index], before = at, index
    return places


def _sides(rows: int, columns: int, most: int) -> tuple[int, int]:
    rows, columns = min(rows, LONGEST_SIDE), min(columns, LONGEST_SIDE)
    if rows * columns <= most:
        return rows, columns
    side = max(2, math.isqrt(most))
    if rows <= side:
        return rows, max(2, most // rows)
    if columns <= side:
        return max(2, most // columns), columns
    return side, side
