"""Bulk copies of bytes by addresses, as ``cutlass.experimental.primitives`` and the NVVM dialect name them. The other
bulk copies are atoms of :mod:`tilewright.tiled.tma.bulk`."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.bulk_copy import ALIGNMENT, BulkLoad, BulkStore
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import I64, U8, PtrType, ScalarType
from tilewright.lang.device.atomic import pointer_of
from tilewright.lang.device.calls import i32
from tilewright.lang.numbers.numeric import Int16, Int64


def load_bytes(
    dst_mem: Any,
    src_mem: Any,
    mbar: Any,
    size: Any,
    *,
    multicast_mask: Any = None,
    l2_cache_hint: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Copy ``size`` bytes (a number known while staging) from global to shared memory; they complete transactions of
    the mbarrier ``mbar``. ``multicast_mask``: into the same place of these blocks of the cluster.

    Both addresses and ``size`` are multiples of 16 bytes. Each thread that is here issues a copy.

    >>> from tilewright import Int32, Int64
    >>> @cute.kernel
    ... def kernel(x: cute.Tensor, out: cute.Tensor):
    ...     t, _, _ = cute.arch.thread_idx()
    ...     tile, bar = cute.arch.alloc_smem(Int32, 32, 16), cute.arch.alloc_smem(Int64, 1, 8)
    ...     if t == 0:
    ...         cute.arch.mbarrier_init(bar, 1)
    ...         cute.arch.mbarrier_init_fence()
    ...         cute.arch.mbarrier_arrive_and_expect_tx(bar, 128)
    ...         load_bytes(tile, x.iterator, bar, 128)
    ...     cute.arch.sync_threads()
    ...     cute.arch.mbarrier_wait(bar, 0)
    ...     out[t] = cute.make_tensor(tile, 32)[31 - t]
    >>> @cute.jit
    ... def host(x: cute.Tensor, out: cute.Tensor):
    ...     kernel(x, out).launch(grid=(1, 1, 1), block=(32, 1, 1))
    >>> x, out = np.arange(36, dtype=np.int32), np.zeros(32, np.int32)
    >>> x = x[-x.ctypes.data % 16 // 4 :][:32]  # which begins at a multiple of 16 bytes
    >>> host(x, out)
    >>> bool((out == x[::-1]).all())
    True
    """
    what = "cp_async_bulk_shared_cluster_global"
    shared = [place_operand(mbar, what, I64, 8)]
    if multicast_mask is not None:
        shared.append(Int16(multicast_mask).ir_value())
    shared += hint_operand(l2_cache_hint)
    load = BulkLoad(U8.width, hint=l2_cache_hint is not None, multicast=multicast_mask is not None)
    sides = [place_operand(dst_mem, what), place_operand(src_mem, what)]
    Builder.current().call(load, [*shared, *sides], count=1, bytes=bytes_of(size, what))


def store_bytes(
    dst_mem: Any, src_mem: Any, size: Any, *, l2_cache_hint: Any = None, loc: Any = None, ip: Any = None
) -> None:
    """Copy ``size`` bytes (a number known while staging) from shared to global memory, as part of this thread's next
    bulk group. Both addresses and ``size`` are multiples of 16 bytes.

    >>> from tilewright import Int32
    >>> @cute.jit
    ... def store(t, p):
    ...     tile = cute.make_tensor(cute.arch.alloc_smem(Int32, 32, 16), 32)
    ...     tile[t] = 3 * t
    ...     cute.arch.fence_proxy("async.shared", space="cta")
    ...     cute.arch.sync_threads()
    ...     if t == 0:
    ...         store_bytes(p, tile, 128)
    ...         cute.arch.cp_async_bulk_commit_group()
    ...         cute.arch.cp_async_bulk_wait_group(0)
    >>> per_thread(store, 32, memory=[0] * 32)[1][:4]
    [0, 3, 6, 9]
    """
    what = "cp_async_bulk_global_shared_cta"
    store = BulkStore(U8.width, hint=l2_cache_hint is not None)
    sides = [place_operand(dst_mem, what), place_operand(src_mem, what)]
    Builder.current().call(store, [*hint_operand(l2_cache_hint), *sides], count=1, bytes=bytes_of(size, what))


def hint_operand(policy: Any) -> list[Value]:
    """The 64 bits of a cache policy as an operand, if there is one."""
    return [] if policy is None else [Int64(policy).ir_value()]


def place_operand(x: Any, what: str, element: ScalarType = U8, align: int = ALIGNMENT) -> Value:
    """The address of ``x`` as that of ``element``. PTX asks for ``align``, and runs are checked."""
    value = pointer_of(x, what).value()
    assert isinstance(value.type, PtrType)
    kind = PtrType(element, value.type.space, max(value.type.align, align))
    return value if value.type == kind else Builder.current().emit("ptr.cast", (value,), (kind,)).result


def bytes_of(size: Any, what: str) -> int:
    """``size`` as a number, if it is known while staging."""
    value = i32(size)
    if not isinstance(value, Constant):
        raise ConstraintError(
            f"{what}: size is a number of bytes known while staging, not a run-time number: branch on the sizes that "
            "occur, or copy with cute.copy and a tensor of that size"
        )
    return int(value.value)
