"""Some of the drawn arguments of :mod:`argument_search`; that draws more from the command line."""

from __future__ import annotations

import pytest

from tests.lang.argument_search import verdict

pytestmark = pytest.mark.unchecked


def test_drawn_arrays_are_copied_or_refused() -> None:
    found = [verdict(seed) for seed in range(40)]
    assert [text for kind, text in found if kind not in ("right", "refused")] == []
    assert sum(kind == "right" for kind, _ in found) > 5
