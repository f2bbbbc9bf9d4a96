"""Words of reports."""

from __future__ import annotations


def many(count: int, what: str) -> str:
    """
    >>> many(1, "block"), many(2, "block")
    ('1 block', '2 blocks')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
