"""What the models of time have in common. A model gives the microseconds of all options at once, as vectors with an
element for each option: one estimate in plain Python would take as long as three operations on vectors of 500.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.gemm.family.ways import EVEN, Limits, Problem, Vector, Way, along


class Model(ABC):
    """The options ``ways`` of one kernel: those of ``even`` are Stream-K's whose blocks hand over their sums, those of
    ``together`` Stream-K's whose blocks add up together. The first ``single`` options give each tile to one block or
    cluster, the first ``alone`` to one block."""

    def __init__(self, ways: Sequence[Way], limits: Limits) -> None:
        self.ways, self.sms = ways, limits[0]
        first = sum(way.parts != EVEN for way in ways)
        last = sum(not way.together for way in ways)
        self.even, self.together = slice(first, last), slice(last, None)
        self.single = sum(way.parts == 1 for way in ways)
        self.alone = sum(way.parts == 1 and way.config.cluster_k == 1 for way in ways)
        self.ones = np.ones(len(ways), np.float32)  # np.maximum takes six times as long with the number 1.0
        # Elements of D along the problem's M and N, and of K, that a tile of each option has.
        self.rows, self.columns = self.of_each(lambda config: along(config, config.cluster_tile[:2])).T.copy()

    def of_each(self, number: Callable[[Any], Any]) -> Vector:
        """A number of the configuration of each option."""
        return np.array([number(way.config) for way in self.ways], np.float32)

    @abstractmethod
    def times(self, problem: Problem, sharing: bool = True) -> Vector:
        """Microseconds for an (M, N, K, L) problem, without what all options have in common: of each option, or
        where no tile can be shared (also without ``sharing``) of the first ``single``."""


def can_share(problem: Problem, sharing: bool) -> bool:
    """Whether options that share tiles are among those of a problem."""
    m, n, k, batch = problem
    return bool(sharing and batch == 1 and m and n and k)
