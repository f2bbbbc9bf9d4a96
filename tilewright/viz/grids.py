"""What the drawings have in common: extents of modes, heavy lines between inner tiles, owners of tile elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, is_static, product
from tilewright.viz.colour import BLANK, thread_colour
from tilewright.viz.figure import Cell, Panel, cut

AnyLayout = Layout | ComposedLayout


def require_static(layout: Any) -> AnyLayout:
    """``layout`` itself, if it is one and all of it is known now; else an error."""
    if not isinstance(layout, Layout | ComposedLayout):
        raise ArgumentError(f"cannot draw {layout!r}: it is not a layout")
    if not layout.is_static():
        raise ArgumentError(f"cannot draw {layout}: it has run-time integers; draw it with numbers in their place")
    return layout


def without_swizzle(layout: ComposedLayout) -> AnyLayout:
    """What a composed layout would be without its inner function.

    >>> without_swizzle(ComposedLayout(int, 0, Layout((2, 2))))
    (2,2):(1,2)
    """
    if isinstance(layout.offset, int) and layout.offset == 0:
        return layout.outer  # type: ignore[no-any-return]
    return ComposedLayout(_unchanged, layout.offset, layout.outer)


def extents_of_tile(tile: Any) -> tuple[int, ...]:
    """The extent of each mode of a tile given as a shape, or as a tiler whose modes are ints, shapes or layouts."""
    modes = tile if isinstance(tile, tuple) else (tile,)
    shapes = [mode.shape if isinstance(mode, Layout) else mode for mode in modes]
    if not all(is_static(shape) and shape is not None for shape in shapes):
        raise ArgumentError(f"cannot draw the tile {tile}: its extents must be known")
    return tuple(int(product(shape)) for shape in shapes)


def breaks(mode_shape: Any, shown: int) -> tuple[int, ...]:
    """Where the innermost tile of a nested mode ends, within the rows or columns shown.

    >>> breaks((2, (2, 2)), 8), breaks(8, 8)
    ((2, 4, 6), ())
    """
    if not isinstance(mode_shape, tuple) or len(mode_shape) == 1:
        return breaks(mode_shape[0], shown) if isinstance(mode_shape, tuple) else ()
    step = int(product(mode_shape[0]))
    return tuple(range(step, shown, step)) if step > 1 else ()


@dataclass
class Owners:
    """Which (thread, value) pairs hold each element of an ``extents`` tile, of ``threads`` threads."""

    extents: tuple[int, int]
    threads: int
    at: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, tv_layout: AnyLayout, extents: tuple[int, int]) -> Owners:
        """Evaluate a thread-value layout, which maps (thread, value) to an index into, or a coordinate of, the tile.

        Raises:
            ArgumentError: the layout is not of rank 2, or it points outside the tile.
        """
        require_static(tv_layout)
        if len(tv_layout) != 2:
            raise ArgumentError(
                f"cannot draw {tv_layout} as a thread-value layout: it must have the modes (thread, value)"
            )
        owners = cls(extents, int(product(tv_layout.shape[0])))
        rows, columns = extents
        for thread, value in _pairs(tv_layout):
            place = _place(tv_layout((thread, value)), rows)
            if not (0 <= place[0] < rows and 0 <= place[1] < columns):
                raise ArgumentError(
                    f"the thread-value layout {tv_layout} puts thread {thread}, value {value} at {place}, "
                    f"outside the {rows} x {columns} tile"
                )
            owners.at.setdefault(place, []).append((thread, value))
        return owners

    def transposed(self) -> Owners:
        """The same owners with rows and columns exchanged."""
        return Owners(
            (self.extents[1], self.extents[0]), self.threads, {(j, i): who for (i, j), who in self.at.items()}
        )

    def repeated(self, extents: tuple[int, int]) -> Owners:
        """The tile laid over a larger one again and again."""
        rows, columns = self.extents
        places = ((i, j) for i in range(extents[0]) for j in range(extents[1]))
        at = {(i, j): self.at[i % rows, j % columns] for i, j in places if (i % rows, j % columns) in self.at}
        return Owners(extents, self.threads, at)

    def only(self, thread: int | None) -> Owners:
        """The elements of one thread; all for None."""
        if thread is None:
            return self
        if not 0 <= thread < self.threads:
            raise ArgumentError(f"cannot draw thread {thread}: there are {self.threads}")
        own = {place: [pair for pair in who if pair[0] == thread] for place, who in self.at.items()}
        return Owners(self.extents, self.threads, {place: who for place, who in own.items() if who})

    def panel(self, title: str, at: tuple[int, int] = (0, 0)) -> tuple[Panel, tuple[str, ...]]:
        """Thread and value in each element, coloured by thread, and the note if not all of it is drawn."""
        rows, columns, notes = cut(*self.extents)
        if self._common:
            title = ", ".join(filter(None, (title, "every thread's")))
        several = not self._common and any(len(who) > 1 for who in self.at.values())
        if several:
            notes = (*notes, "+n: n more threads or values stand for the same element")
        cells = tuple(self._cell(i, j, several) for i in range(rows) for j in range(columns))
        return Panel(title, rows, columns, cells, at), notes

    @cached_property
    def _common(self) -> bool:
        """Whether all threads hold all elements alike: an operand that an instruction reads from shared memory."""
        return self.threads > 1 and all(
            len(who) == self.threads and len({value for _, value in who}) == 1 for who in self.at.values()
        )

    def _cell(self, row: int, column: int, several: bool) -> Cell:
        who = self.at.get((row, column))
        if who is None:
            return Cell(row, column, (), BLANK, f"({row},{column}): in no thread")
        thread, value = who[0]
        if self._common:
            return Cell(row, column, (f"V{value}",), BLANK, f"({row},{column}): V{value} of every thread")
        lines = (f"T{thread}", f"V{value}") + ((f"+{len(who) - 1}" if len(who) > 1 else "",) if several else ())
        remark = f"({row},{column}): " + ", ".join(f"T{t} V{v}" for t, v in who)
        return Cell(row, column, lines, thread_colour(thread), remark)


def thread_legend(threads: int, only: int | None = None) -> tuple[tuple[str, str], ...]:
    """A swatch for each thread (or for the only one), or for each residue modulo 32 where there are more."""
    if only is not None:
        return ((thread_colour(only), f"T{only}"),)
    if threads <= 32:
        return tuple((thread_colour(thread), f"T{thread}") for thread in range(threads))
    return tuple((thread_colour(thread), f"T{thread}+32i") for thread in range(32))


def _unchanged(offset: Any) -> Any:
    return offset


def _pairs(tv_layout: AnyLayout) -> Iterator[tuple[int, int]]:
    shape = tv_layout.shape
    threads, values = int(product(shape[0])), int(product(shape[1]))
    return ((thread, value) for thread in range(threads) for value in range(values))


def _place(where: Any, rows: int) -> tuple[int, int]:
    if isinstance(where, tuple):
        return int(where[0]), int(where[1])
    return int(where) % rows, int(where) // rows
