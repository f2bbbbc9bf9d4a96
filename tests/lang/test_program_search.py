"""Some of the drawn programs of :mod:`program_search`; that draws more from the command line."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.lang.program_search import verdict

pytestmark = pytest.mark.unchecked


def test_drawn_programs_are_right_or_refused() -> None:
    found: Counter[str] = Counter()
    for seed in range(24):
        kind, text = verdict(seed)
        assert kind in ("right", "refused", "undefined"), f"case {seed}: {kind}\n{text}"
        found[kind] += 1
    assert found["right"] > 12
