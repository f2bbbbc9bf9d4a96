"""Numbers of tiles, stages and blocks in kernels, and what is known of them."""

from __future__ import annotations

from typing import Any

from tilewright import Int32
from tilewright.lang.numbers.facts import EXTENT_BOUND, Facts


def known_count(n: Any) -> Any:
    """``n`` as an Int32 that is not below 0, nor more than a tensor has rows, as extents and the host's limits ensure.

    A loop that counts to it by steps of a few thousand does not pass what an Int32 holds; other loops are printed with
    a number of iterations of their own.
    """
    return Int32(n).learn(Facts(True, 1, EXTENT_BOUND[32]))
