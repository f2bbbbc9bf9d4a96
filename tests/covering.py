"""Few cases in place of all combinations of parameters: covering arrays."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import combinations, product
from typing import Any


def covering(*parameters: Iterable[Any], strength: int = 2) -> list[tuple[Any, ...]]:
    """Rows in which every ``strength`` parameters take all combinations of their values; always the same rows.

    With 1, every value occurs; with 2, every pair of values of two parameters does, which is what a mistake in how two
    of them go together needs. The greedy choice takes the row with most combinations that no row before it has.

    >>> covering("ab", (1, 2), (False, True))
    [('a', 1, True), ('a', 2, False), ('b', 1, False), ('b', 2, True)]
    >>> covering("abc", (1, 2), strength=1)
    [('a', 2), ('b', 1), ('c', 1)]
    """
    values = [list(parameter) for parameter in parameters]
    together = list(combinations(range(len(values)), strength))
    rows = list(product(*(range(len(parameter)) for parameter in values)))
    random.Random(0).shuffle(rows)  # rows that are equally good would else be neighbours, which share most values
    has = {row: {(at, tuple(row[i] for i in at)) for at in together} for row in rows}
    missing, chosen = set().union(*has.values()), []
    while missing:
        chosen.append(max(rows, key=lambda row: len(has[row] & missing)))
        missing -= has[chosen[-1]]
    return [tuple(parameter[i] for parameter, i in zip(values, row, strict=True)) for row in sorted(chosen)]
