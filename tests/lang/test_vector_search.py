"""Some of the drawn programs of :mod:`vector_search`; that draws more from the command line."""

from __future__ import annotations

import pytest

from tests.lang.vector_search import verdict

pytestmark = pytest.mark.unchecked


def test_drawn_programs_of_vectors_are_right() -> None:
    found = [verdict(seed) for seed in range(20)]
    assert [text for kind, text in found if kind not in ("right", "undefined")] == []
    assert sum(kind == "right" for kind, _ in found) > 15
