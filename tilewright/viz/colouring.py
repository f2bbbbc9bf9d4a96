"""What colours stand for: ``color_by=`` of layouts, tensors and thread-value maps, with the sentences that say so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.viz.colour import DISTINCT, GROUP, HUES, LANES, distinct, thread_colour
from tilewright.viz.panels import Legend

ColorBy = str | Callable[..., int]
BANKS, BANK_BITS = 32, 32
OF_ELEMENTS = ("offset", "index", "row", "column", "bank")
OF_THREADS = ("thread", "warp", "lane", "value")


@dataclass(frozen=True)
class ElementDescription:
    """The properties of an element of a layout."""

    row: int
    column: int
    index: int
    offset: int


@dataclass(frozen=True)
class ElementColours:
    """The colour of an element, and what it stands for."""

    of: Callable[[ElementDescription], str]
    meaning: str


def element_colours(color_by: ColorBy, element_bits: int | None = None) -> ElementColours:
    """The colours of a layout's elements.

    Args:
        color_by: one of "offset" (modulo 8), "index" (modulo 8), "row", "column", "bank" (of shared memory: 32 of four
            bytes), or a function of the offset that gives a number.
        element_bits: the width of an element, for "bank".

    Raises:
        ArgumentError: something else, or banks without the width of an element.
    """
    few = len(HUES)
    if callable(color_by):
        name = getattr(color_by, "__name__", "color_by").strip("<>")
        return ElementColours(
            lambda at: distinct(_whole(color_by(at.offset), name)), f"colour: {name}, modulo {DISTINCT}"
        )
    if color_by == "bank":
        if not element_bits:
            raise ArgumentError("color_by='bank' needs element_bits, the width of an element")
        bits = element_bits
        return ElementColours(
            lambda at: distinct(at.offset * bits // BANK_BITS % BANKS),
            f"colour: bank of the first byte, of {BANKS} banks; elements of {bits} bits",
        )
    if color_by in OF_ELEMENTS:
        return ElementColours(lambda at: distinct(getattr(at, color_by) % few), f"colour: {color_by} modulo {few}")
    raise ArgumentError(f"color_by is one of {', '.join(OF_ELEMENTS)}, or a function of the offset; not {color_by!r}")


@dataclass(frozen=True)
class ThreadColours:
    """The colour of an element of a tile by its thread and value: of ``threads`` threads, ``values`` values each."""

    color_by: ColorBy
    threads: int
    values: int

    def __post_init__(self) -> None:
        if not callable(self.color_by) and self.color_by not in OF_THREADS:
            names = ", ".join(OF_THREADS)
            raise ArgumentError(f"color_by is one of {names}, or a function of thread and value; not {self.color_by!r}")

    def of(self, thread: int, value: int) -> str:
        """The colour of what ``thread`` holds as its ``value``."""
        if callable(self.color_by):
            return distinct(_whole(self.color_by(thread, value), "color_by"))
        if self.color_by == "warp":
            return distinct(thread // LANES)
        if self.color_by == "lane":
            return thread_colour(thread % LANES)
        if self.color_by == "value":
            return distinct(value)
        return thread_colour(thread, self.threads)

    def legend(self, only: int | None = None) -> Legend:
        """Swatches with what they stand for, of all threads or of one."""
        if callable(self.color_by):
            return ()
        if self.color_by == "value":
            return numbers("V", self.values)
        if only is not None:
            return ((self.of(only, 0), f"T{only}"),)
        if self.color_by == "warp":
            return numbers("warp ", -(-self.threads // LANES))
        if self.color_by == "thread" and self.threads > LANES:
            return self._warps()
        lanes = min(self.threads, LANES)
        name = "T" if self.threads <= LANES else "lane "
        return tuple(
            (
                tuple(thread_colour(t) for t in range(first, min(first + GROUP, lanes))),
                _range(name, first, min(first + GROUP, lanes) - 1),
            )
            for first in range(0, lanes, GROUP)
        )

    def sentence(self) -> str:
        """The note that says what colours stand for."""
        if callable(self.color_by):
            return f"colour: {getattr(self.color_by, '__name__', 'color_by').strip('<>')}, modulo {DISTINCT}"
        if self.color_by == "thread" and self.threads > LANES:
            return "colour: hue by warp, shade by lane"
        return {"thread": "", "warp": "", "lane": "", "value": ""}[str(self.color_by)]

    def _warps(self) -> Legend:
        """A strip of 32 shades for each hue, with the warps that have it."""
        count = -(-self.threads // LANES)
        legend: list[tuple[tuple[str, ...], str]] = []
        for hue in range(min(count, len(HUES))):
            own = list(range(hue, count, len(HUES)))
            lanes = range(hue * LANES, min((hue + 1) * LANES, self.threads))
            threads = f" (T{lanes[0]} to T{lanes[-1]})" if len(own) == 1 else ""
            name = f"warp {own[0]}" if len(own) == 1 else f"warps {', '.join(map(str, own))}"
            legend.append((tuple(thread_colour(t, self.threads) for t in lanes), name + threads))
        return tuple(legend)


def numbers(name: str, count: int) -> Legend:
    """A swatch for each of ``count`` numbers; those that share a colour share a swatch.

    >>> [meaning for _, meaning in numbers("V", 34)][:3]
    ['V0, V32', 'V1, V33', 'V2']
    """
    period = DISTINCT
    legend: list[tuple[str, str]] = []
    for first in range(min(count, period)):
        own = range(first, count, period)
        some = [f"{name}{number}" for number in own]
        text = ", ".join(some) if len(some) <= 3 else f"{some[0]}, {some[1]} to {some[-1]} in steps of {period}"
        legend.append((distinct(first), text))
    return tuple(legend)


def thread_list(owners: Iterable[tuple[int, int]]) -> str:
    """All (thread, value) pairs of an element, three and more neighbouring threads with one value as a range.

    >>> thread_list([(0, 0), (64, 0)]), thread_list([(0, 3), (1, 3), (2, 3), (7, 1)])
    ('T0 V0, T64 V0', 'T0 to T2 V3, T7 V1')
    """
    runs: list[list[int]] = []  # first thread, last thread, value
    for thread, value in sorted(owners, key=lambda pair: (pair[1], pair[0])):
        if runs and runs[-1][2] == value and runs[-1][1] == thread - 1:
            runs[-1][1] = thread
        else:
            runs.append([thread, thread, value])
    words = []
    for first, last, value in sorted(runs):
        ends = [(first, first), (last, last)] if last == first + 1 else [(first, last)]
        words += [f"{_range('T', *pair)} V{value}" for pair in ends]
    return ", ".join(words)


def _range(name: str, first: int, last: int) -> str:
    if first == last:
        return f"{name}{first}"
    second = f"{name}{last}" if name == "T" else str(last)
    return f"{name}{first} to {second}"


def _whole(number: Any, name: str) -> int:
    try:
        return int(number)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must give whole numbers, one for each colour; it gave {number!r}") from error
