"""What the checks say of every kind of finding is what is kept."""

from __future__ import annotations

from tests import kept
from tests.check import words


def test_the_words_of_every_finding_are_those_that_are_kept() -> None:
    kept.check(words.FILE, words.texts(), words.COMMAND)
