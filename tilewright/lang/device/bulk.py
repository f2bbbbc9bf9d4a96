"""Bulk groups: the stores by TMA and the bulk copies from shared memory that this thread waits for."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.bulk import BulkCommit, BulkWait
from tilewright.lang.device.calls import call


def cp_async_bulk_commit_group(*, loc: Any = None, ip: Any = None) -> None:
    """Close the group of bulk stores issued since the last group. Called by the warp that issued them."""
    call(BulkCommit())


def cp_async_bulk_wait_group(group: int, *, read: Any = None, loc: Any = None, ip: Any = None) -> None:
    """Wait until at most the ``group`` newest bulk groups are unfinished; with ``read`` only until they have read
    shared memory, which may be written again then."""
    call(BulkWait(int(group), bool(read)))
