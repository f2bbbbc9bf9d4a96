"""The Python of host functions of every form is the one that is kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests import kept
from tests.lang.host import generated
from tilewright import BFloat16, Float8E4M3FN, Float16, Float32, cute


def test_the_code_of_every_host_function_is_the_one_that_is_kept() -> None:
    kept.check(generated.FILE, generated.texts(), generated.COMMAND)


@pytest.mark.parametrize("kind", [Float16, BFloat16, Float8E4M3FN, Float32])
def test_to_round_and_to_be_rounded_are_two_functions(kind: Any) -> None:
    """``round(x)`` and the rounding of a sum to its type had one name, and the function that came last."""

    @cute.jit
    def both(x: kind) -> Any:
        return round(x), x + x, round(x + x)

    x = kind(3.75)
    assert both(x) == (4.0, 7.5, 8.0)
