"""The primitives that move data: boxes by tensor maps, ``cp.async``, and numbers of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.atoms import tensormap
from tilewright.atoms.bulk_copy import BulkPrefetch, BulkToBlock
from tilewright.atoms.cp_async import CpAsync, LoadCacheMode
from tilewright.atoms.tma import TmaLoad, TmaStore
from tilewright.atoms.tma_im2col import TmaIm2colLoad, TmaIm2colStore
from tilewright.atoms.tma_rows import TmaGather, TmaScatter
from tilewright.errors import ConstraintError
from tilewright.experimental import choices
from tilewright.experimental.choices import CTAGroup, chosen
from tilewright.experimental.cuda.tensor_map import MapPointer
from tilewright.experimental.mbarriers import own_place
from tilewright.ir.builder import Builder
from tilewright.ir.types import I64, U8
from tilewright.lang.device import atomic, barriers, bulk_tensors
from tilewright.lang.device.array import Array
from tilewright.lang.device.atomic import pointer_of
from tilewright.lang.device.bulk_bytes import bytes_of, hint_operand, place_operand
from tilewright.lang.device.calls import call
from tilewright.lang.device.ptx_instructions import same_number
from tilewright.lang.numbers.numeric import Boolean, Int16, Int32, Uint8, unwrap
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import make_tensor
from tilewright.lang.tensors.vector import Vector
from tilewright.layout import make_layout
from tilewright.tiled import staged_copy
from tilewright.tiled.atom import CopyAtom

__all__ = [
    "cp_async_bulk_prefetch",
    "cp_async_bulk_shared_cluster_shared_cta",
    "cp_async_bulk_tensor_global_shared_cta",
    "cp_async_bulk_tensor_reduce",
    "cp_async_bulk_tensor_shared_cluster_global",
    "cp_async_bulk_tensor_shared_cta_global",
    "cp_async_commit_group",
    "cp_async_shared_global",
    "cp_async_wait_group",
    "load_ext",
    "prefetch_tensormap",
    "store_ext",
]
_LOADS: dict[choices.TMALoadMode, type[TmaLoad]] = {
    choices.TMALoadMode.TILE: TmaLoad,
    choices.TMALoadMode.TILE_GATHER4: TmaGather,
    choices.TMALoadMode.IM2COL: TmaIm2colLoad,
}
_STORES: dict[choices.TMAStoreMode, type[TmaStore]] = {
    choices.TMAStoreMode.TILE: TmaStore,
    choices.TMAStoreMode.TILE_SCATTER4: TmaScatter,
    choices.TMAStoreMode.IM2COL: TmaIm2colStore,
}
cp_async_commit_group = barriers.cp_async_commit_group
cp_async_wait_group = barriers.cp_async_wait_group


def prefetch_tensormap(tensor_map: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Fetch a tensor map into the cache of descriptors before its first use.

    >>> prefetch_tensormap(None)  # only descriptors that are kernel parameters are prefetched
    """
    if isinstance(tensor_map, MapPointer):
        call(tensormap.PrefetchTensorMap(), tensor_map.value())


def cp_async_bulk_tensor_shared_cta_global(
    dst: Any,
    tensor_map: Any,
    coordinates: Sequence[Any],
    mbar: Any,
    im2col_offsets: Sequence[Any] = (),
    *,
    mode: Any = choices.TMALoadMode.TILE,
    l2_cache_hint: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Load the box at ``coordinates`` (the contiguous mode first) to this block's shared memory; its bytes count at the
    mbarrier. One thread issues it. ``mode="tile_gather4"`` (sm_100 on): four rows of a matrix, at the coordinates of
    a column and of four rows; the tensor map's box is of one row. ``mode="im2col"``: pixels of images, of a tensor map
    that ``create_tensor_map_im2col`` makes, each at ``im2col_offsets`` (W first) from where a filter begins.

    >>> cp_async_bulk_tensor_shared_cta_global(None, None, (0, 0, 0), None, [1])
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: cp_async_bulk_tensor_shared_cta_global: im2col_offsets are for mode="im2col"
    """
    _load(
        "cp_async_bulk_tensor_shared_cta_global",
        dst,
        tensor_map,
        coordinates,
        mbar,
        im2col_offsets,
        mode,
        l2_cache_hint,
    )


def cp_async_bulk_tensor_shared_cluster_global(
    dst: Any,
    tensor_map: Any,
    coordinates: Sequence[Any],
    mbar: Any,
    im2col_offsets: Sequence[Any] = (),
    *,
    multicast_mask: Any = None,
    group: Any = None,
    mode: Any = choices.TMALoadMode.TILE,
    l2_cache_hint: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """The same, with ``multicast_mask`` into the blocks of the cluster that it names; with ``group=CTAGroup.CTA_2`` the
    bytes count at the mbarrier of the pair's even block.

    >>> cp_async_bulk_tensor_shared_cluster_global(None, None, (0,), None, group="cta_3")
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: cp_async_bulk_tensor_shared_cluster_global: 'cta_3' is not a ...
    """
    what = "cp_async_bulk_tensor_shared_cluster_global"
    pair = group is not None and chosen(CTAGroup, group, what) is CTAGroup.CTA_2
    _load(what, dst, tensor_map, coordinates, mbar, im2col_offsets, mode, l2_cache_hint, multicast_mask, pair)


def _load(
    what: str,
    dst: Any,
    tensor_map: Any,
    coordinates: Any,
    mbar: Any,
    offsets: Any,
    mode: Any,
    hint: Any,
    mask: Any = None,
    pair: bool = False,
) -> None:
    taken = chosen(choices.TMALoadMode, mode, what)
    if offsets and taken is not choices.TMALoadMode.IM2COL:
        raise ConstraintError(f'{what}: im2col_offsets are for mode="im2col"')
    shared = [place_operand(mbar, what, I64, 8)]
    if mask is not None:
        shared.append(Int16(mask).ir_value())
    load = _LOADS[taken](U8.width, multicast=mask is not None, pair=pair)
    box = [bulk_tensors.box_operand(dst, what)]
    bulk_tensors.issue_boxes(what, load, tensor_map, shared, box, coordinates, hint, offsets)


def cp_async_bulk_tensor_global_shared_cta(
    tensor_map: Any,
    src: Any,
    coordinates: Sequence[Any],
    *,
    mode: Any = choices.TMAStoreMode.TILE,
    l2_cache_hint: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Store a box of shared memory to ``coordinates``, as part of this thread's next bulk group. With
    ``mode="tile_scatter4"`` (sm_100a) four rows, to the coordinates of a column and of four rows; with ``"im2col"``
    pixels, from that of the coordinates on, by the tensor map of :func:`create_tensor_map_im2col`.

    >>> cp_async_bulk_tensor_global_shared_cta(None, None, (0, 0, 0), mode="im2row")
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: cp_async_bulk_tensor_global_shared_cta: 'im2row' is not a TMAStoreMode; ...
    """
    _store("cp_async_bulk_tensor_global_shared_cta", "", tensor_map, src, coordinates, mode, l2_cache_hint)


def cp_async_bulk_tensor_reduce(
    tensor_map: Any,
    src: Any,
    op: Any,
    coordinates: Sequence[Any],
    *,
    mode: Any = choices.TMAStoreMode.TILE,
    l2_cache_hint: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Join a box of shared memory with the elements at ``coordinates``, atomically.

    >>> cp_async_bulk_tensor_reduce(None, None, "sum", (0, 0))
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: cp_async_bulk_tensor_reduce: 'sum' is not a TMAReduxKind; there are ...
    """
    kind = chosen(bulk_tensors.TMAReduxKind, op, "cp_async_bulk_tensor_reduce").value
    _store("cp_async_bulk_tensor_reduce", kind, tensor_map, src, coordinates, mode, l2_cache_hint)


def _store(what: str, kind: str, tensor_map: Any, src: Any, coordinates: Any, mode: Any, hint: Any) -> None:
    taken = chosen(choices.TMAStoreMode, mode, what)
    store = _STORES[taken](U8.width, reduction=kind)
    bulk_tensors.issue_boxes(what, store, tensor_map, [], [bulk_tensors.box_operand(src, what)], coordinates, hint)


def cp_async_bulk_shared_cluster_shared_cta(
    dst_mem: Any, src_mem: Any, mbar: Any, size: Any, *, loc: Any = None, ip: Any = None
) -> None:
    """Copy ``size`` bytes from the own shared memory to that of another block of the cluster; they complete
    transactions of an mbarrier of that block. :func:`mapa` gives ``dst_mem`` and ``mbar``, both of the same rank.

    Both addresses and ``size`` are multiples of 16 bytes. Each thread that is here issues a copy.

    >>> from tilewright import Int32, Int64
    >>> from tilewright.experimental.synchronise import mapa
    >>> @cute.jit
    ... def exchange(t):
    ...     own = arch.block_idx_in_cluster()
    ...     sent, got = arch.alloc_smem(Int32, 32, 16), arch.alloc_smem(Int32, 32, 16)
    ...     bar = arch.alloc_smem(Int64, 1, 8)
    ...     arch.store(sent + t, 100 * own + t)
    ...     if t == 0:
    ...         arch.mbarrier_init(bar, 1)
    ...         arch.mbarrier_init_fence()
    ...         arch.mbarrier_arrive_and_expect_tx(bar, 128)
    ...     arch.fence_proxy("async.shared", space="cta")
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     if t == 0:
    ...         other = own ^ 1
    ...         cp_async_bulk_shared_cluster_shared_cta(mapa(got, other), sent, mapa(bar, other), 128)
    ...     arch.mbarrier_wait(bar, 0)
    ...     value = arch.load(got + t)
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     return value
    >>> per_thread(exchange, 32, blocks=2, cluster=2)[31:34]
    [131, 0, 1]
    """
    what = "cp_async_bulk_shared_cluster_shared_cta"
    (to, rank), (bar, other) = own_place(dst_mem, what), own_place(mbar, what)
    ranks = [Int32(x).ir_value() for x in (rank, other) if x is not None]
    if to is None or bar is None or len(ranks) < 2 or not same_number(*ranks):
        raise ConstraintError(
            f"{what}: dst_mem and mbar are mapa(ptr, rank) of pointers to shared memory, with one rank; add an offset "
            "to the pointer before it is mapped"
        )
    shared = [place_operand(bar, what, I64, 8), ranks[0]]
    sides = [place_operand(to, what), place_operand(src_mem, what)]
    Builder.current().call(BulkToBlock(U8.width), [*shared, *sides], count=1, bytes=bytes_of(size, what))


def cp_async_bulk_prefetch(
    src_mem: Any, size: Any, *, l2_cache_hint: Any = None, loc: Any = None, ip: Any = None
) -> None:
    """Bring ``size`` bytes of global memory to the L2 cache. The address and ``size`` are multiples of 16 bytes.

    >>> @cute.jit
    ... def kernel(t, p):
    ...     if t == 0:
    ...         cp_async_bulk_prefetch(p, 128)
    ...     return arch.load(p + t)
    >>> per_thread(kernel, 32, memory=list(range(32)))[0][:3]
    [0, 1, 2]
    """
    what = "cp_async_bulk_prefetch"
    prefetch = BulkPrefetch(hint=l2_cache_hint is not None)
    operands = [place_operand(src_mem, what), *hint_operand(l2_cache_hint)]
    Builder.current().call(prefetch, operands, bytes=bytes_of(size, what))


def cp_async_shared_global(
    dst: Any,
    src: Any,
    size: int,
    modifier: Any = choices.LoadCacheModifier.CA,
    *,
    cp_size: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``cp.async`` of 4, 8 or 16 bytes; of ``cp_size`` of them, the rest being zeros, where that is 0 or ``size``.

    >>> from tilewright import Int32
    >>> def copied(t, p):
    ...     held = arch.alloc_smem(Int32, 4, 16)
    ...     cp_async_shared_global(held, p, 16, "cg")
    ...     cp_async_commit_group()
    ...     cp_async_wait_group(0)
    ...     return held[2]
    >>> per_thread(copied, 1, memory=[5, 6, 7, 8])[0]
    [7]
    """
    what = "cp_async_shared_global"
    modes = {choices.LoadCacheModifier.CA: LoadCacheMode.ALWAYS, choices.LoadCacheModifier.CG: LoadCacheMode.GLOBAL}
    mode = modes[chosen(choices.LoadCacheModifier, modifier, what)]
    static_size = unwrap(cp_size)
    some = static_size is not None and static_size != size
    sides = [make_tensor(Pointer(place_operand(x, what, U8, size), Uint8), make_layout((size, 1))) for x in (src, dst)]
    atom = CopyAtom(CpAsync(8 * size, mode, zero_fill=some), Uint8)
    if not some:
        return staged_copy.copy(atom, *sides)
    predicate = make_rmem_tensor(1, Boolean)
    predicate[0] = Boolean(Int32(cp_size) != 0)
    return staged_copy.copy(atom, *sides, pred=predicate)


def load_ext(
    ptr: Any,
    *,
    dtype: Any = None,
    count: int = 1,
    order: Any = None,
    scope: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The number at a pointer, or ``count`` of them as a Vector. ``order`` (``MemOrder.RELAXED`` or ``ACQUIRE``) and
    ``scope`` (a ``MemScope``, by default the GPU): one number that others may write at any time.

    >>> per_thread(lambda t, p: load_ext(p + 2 * t, count=2)[1], 2, memory=[1, 2, 3, 4])[0]
    [2, 4]
    """
    ordered = _ordered(order, scope, "load_ext")
    if ordered is None:
        return _at(ptr, dtype, "load_ext").load(0, count)
    if count != 1:
        raise ConstraintError(f"load_ext: PTX orders loads of one number, not of {count}")
    return atomic.load(ptr, dtype, **ordered)


def store_ext(
    value: Any,
    ptr: Any,
    *,
    order: Any = None,
    scope: Any = None,
    cache_modifier: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Store a number or a Vector at a pointer. ``order`` (``MemOrder.RELAXED`` or ``RELEASE``) and ``scope`` (a
    ``MemScope``, by default the GPU): one number that others may read at any time. ``cache_modifier`` is a hint, which
    is not followed; a ``HintWarning`` says so.

    >>> per_thread(lambda t, p: store_ext(t + 5, p + t), 2, memory=[0, 0])[1]
    [5, 6]
    """
    atomic.not_followed("store_ext", cache_modifier)
    ordered = _ordered(order, scope, "store_ext")
    if ordered is None:
        return _at(ptr, None, "store_ext").store(value)
    if isinstance(value, Vector):
        raise ConstraintError("store_ext: PTX orders stores of one number, not of a Vector")
    return atomic.store(ptr, value, **ordered)


def _at(ptr: Any, dtype: Any, what: str) -> Array:
    place: Pointer = pointer_of(ptr, what)
    return Array(place, 1, dtype=dtype)


def _ordered(order: Any, scope: Any, what: str) -> dict[str, str] | None:
    """``sem`` and ``scope`` of an ordered access; None for one that is weak."""
    sem = choices.MemOrder.WEAK if order is None else chosen(choices.MemOrder, order, what)
    reach = None if scope is None else chosen(choices.MemScope, scope, what)
    if sem is not choices.MemOrder.WEAK:
        return {"sem": sem.value, "scope": (reach or choices.MemScope.GPU).value}
    if reach is not None:
        raise ConstraintError(f"{what}: scope={reach.name} belongs to an order: give order=MemOrder.RELAXED, ...")
    return None
