"""A slice of the search over tiled copies: each drawn copy moves the matrix, or is refused while staging."""

from __future__ import annotations

import pytest

from tests.tiled.copy_search import INSTRUCTIONS, check


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_drawn_copies_move_every_element_or_are_refused(instruction: str) -> None:
    verdicts = [check(seed, instruction) for seed in range(16)]
    assert verdicts.count("right") >= 2 and verdicts.count("refused") >= 2
