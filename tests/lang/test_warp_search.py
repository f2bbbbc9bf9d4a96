"""Some of the drawn exchanges of :mod:`warp_search`; that draws more from the command line."""

from __future__ import annotations

from tests.lang.warp_search import verdict


def test_drawn_exchanges_between_lanes_are_ptxs() -> None:
    assert [text for kind, text in map(verdict, range(12)) if kind != "right"] == []
