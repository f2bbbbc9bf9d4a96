"""The common part of the models of time. A model gives the microseconds of all options at once, as vectors with an
element for each option: one estimate in plain Python would take as long as three operations on vectors of 500.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.gemm.family.plan_options import EVEN_SHARES, Limits, PlanOption, Problem, Vector, kernel_extents


class CostModel(ABC):
    """The ``options`` of one kernel. The first ``unshared`` give each tile to one block or cluster, the first
    ``one_block`` of them to one block. The slice ``even_shares`` is Stream-K whose blocks hand over their sums, the
    slice ``shared_reduction`` Stream-K whose blocks all add up a part of each tile."""

    def __init__(self, options: Sequence[PlanOption], limits: Limits) -> None:
        self.options, self.sms = options, limits[0]
        first = sum(option.parts != EVEN_SHARES for option in options)
        last = sum(not option.shared_reduction for option in options)
        self.even_shares, self.shared_reduction = slice(first, last), slice(last, None)
        self.unshared = sum(option.parts == 1 for option in options)
        self.one_block = sum(option.parts == 1 and option.config.cluster_k == 1 for option in options)
        self.ones = np.ones(len(options), np.float32)  # np.maximum takes six times as long with the number 1.0
        # The extents of a cluster's tile of each option, along M and N of the problem. (The kernel may have the two
        # swapped.)
        self.rows, self.columns = self.of_each(lambda config: kernel_extents(config, config.cluster_tile[:2])).T.copy()

    def of_each(self, number: Callable[[Any], Any]) -> Vector:
        """A number of the configuration of each option."""
        return np.array([number(option.config) for option in self.options], np.float32)

    @abstractmethod
    def times(self, problem: Problem, sharing: bool = True) -> Vector:
        """Microseconds of each option for an (M, N, K, L) problem, without what all options have in common; of the
        first ``unshared`` options alone where ``sharing`` is False, or the problem's tiles cannot be shared
        (:func:`can_share`)."""


def can_share(problem: Problem, sharing: bool) -> bool:
    """Whether the options of a problem include those that share tiles: if the caller asks for them (``sharing``) and
    the product has elements."""
    m, n, k, batch = problem
    return bool(sharing and m and n and k and batch)
