"""Questions about a layout: is it one-to-one, how long are its contiguous runs, what does an access to it cost.

Shared memory serves a warp in *phases*, each of which takes some wavefronts (``banks.py`` has the rules). Global memory
moves 32-byte sectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.banks import WARP, lanes_together, wavefronts
from tilewright.layout.evaluate import check_size, offsets, require_offsets
from tilewright.layout.inverse import max_common_vector
from tilewright.layout.layout import Layout
from tilewright.layout.modes import cosize, size
from tilewright.layout.simplify import filter
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple
from tilewright.reports import Shown

SECTOR = 32  # bytes


def _modes(layout: Layout) -> list[tuple[Any, Any]]:
    return list(zip(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride), strict=True))


def is_injective(layout: Any) -> bool:
    """Whether different coordinates have different offsets.

    >>> is_injective(Layout((4, 2), (1, 8))), is_injective(Layout((4, 2), (1, 2)))
    (True, False)
    """
    if isinstance(layout, Layout):
        reached = 0
        for d, s in sorted((abs(d), s) for s, d in _modes(layout) if s != 1):
            if d <= reached:
                break
            reached += (s - 1) * d
        else:
            return True
        if sum((s - 1) * abs(d) for s, d in _modes(layout)) + 1 < size(layout):
            return False  # fewer offsets than coordinates
    import numpy as np

    table = offsets(layout)
    return len(np.unique(table)) == len(table)


def is_bijective(layout: Any) -> bool:
    """Whether the offsets are exactly 0 .. size-1, each once.

    >>> is_bijective(Layout((4, 2), (2, 1))), is_bijective(Layout((4, 2), (1, 8)))
    (True, False)
    """
    if isinstance(layout, Layout):
        forward = all(d >= 0 or s == 1 for s, d in _modes(layout))
        return forward and bool(cosize(layout) == size(layout)) and is_injective(layout)
    import numpy as np

    table = offsets(layout)
    return bool((np.sort(table) == np.arange(len(table))).all())


def is_compact(layout: Any) -> bool:
    """Whether the offsets fill 0 .. cosize-1 without holes, stride-0 modes aside.

    >>> is_compact(Layout((4, 2, 3), (2, 1, 0))), is_compact(Layout((4, 2), (1, 5)))
    (True, False)
    """
    return is_bijective(filter(layout)) if isinstance(layout, Layout) else is_bijective(layout)


def contiguity(layout: Any) -> int:
    """How many first elements are one after another from offset 0 on.

    >>> contiguity(Layout((4, (2, 3)), (1, (4, 10)))), contiguity(Layout((4, 2), (2, 1)))
    (8, 1)
    """
    return max_common_vector(layout, Layout(size(layout)))


@dataclass(frozen=True)
class AccessReport(Shown):
    """The cost of the accesses of a thread-value pattern.

    ``phases`` has one entry a phase: (first thread, first value, wavefronts or sectors, the least possible).
    """

    phases: tuple[tuple[int, int, int, int], ...]
    unit: str

    @property
    def cost(self) -> int:
        """Wavefronts or sectors in all."""
        return sum(p[2] for p in self.phases)

    @property
    def ideal(self) -> int:
        """The cost if every phase were perfect."""
        return sum(p[3] for p in self.phases)

    @property
    def conflicts(self) -> int:
        """Cost beyond the ideal; 0 means conflict-free or fully coalesced."""
        return self.cost - self.ideal

    @property
    def ways(self) -> int:
        """The worst phase: an n-way conflict."""
        return max(p[2] for p in self.phases)

    def __str__(self) -> str:
        worst = max(self.phases, key=lambda p: p[2] - p[3])
        text = f"{len(self.phases)} phases, {self.cost} {self.unit} (ideal {self.ideal})"
        if not self.conflicts:
            return text + ", no conflict"
        where = f"thread {worst[0]} on, value {worst[1]} on"
        return f"{text}; worst: {where}: {worst[2]} {self.unit} instead of {worst[3]}"


def _vectors(layout: Any, access: Any, element_bits: int, vector: int) -> list[list[int]]:
    """Byte address of every [thread][vector]; checks that each vector is contiguous and aligned."""
    return _addresses(accessed(layout, access, element_bits, vector), layout, element_bits, vector)


def accessed(layout: Any, access: Any, element_bits: int, vector: int) -> list[list[int]]:
    """Offset of every [thread][value] in ``layout``; checks the access, not its vectors."""
    if vector < 1 or vector * element_bits not in (8, 16, 32, 64, 128):
        raise LayoutError(f"no instruction accesses {vector} x {element_bits} bits: they move 1, 2, 4, 8 or 16 bytes")
    require_offsets(layout)
    require_offsets(access)
    threads, values, count = size(access[0]), size(access[1]), size(layout)
    check_size(access, threads * values)
    pattern = [[access(thread + threads * value) for value in range(values)] for thread in range(threads)]
    for element in (element for row in pattern for element in row):
        if not 0 <= element < count:
            raise LayoutError(f"the access {access} reaches element {element} of {layout}, which has {count}")
    if values % vector:
        raise LayoutError(f"{values} values a thread are not a whole number of vectors of {vector}")
    return [[int(layout(element)) for element in row] for row in pattern]


def _addresses(offsets: Sequence[Sequence[int]], layout: Any, element_bits: int, vector: int) -> list[list[int]]:
    addresses: list[list[int]] = []
    for thread, places in enumerate(offsets):
        for first in range(0, len(places), vector):
            run = places[first : first + vector]
            if run[0] % vector or list(run) != list(range(run[0], run[0] + vector)):
                raise LayoutError(
                    f"thread {thread} cannot access values {first}..{first + vector - 1} as one vector of "
                    f"{vector}: {layout} places them at {format_tree(tuple(run))}"
                )
        addresses.append([place * element_bits // 8 for place in places[::vector]])
    return addresses


def conflicts_at(offsets: Sequence[Sequence[int]], layout: Any, element_bits: int, vector: int) -> AccessReport:
    """As bank_conflicts, of the ``offsets`` [thread][value] that ``layout`` gives."""
    return wavefronts_of(_addresses(offsets, layout, element_bits, vector), vector * element_bits // 8, vector)


def bank_conflicts(layout: Any, access: Any, element_bits: int, vector: int = 1) -> AccessReport:
    """Shared-memory wavefronts when threads access ``layout`` by the pattern ``access``.

    ``access`` maps (thread, value) to the 1-D coordinate in ``layout``; each thread moves ``vector`` consecutive values
    by one instruction. Raises LayoutError when a vector is not contiguous and aligned in ``layout``.

    >>> rows = Layout((32, 8), (1, 32))                       # thread t reads 8 halves of row t
    >>> print(bank_conflicts(Layout((32, 64), (64, 1)), rows, 16, vector=8))
    4 phases, 32 wavefronts (ideal 4); worst: thread 0 on, value 0 on: 8 wavefronts instead of 1
    """
    addresses = _vectors(layout, access, element_bits, vector)
    return wavefronts_of(addresses, vector * element_bits // 8, vector)


def wavefronts_of(addresses: Sequence[Sequence[int]], width: int, vector: int = 1) -> AccessReport:
    """Shared-memory wavefronts of accesses of ``width`` bytes at byte ``addresses`` [thread][access].

    ``vector`` is how many values an access moves; phases are named by their first value.
    """
    together = lanes_together(width)
    phases = [
        (first, v * vector, *wavefronts([row[v] for row in addresses[first : first + together]], width))
        for v in range(len(addresses[0]))
        for first in range(0, len(addresses), together)
    ]
    return AccessReport(tuple(phases), "wavefronts")


def coalescing(layout: Any, access: Any, element_bits: int, vector: int = 1) -> AccessReport:
    """Global-memory sectors (32 bytes) that warps touch with the pattern ``access``; arguments as for bank_conflicts.

    >>> print(coalescing(Layout((32, 64), (64, 1)), Layout((32, 1), (32, 0)), 32))
    1 phases, 4 sectors (ideal 4), no conflict
    """
    addresses = _vectors(layout, access, element_bits, vector)
    return sectors_of(addresses, vector * element_bits // 8, vector)


def sectors_of(addresses: Sequence[Sequence[int]], width: int, vector: int = 1) -> AccessReport:
    """Global-memory sectors of accesses of ``width`` bytes at byte ``addresses`` [thread][access], as wavefronts_of."""
    phases = []
    for v in range(len(addresses[0])):
        for first in range(0, len(addresses), WARP):
            touched = {row[v] for row in addresses[first : first + WARP]}
            sectors = {byte // SECTOR for start in touched for byte in (start, start + width - 1)}
            phases.append((first, v * vector, len(sectors), -(-len(touched) * width // SECTOR)))
    return AccessReport(tuple(phases), "sectors")
