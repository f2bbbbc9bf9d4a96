"""A slice of the search over all holders of state: Python's numbers or a refusal, never anything else.

``bench/staging_search.py`` runs many thousands of cases.
"""

from __future__ import annotations

import collections

import pytest

from .holder_programs import HOLDERS, verdict


@pytest.mark.parametrize("first", [0, 60, 120, 180])
def test_random_programs_over_all_holders(first: int) -> None:
    found: collections.Counter[str] = collections.Counter()
    for seed in range(first, first + 60):
        kind, text = verdict(seed)
        assert kind not in ("wrong", "foreign"), f"case {seed}: {kind}\n{text}"
        found[kind] += 1
    assert found["right"] > 15, found  # a search that only refuses shows nothing
    assert len(HOLDERS) > 30
