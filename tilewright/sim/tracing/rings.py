"""Which stage of a ring the copies of ``cp.async`` fill, and which one ldmatrix and mma.sync have their operands from.

Such a program does not name a stage: the address says which one is meant. The copies that are committed first fill the
first stage, and so on until bytes are written again, which begins the ring again. What is read from these bytes has
their stage, and so has the mma whose operand A it becomes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

GRANULE = 16  # bytes that are of one stage


class Rings:
    """The stages of one launch. A stage is the number of the commit group that wrote its bytes first."""

    def __init__(self) -> None:
        self.commits: dict[tuple[int, int], int] = defaultdict(int)  # by (block, warp)
        self._copies: dict[int, int] = {}  # by effect: its commit group
        self._stages: dict[int, int] = {}  # by granule of shared memory
        self._registers: dict[tuple[tuple[int, int], int], dict[int, int]] = defaultdict(dict)

    @property
    def depth(self) -> int:
        """How many stages there are."""
        return max(self._stages.values(), default=0) + 1

    def issued(self, effect: Any, who: tuple[int, int]) -> None:
        self._copies[id(effect)] = self.commits[who]

    def landing(self, effect: Any) -> int | None:
        """The commit group of a copy that lands now."""
        return self._copies.pop(id(effect), None)

    def written(self, offsets: Any, group: int) -> None:
        for granule in np.unique(offsets // GRANULE).tolist():
            self._stages.setdefault(granule, group)

    def read(self, offsets: Any) -> int | None:
        """The stage that is read; None for memory that ``cp.async`` has not written."""
        return self._stages.get(int(offsets.flat[0]) // GRANULE) if self._stages and offsets.size else None

    def loaded(self, who: tuple[int, int], fragment: Any, registers: Iterable[int], stage: int) -> None:
        self._registers[who, id(fragment)].update(dict.fromkeys(registers, stage))

    def of_operand(self, who: tuple[int, int], fragment: Any, register: int) -> int | None:
        """The stage that a register of an operand was loaded from."""
        return self._registers.get((who, id(fragment)), {}).get(register)
