"""Staging changes how often Python looks for cycles, and puts it back."""

import gc

import pytest

from tilewright import cute
from tilewright.errors import TilewrightError

THRESHOLDS = [(700, 10, 10), (0, 10, 10), (5_000_000, 3, 2)]


@pytest.mark.parametrize("given", THRESHOLDS)
@pytest.mark.parametrize("fails", [False, True])
def test_thresholds_are_as_before(given: tuple[int, int, int], fails: bool) -> None:
    seen = []

    @cute.jit
    def outer(n: cute.Int32) -> None:
        inner(n)
        seen.append(gc.get_threshold())

    @cute.jit
    def inner(n: cute.Int32) -> None:
        if fails:
            cute.make_layout((4, 2), stride=1)

    before = gc.get_threshold()
    gc.set_threshold(*given)
    try:
        if fails:
            with pytest.raises(TilewrightError):
                outer(3)
        else:
            outer(3)
            assert [first for first, *_ in seen] == [given[0] and max(given[0], 1_000_000)]
        assert gc.get_threshold() == given
    finally:
        gc.set_threshold(*before)
