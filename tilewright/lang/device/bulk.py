"""Bulk groups: the stores by TMA and the bulk copies from shared memory that this thread waits for."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.bulk import BulkCommit, BulkWait
from tilewright.lang.device.calls import call


def cp_async_bulk_commit_group(*, loc: Any = None, ip: Any = None) -> None:
    """Close the group of bulk stores issued since the last group. Called by the warp that issued them.

    >>> from tilewright import Int32
    >>> from tilewright.cute.nvgpu import cpasync
    >>> @cute.jit
    ... def store(t, p):
    ...     tile = cute.make_tensor(cute.arch.alloc_smem(Int32, 32, 128), 32)
    ...     tile[t] = 10 * t
    ...     cute.arch.fence_proxy("async.shared", space="cta")
    ...     cute.arch.sync_threads()
    ...     if t == 0:
    ...         atom = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), Int32)
    ...         cute.copy(atom, tile, cute.make_tensor(p.align(16), 32))
    ...         cute.arch.cp_async_bulk_commit_group()
    ...         cute.arch.cp_async_bulk_wait_group(0)
    >>> per_thread(store, 32, memory=[0] * 32)[1][:4]
    [0, 10, 20, 30]
    """
    call(BulkCommit())


def cp_async_bulk_wait_group(group: int, *, read: Any = None, loc: Any = None, ip: Any = None) -> None:
    """Wait until at most the ``group`` newest bulk groups are unfinished; with ``read`` only until they have read
    shared memory, which may be written again then.

    >>> from tilewright import Int32
    >>> from tilewright.cute.nvgpu import cpasync
    >>> @cute.jit
    ... def store_twice(t, p):
    ...     tile = cute.make_tensor(cute.arch.alloc_smem(Int32, 4, 128), 4)
    ...     for i in range(2):
    ...         if t == 0:
    ...             tile.fill(i + 1)
    ...             cute.arch.fence_proxy("async.shared", space="cta")
    ...             atom = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), Int32)
    ...             cute.copy(atom, tile, cute.make_tensor(p.align(16) + 4 * i, 4))
    ...             cute.arch.cp_async_bulk_commit_group()
    ...             cute.arch.cp_async_bulk_wait_group(0, read=True)  # the tile has been read, and may be filled again
    >>> per_thread(store_twice, 1, memory=[0] * 8)[1]
    [1, 1, 1, 1, 2, 2, 2, 2]
    """
    call(BulkWait(int(group), bool(read)))
