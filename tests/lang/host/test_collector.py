"""Python's collector of cycles waits while a program is staged, and goes on afterwards."""

import gc

import pytest

from tilewright import cute
from tilewright.errors import TilewrightError


@pytest.mark.parametrize("ran", [True, False])
@pytest.mark.parametrize("fails", [False, True])
def test_the_collector_is_as_before(ran: bool, fails: bool) -> None:
    seen = []

    @cute.jit
    def outer(n: cute.Int32) -> None:
        seen.append(gc.isenabled())
        if fails:
            cute.make_layout((4, 2), stride=1)

    before = gc.isenabled()
    try:
        (gc.enable if ran else gc.disable)()
        if fails:
            with pytest.raises(TilewrightError):
                outer(3)
        else:
            outer(3)
        assert seen == [False] and gc.isenabled() == ran
    finally:
        (gc.enable if before else gc.disable)()
