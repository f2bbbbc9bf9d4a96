"""The Python of host functions of every form is the one that is kept."""

from __future__ import annotations

from tests import kept
from tests.lang.host import generated


def test_the_code_of_every_host_function_is_the_one_that_is_kept() -> None:
    kept.check(generated.FILE, generated.texts(), generated.COMMAND)
