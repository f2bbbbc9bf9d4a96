"""Choosing a swizzle: by rule, or by search with a counted proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.analysis import AccessReport, accessed, conflicts_at
from tilewright.layout.composed import ComposedLayout
from tilewright.layout.modes import cosize
from tilewright.layout.swizzle import Swizzle

BANK_LINE = 128  # bytes that the 32 banks deliver together


def _log2(n: int, what: str) -> int:
    if n < 1 or n & (n - 1):
        raise LayoutError(f"design_swizzle: {what} = {n} is not a power of two")
    return n.bit_length() - 1


def design_swizzle(element_bytes: int, vector: int, row: int) -> Swizzle:
    """The swizzle for rows of ``row`` elements that are accessed in columns of vectors of ``vector`` elements.

    M keeps a vector together, ``M = log2(vector)``. S reaches from the chunk number within a row to the row number,
    ``S = log2(row) - M``. B covers the chunks of one 128-byte bank line, ``B = log2(128/element_bytes) - M``. When a
    row is shorter than a line, only the chunks of the row can be permuted and the row number starts at the line:
    B and S then take each other's formula.

    >>> design_swizzle(element_bytes=2, vector=8, row=64), design_swizzle(element_bytes=2, vector=8, row=32)
    (Sw<3,3,3>, Sw<2,3,3>)
    """
    if element_bytes < 1:
        raise LayoutError(f"design_swizzle: an element of {element_bytes} bytes")
    base = _log2(vector, "vector")
    in_row = _log2(row, "row") - base
    in_line = _log2(BANK_LINE // element_bytes, "elements in 128 bytes") - base
    if in_row < 0 or in_line < 0:
        raise LayoutError(f"design_swizzle: a vector of {vector} elements is longer than the row or than 128 bytes")
    return Swizzle(min(in_row, in_line), base, max(in_row, in_line))


@dataclass(frozen=True)
class SwizzleSolution:
    """A swizzle with the counts that prove it, and what the plain layout would have cost."""

    swizzle: Swizzle
    layout: Any
    reports: tuple[AccessReport, ...]
    plain: tuple[AccessReport, ...]
    tried: int

    def __str__(self) -> str:
        lines = [f"{self.layout} (the least of {self.tried} tried)"]
        for i, (with_, without) in enumerate(zip(self.reports, self.plain, strict=True)):
            lines.append(f"access {i}: {with_}; without the swizzle {without.cost} {without.unit}")
        spanned = cosize(self.layout)
        if self.swizzle.reach(spanned) > spanned:
            lines.append(f"allocate {self.swizzle.reach(spanned)} elements: the swizzle reaches past {spanned}")
        return "\n".join(lines)


def solve_swizzle(layout: Any, accesses: Sequence[tuple[Any, int]], element_bits: int) -> SwizzleSolution:
    """The least swizzle of ``layout`` under which none of the accesses has a bank conflict.

    ``accesses`` are pairs (thread-value pattern, vector length) as for bank_conflicts. Swizzles are tried in the order
    of B, then M, then S, every vector is kept contiguous, and the counts of all phases come with the answer. Raises
    LayoutError with the best swizzle found when none is free of conflicts.

    >>> from tilewright.layout import Layout
    >>> columns, rows = Layout((8, 8), (1, 8)), Layout((8, 8), (64, 1))
    >>> print(solve_swizzle(Layout((8, 64), (64, 1)), [(columns, 8)], element_bits=16).swizzle)
    Sw<3,3,3>
    """
    if not accesses:
        raise LayoutError(f"solve_swizzle({layout}): no access patterns are given")
    shortest_base = _log2(max(vector for _, vector in accesses), "vector")
    offset_bits = max(1, cosize(layout) - 1).bit_length()
    # A swizzle acts on offsets: those of the layout are computed once.
    unswizzled = [(accessed(layout, access, element_bits, vector), vector) for access, vector in accesses]
    plain = tuple(conflicts_at(offsets, layout, element_bits, vector) for offsets, vector in unswizzled)
    best: tuple[int, Swizzle] | None = None
    tried = 0
    for tried, swizzle in enumerate(_swizzles(shortest_base, offset_bits), 1):
        candidate = ComposedLayout(swizzle, 0, layout) if swizzle.bits else layout
        permuted = [([[swizzle(offset) for offset in row] for row in rows], vector) for rows, vector in unswizzled]
        reports = tuple(conflicts_at(rows, candidate, element_bits, vector) for rows, vector in permuted)
        conflicts = sum(report.conflicts for report in reports)
        if conflicts == 0:
            return SwizzleSolution(swizzle, candidate, reports, plain, tried)
        if best is None or conflicts < best[0]:
            best = conflicts, swizzle
    assert best is not None
    raise LayoutError(
        f"solve_swizzle({layout}): none of {tried} swizzles is free of bank conflicts; {best[1]} leaves {best[0]} "
        "extra wavefronts; pad the rows or change the access"
    )


def _swizzles(shortest_base: int, offset_bits: int) -> Iterator[Swizzle]:
    """The swizzles of offsets with so many bits that leave the lowest ``shortest_base`` bits as they are, by their
    bits, then their base, then their shift; the identity once."""
    yield Swizzle(0, shortest_base, 0)
    for bits in range(1, offset_bits // 2 + 1):
        for base in range(shortest_base, offset_bits - 2 * bits + 1):
            for shift in range(bits, offset_bits - base - bits + 1):
                yield Swizzle(bits, base, shift)
