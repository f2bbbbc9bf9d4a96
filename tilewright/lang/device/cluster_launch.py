"""Cluster launch control (sm_100): a running cluster takes over the work of one that has not begun."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.cluster_launch import BYTES, QueryCancel, TryCancel
from tilewright.errors import ConstraintError
from tilewright.ir.types import I32
from tilewright.lang.device.calls import call
from tilewright.lang.numbers.numeric import Int32, wrap
from tilewright.lang.tensors.address_space import AddressSpace
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.recast import recast_ptr


def issue_clc_query(
    mbar_ptr: Pointer, clc_response_ptr: Pointer, multicast: bool = True, *, loc: Any = None, ip: Any = None
) -> None:
    """``clusterlaunchcontrol.try_cancel``: ask that a cluster of this grid which has not begun be cancelled.

    Each thread that is here asks, so one does it (``with elect_one():``), in one block of the cluster. All blocks of
    the cluster get the answer: 16 bytes at ``clc_response_ptr`` (shared memory, aligned to 16), which count at
    ``mbar_ptr``; with ``multicast=False`` this block alone. An example:
    :class:`~tilewright.utils.ClcDynamicPersistentTileScheduler`.

    >>> from tilewright import Int32, Int64
    >>> @cute.jit
    ... def taken_over(t):
    ...     answer, full = arch.alloc_smem(Int32, 4, 16), arch.alloc_smem(Int64, 1)
    ...     arch.mbarrier_init(full, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive_and_expect_tx(full, 16)
    ...     issue_clc_query(full, answer)
    ...     arch.mbarrier_wait(full, 0)
    ...     return clc_response(answer)[3]
    >>> per_thread(taken_over, 1)  # a grid of one block: there is no other
    [0]
    """
    call(TryCancel(bool(multicast)), _response(clc_response_ptr), mbar_ptr)


def clc_response(result_addr: Pointer, *, loc: Any = None, ip: Any = None) -> tuple[Int32, Int32, Int32, Int32]:
    """``clusterlaunchcontrol.query_cancel``: the answer (x, y, z, valid): the coordinates of the cancelled cluster's
    first block, and 1, or zeros where none was left. After those no further request may be made.

    Wait for the mbarrier of :func:`issue_clc_query` first.

    >>> from tilewright import Int32, Int64
    >>> def first_block(t):
    ...     answer, full = arch.alloc_smem(Int32, 4, 16), arch.alloc_smem(Int64, 1)
    ...     arch.mbarrier_init(full, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive_and_expect_tx(full, 16)
    ...     issue_clc_query(full, answer)
    ...     arch.mbarrier_wait(full, 0)
    ...     x, y, z, valid = clc_response(answer)
    ...     return 10 * x + valid
    >>> per_thread(first_block, 1)  # of a grid of one block none is left
    [0]
    """
    x, y, z, valid = call(QueryCancel(), _response(result_addr), results=(I32,) * 4)
    return wrap(x), wrap(y), wrap(z), wrap(valid)


def _response(pointer: Any) -> Pointer:
    if not isinstance(pointer, Pointer) or pointer.memspace is not AddressSpace.smem or pointer.alignment % BYTES:
        raise ConstraintError(
            f"the answer of clusterlaunchcontrol are 16 bytes of shared memory, aligned to 16, not {pointer}: "
            "allocate_array(Int32, 4, byte_alignment=16)"
        )
    response: Pointer = recast_ptr(pointer, dtype=Int32)
    return response
