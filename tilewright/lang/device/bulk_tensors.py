"""Bulk copies of boxes by the address of a tensor map, as the NVVM dialect names them: the bare instructions, which
every thread that is here issues. ``cute.copy`` with a TMA atom knows the box and elects the thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from tilewright.atoms.tma import ALIGNMENT, TmaCopy, TmaLoad, TmaPrefetch, TmaStore
from tilewright.atoms.tma_im2col import TmaIm2colLoad
from tilewright.atoms.tma_rows import TmaGather
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.tensormap import TENSOR_MAP
from tilewright.ir.types import I64, U8, PtrType
from tilewright.lang.device.atomic import pointer_of
from tilewright.lang.device.bulk_bytes import hint_operand, place_operand
from tilewright.lang.numbers.numeric import Int16, Int32

MAP_ALIGNMENT = 64
"""Bytes that a tensor map in memory is aligned to."""


class TMAReduxKind(Enum):
    """How :func:`reduce_tensor` joins an element with the one in global memory."""

    ADD = "add"
    MIN = "min"
    MAX = "max"
    INC = "inc"
    DEC = "dec"
    AND = "and"
    OR = "or"
    XOR = "xor"


def load_tensor(
    dst_mem: Any,
    tma_descriptor: Any,
    coordinates: Sequence[Any],
    mbar: Any,
    im2col_offsets: Sequence[Any] = (),
    *,
    multicast_mask: Any = None,
    l2_cache_hint: Any = None,
    predicate: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Copy the box at ``coordinates`` (the contiguous mode first) of the tensor map in memory at ``tma_descriptor`` to
    shared memory, 128 bytes aligned; its bytes complete transactions of the mbarrier ``mbar``. ``multicast_mask``: into
    the same place of these blocks of the cluster. ``im2col_offsets``: pixels of images, of a tensor map for that; see
    :mod:`tilewright.atoms.tma_im2col`. Each thread that is here issues a copy."""
    what = "cp_async_bulk_tensor_shared_cluster_global"
    _tiles_only(what, (), predicate)
    shared = [place_operand(mbar, what, I64, 8)]
    if multicast_mask is not None:
        shared.append(Int16(multicast_mask).ir_value())
    kind = TmaIm2colLoad if im2col_offsets else TmaLoad
    load, box = kind(U8.width, multicast=multicast_mask is not None), [box_operand(dst_mem, what)]
    issue_boxes(what, load, tma_descriptor, shared, box, coordinates, l2_cache_hint, im2col_offsets)


def load_rows(
    dst_mem: Any,
    tma_descriptor: Any,
    column: Any,
    rows: Sequence[Any],
    mbar: Any,
    *,
    l2_cache_hint: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Copy the elements from ``column`` on of four ``rows`` of a matrix to shared memory, one behind the other, by a
    tensor map with a box of one row; otherwise as :func:`load_tensor`. sm_100 and later."""
    what = "tile::gather4"
    shared = [place_operand(mbar, what, I64, 8)]
    box = [box_operand(dst_mem, what)]
    issue_boxes(what, TmaGather(U8.width), tma_descriptor, shared, box, (column, *rows), l2_cache_hint)


def store_tensor(
    tma_descriptor: Any,
    src_mem: Any,
    coordinates: Sequence[Any],
    *,
    l2_cache_hint: Any = None,
    predicate: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Copy a box from shared memory to ``coordinates`` of the tensor map at ``tma_descriptor``, as part of this
    thread's next bulk group."""
    what = "cp_async_bulk_tensor_global_shared_cta"
    _tiles_only(what, (), predicate)
    issue_boxes(what, TmaStore(U8.width), tma_descriptor, [], [box_operand(src_mem, what)], coordinates, l2_cache_hint)


def reduce_tensor(
    tma_descriptor: Any,
    src_mem: Any,
    red_kind: Any,
    coordinates: Sequence[Any],
    *,
    l2_cache_hint: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """:func:`store_tensor`, which joins each element with the one in global memory by ``red_kind``, atomically."""
    what = "cp_async_bulk_tensor_reduce"
    if not isinstance(red_kind, TMAReduxKind):
        raise ConstraintError(f"nvvm.{what}: red_kind is an nvvm.TMAReduxKind, not {red_kind!r}")
    store = TmaStore(U8.width, reduction=red_kind.value)
    issue_boxes(what, store, tma_descriptor, [], [box_operand(src_mem, what)], coordinates, l2_cache_hint)


def prefetch_tensor(
    tma_descriptor: Any,
    coordinates: Sequence[Any],
    im2col_offsets: Sequence[Any] = (),
    *,
    l2_cache_hint: Any = None,
    predicate: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Bring the box at ``coordinates`` of the tensor map at ``tma_descriptor`` to the L2 cache."""
    what = "cp_async_bulk_tensor_prefetch"
    _tiles_only(what, im2col_offsets, predicate)
    issue_boxes(what, TmaPrefetch(U8.width), tma_descriptor, [], [], coordinates, l2_cache_hint)


def _tiles_only(what: str, im2col_offsets: Sequence[Any], predicate: Any) -> None:
    if im2col_offsets:
        raise ConstraintError(f"nvvm.{what}: im2col_offsets are not here: copies are of tiles, leave them out")
    if predicate is not None:
        raise ConstraintError(f"nvvm.{what}: predicate is not here: call it in an `if`")


def box_operand(x: Any, what: str) -> Value:
    """A box in shared memory."""
    return place_operand(x, what, U8, ALIGNMENT)


def issue_boxes(
    what: str,
    instruction: TmaCopy,
    tensor_map: Any,
    shared: list[Value],
    box: list[Value],
    coordinates: Sequence[Any],
    hint: Any,
    offsets: Sequence[Any] = (),
) -> None:
    """Emit ``instruction`` for one box at ``coordinates``, by each thread that is here. ``offsets``: of im2col copies,
    one for each mode of the images."""
    if not 1 <= len(coordinates) <= 5:
        raise ConstraintError(
            f"nvvm.{what}: a tensor map has 1 to 5 modes, and {len(coordinates)} coordinates are given"
        )
    place = _map_operand(tensor_map, what)
    instruction = replace(instruction, rank=len(coordinates), hint=hint is not None, each=True)
    if len(offsets) != instruction.numbers - instruction.rank:
        raise ConstraintError(
            f"{what}: an im2col copy of {len(coordinates)} coordinates has an offset for each mode between the "
            f"channels and the images, {instruction.numbers - instruction.rank}, not {len(offsets)}"
        )
    numbers = [Int32(c).ir_value() for c in (*coordinates, *offsets)]
    Builder.current().call(instruction, [place, *shared, *hint_operand(hint), *box, *numbers], count=1)


def _map_operand(tensor_map: Any, what: str) -> Value:
    """A tensor map among the kernel's parameters, or one in memory."""
    has_value = hasattr(tensor_map, "value") and not hasattr(tensor_map, "engine")
    value: Value = tensor_map.value() if has_value else pointer_of(tensor_map, what).value()
    if value.type == TENSOR_MAP:
        return value
    kind = pointer_of(tensor_map, what).value().type
    assert isinstance(kind, PtrType)
    return place_operand(tensor_map, what, kind.elem, MAP_ALIGNMENT)
