"""What the measurement of the tests' time counts is there: it replaces functions of Tilewright by name."""

from __future__ import annotations

import pytest

from bench.time_of_tests import PARTS, place


@pytest.mark.parametrize("path", [path for paths in PARTS.values() for path in paths])
def test_each_part_is_a_function_that_is_called_by_this_name(path: str) -> None:
    owner, name = place(path)
    assert callable(getattr(owner, name))
