"""The owners of the elements of a tile: (thread, value) pairs by place, and the panel that shows them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.ir.target import WARPGROUP
from tilewright.layout import product
from tilewright.viz.colour import BLANK, LANES
from tilewright.viz.colouring import ThreadColours, thread_list
from tilewright.viz.grids import AnyLayout, require_static
from tilewright.viz.panels import Border, Cell, Panel
from tilewright.viz.windows import cut

Pairs = list[tuple[int, int]]  # of thread and value
Where = tuple[int, int]
SEVERAL = (
    "+n: n more threads or values hold the same element, which has the colour of the first; "
    "the pointer over it names all"
)


@dataclass
class ElementOwners:
    """Which (thread, value) pairs hold each element of an ``extents`` tile, of ``threads`` threads.

    ``atom`` is how many threads and values one atom has, where the tile is made of several; ``period`` the tile that
    is repeated over the extents.
    """

    extents: Where
    threads: int
    values: int
    at: dict[Where, Pairs] = field(default_factory=dict)
    atom: Where | None = None
    period: Where | None = None

    @classmethod
    def of(cls, tv_layout: AnyLayout, extents: Where, atom: AnyLayout | None = None) -> ElementOwners:
        """Evaluate a thread-value layout, which maps (thread, value) to an index into, or a coordinate of, the tile.

        A tensor of coordinates, as ``tidfrg_S`` of an identity tensor gives, will do.

        Args:
            atom: the thread-value layout of one atom of it.

        Raises:
            ArgumentError: the layout is not of rank 2, or it points outside the tile.
        """
        tv_layout = require_static(_of_coordinates(tv_layout))
        if len(tv_layout) != 2:
            raise ArgumentError(
                f"cannot draw {tv_layout} as a thread-value layout: it must have the modes (thread, value)"
            )
        threads, values = (int(product(mode)) for mode in tv_layout.shape)
        if threads * values > MOST_PAIRS:
            raise ArgumentError(f"cannot draw {tv_layout}: {threads} x {values} threads and values are too many")
        of_atom = None if atom is None else (int(product(atom.shape[0])), int(product(atom.shape[1])))
        owners = cls(extents, threads, values, atom=of_atom)
        rows, columns = extents
        for thread, value in ((t, v) for t in range(threads) for v in range(values)):
            place = _place(tv_layout((thread, value)), rows)
            if not (0 <= place[0] < rows and 0 <= place[1] < columns):
                raise ArgumentError(
                    f"the thread-value layout {tv_layout} puts thread {thread}, value {value} at {place}, "
                    f"outside the {rows} x {columns} tile"
                )
            owners.at.setdefault(place, []).append((thread, value))
        return owners

    def transposed(self) -> ElementOwners:
        """The same owners with rows and columns exchanged."""
        swapped = {(j, i): who for (i, j), who in self.at.items()}
        period = None if self.period is None else self.period[::-1]
        return replace(self, extents=self.extents[::-1], at=swapped, period=period)

    def repeated(self, extents: Where) -> ElementOwners:
        """The tile laid over a larger one again and again, where that is drawn."""
        if extents == self.extents:
            return self
        rows, columns = self.extents
        down, across = cut(*extents)
        places = ((i, j) for i in down for j in across)
        at = {(i, j): self.at[i % rows, j % columns] for i, j in places if (i % rows, j % columns) in self.at}
        return replace(self, extents=extents, at=at, period=self.extents)

    def only(self, thread: int | None) -> ElementOwners:
        """The elements of one thread; all for None."""
        if thread is None:
            return self
        if not hasattr(thread, "__index__") or not 0 <= thread < self.threads:
            raise ArgumentError(f"cannot draw thread {thread!r}: there are {self.threads}")
        own = {place: [pair for pair in who if pair[0] == thread] for place, who in self.at.items()}
        return replace(self, at={place: who for place, who in own.items() if who})

    def panel(self, title: str, colours: ThreadColours, at: Where = (0, 0)) -> tuple[Panel, tuple[str, ...]]:
        """Thread and value in each element, its colour, the borders of warps and atoms; and what must be said."""
        rows, columns = cut(*self.extents)
        notes: list[str] = []
        if self._common:
            readers = "every thread" if self._readers == 1 else "every thread of its group"
            title = ", ".join(filter(None, (title, f"read by {readers}")))
        if self._common and self._readers > 1:
            groups = sorted({thread_list([(t, 0) for t, _ in who]).removesuffix(" V0") for who in self.at.values()})
            notes.append(f"groups of threads that read alike: {'; '.join(groups)}; the hue is that of the first warp")
        several = not self._common and any(len(who) > 1 for who in self.at.values())
        if several:
            notes.append(SEVERAL)
        cells = tuple(self._cell(i, j, several, colours) for i in rows for j in columns)
        borders = self._borders()
        notes += [f"{LINES_OF[border.kind]}: border between {border.kind}s" for border in borders]
        period = self.period or self.extents
        breaks = (tuple(range(step, extent, step)) for step, extent in zip(period, self.extents, strict=True))
        row_breaks, column_breaks = breaks
        if row_breaks or column_breaks:
            notes.append("dark line: the tile is repeated")
        return Panel(
            title,
            self.extents[0],
            self.extents[1],
            cells,
            at,
            row_breaks,
            column_breaks,
            borders,
            row_window=rows,
            column_window=columns,
        ), tuple(notes)

    @cached_property
    def _common(self) -> bool:
        """Whether the elements are an operand that an instruction reads from shared memory: all threads, or all of a
        warpgroup, hold each of its elements as the same value."""
        sizes = {len(who) for who in self.at.values()}
        return (
            self.threads > 1
            and len(sizes) == 1
            and max(sizes) in (self.threads, WARPGROUP)
            and all(len({value for _, value in who}) == 1 for who in self.at.values())
        )

    @property
    def is_shared(self) -> bool:
        """Whether the elements are an operand in shared memory that every thread reads."""
        return self._common and self._readers == 1

    @cached_property
    def _readers(self) -> int:
        """How many groups of threads there are that hold the same elements."""
        return len({frozenset(thread for thread, _ in who) for who in self.at.values()})

    def _cell(self, row: int, column: int, several: bool, colours: ThreadColours) -> Cell:
        who = self.at.get((row, column))
        if who is None:
            return Cell(row, column, (), BLANK, f"({row},{column}): in no thread")
        thread, value = who[0]
        remark = f"({row},{column}): {thread_list(who)}"
        if self._common:
            own = colours.color_by == "value" or self._readers > 1
            fill = colours.of(thread, value) if own else BLANK
            return Cell(row, column, (f"V{value}",), fill, remark)
        lines = (f"T{thread}", f"V{value}") + ((f"+{len(who) - 1}" if len(who) > 1 else "",) if several else ())
        return Cell(row, column, lines, colours.of(thread, value), remark)

    def _warp(self, thread: int, value: int) -> Hashable:
        return thread // LANES

    def _atom(self, thread: int, value: int) -> Hashable:
        assert self.atom is not None
        return thread // self.atom[0], value // self.atom[1]

    def _borders(self) -> tuple[Border, ...]:
        """The borders of warps, and those of atoms within them."""
        warp, atom = self._border("warp", self._warp), self._border("atom", self._atom)
        if warp is not None and atom is not None:
            atom = Border("atom", atom.right - warp.right, atom.below - warp.below)
        return tuple(border for border in (atom, warp) if border is not None and (border.right or border.below))

    def _border(self, kind: str, key: Callable[[int, int], Hashable]) -> Border | None:
        """Where neighbours belong to different warps or atoms: none where there is one, or where each cell is one."""
        if kind == "atom" and (self._common or self.atom is None):
            return None
        keys = {place: frozenset(key(*pair) for pair in who) for place, who in self.at.items()}
        groups = len(set(keys.values()))
        if groups < 2 or 2 * groups > len(keys):
            return None
        right = {(i, j) for (i, j), own in keys.items() if keys.get((i, j + 1), own) != own}
        below = {(i, j) for (i, j), own in keys.items() if keys.get((i + 1, j), own) != own}
        return Border(kind, frozenset(right), frozenset(below))


def _of_coordinates(tensor: Any) -> Any:
    """The layout of a tensor of coordinates that begins at the origin; anything else as it is."""
    layout, origin = getattr(tensor, "layout", None), getattr(tensor, "iterator", None)
    return layout if isinstance(origin, tuple) and not any(origin) else tensor


MOST_PAIRS = 1 << 23  # (thread, value) pairs; more would take over a minute
LINES_OF = {"atom": "grey line", "warp": "black line"}


def _place(where: Any, rows: int) -> Where:
    if isinstance(where, tuple):
        return int(where[0]), int(where[1])
    return int(where) % rows, int(where) // rows
