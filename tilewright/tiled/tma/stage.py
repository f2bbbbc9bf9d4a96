"""``cute.copy`` with a TMA atom: one instruction call with the address and the coordinates of every box."""

from __future__ import annotations

import dataclasses
from typing import Any

from tilewright.atoms.tma import TmaCopy, TmaLoad, TmaStore
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.lang.numbers.numeric import Int16, Int32, Int64, unwrap
from tilewright.lang.staging.within import inside
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout, coalesce, flatten_to_tuple, is_static, size
from tilewright.layout.basis import add_coords
from tilewright.tiled.staged_copy import STAGERS
from tilewright.tiled.tma.atom import TmaCopyAtom

CACHE_POLICIES = {
    "EVICT_NORMAL": 0x1000000000000000, "EVICT_FIRST": 0x12F0000000000000, "EVICT_LAST": 0x14F0000000000000,
}  # fmt: skip
"""What ``createpolicy.fractional`` gives for a whole access on sm_90 (CUTLASS: ``TMA::CacheHintSm90``)."""


def stage_load(
    atom: TmaCopyAtom, src: Tensor, dst: Tensor, *, pred: Any = None, tma_bar_ptr: Any = None, mcast_mask: Any = None,
    cache_policy: Any = None, tma_desc_ptr: Any = None, **options: Any,
) -> None:  # fmt: skip
    """``cute.copy`` from a TMA tensor to shared memory; the mbarrier ``tma_bar_ptr`` is told of the bytes."""
    instruction = _instruction(atom, pred, options)
    assert isinstance(instruction, TmaLoad)
    _check_sides(atom, dst, src, "cute.copy(atom, TMA tensor, shared-memory tensor, tma_bar_ptr=...)")
    if not isinstance(tma_bar_ptr, Pointer):
        raise ConstraintError(
            f"{instruction}: a load completes on an mbarrier; give it as tma_bar_ptr (a pointer to Int64 in shared "
            "memory, such as pipeline.producer_get_barrier(state))"
        )
    shared = [tma_bar_ptr.value()]
    if instruction.multicast:
        if mcast_mask is None:
            raise ConstraintError(f"{instruction}: give the blocks that receive as mcast_mask (create_tma_multicast_mask)")
        shared.append(Int16(mcast_mask).ir_value())
    elif mcast_mask is not None and not (isinstance(unwrap(mcast_mask), int) and unwrap(mcast_mask) == 0):
        raise ConstraintError(
            f"{instruction}: takes no mcast_mask; make the atom with CopyBulkTensorTileG2SMulticastOp and num_multicast"
        )
    _stage(atom, instruction, dst, src, shared, cache_policy, tma_desc_ptr)


def stage_store(
    atom: TmaCopyAtom, src: Tensor, dst: Tensor, *, pred: Any = None, cache_policy: Any = None,
    tma_desc_ptr: Any = None, **options: Any,
) -> None:  # fmt: skip
    """``cute.copy`` from shared memory to a TMA tensor, in the bulk group that is open."""
    instruction = _instruction(atom, pred, options)
    _check_sides(atom, src, dst, "cute.copy(atom, shared-memory tensor, TMA tensor)")
    _stage(atom, instruction, src, dst, [], cache_policy, tma_desc_ptr)


STAGERS[TmaLoad] = stage_load
STAGERS[TmaStore] = stage_store


def _instruction(atom: TmaCopyAtom, pred: Any, options: dict[str, Any]) -> TmaCopy:
    instruction = atom.instruction
    assert isinstance(instruction, TmaCopy)
    for name, value in {"pred": pred, **options}.items():
        if value is not None and name not in ("loc", "ip"):
            raise ConstraintError(f"cute.copy: {instruction} takes no {name}; TMA itself leaves out what lies outside")
    if not isinstance(atom, TmaCopyAtom):
        raise ConstraintError(f"cute.copy: {instruction} needs a tensor map: make the atom with make_tiled_tma_atom")
    if inside("elect_one block"):
        raise ConstraintError(
            f"cute.copy: {instruction} is called by a whole warp and elects the thread that issues; inside "
            "`with elect_one():` it would wait for the other 31 for ever: move it out of the block"
        )
    return instruction


def _check_sides(atom: TmaCopyAtom, smem: Tensor, gmem: Tensor, usage: str) -> None:
    if not gmem.is_coordinate:
        raise ConstraintError(
            f"{atom.instruction}: the global side is the TMA tensor that make_tiled_tma_atom gives beside the atom, "
            f"partitioned by tma_partition, not {gmem}: {usage}"
        )
    if smem.is_coordinate or smem.memspace is not AddressSpace.smem:
        raise ConstraintError(f"{atom.instruction}: the other side lies in shared memory, not {smem}: {usage}")
    if smem.element_type.ir_type.width != atom.scalar.width:
        raise ConstraintError(
            f"{atom.instruction}: copies {atom.scalar}, but the shared-memory tensor holds {smem.element_type}"
        )


def _stage(
    atom: TmaCopyAtom, instruction: TmaCopy, smem: Tensor, gmem: Tensor, shared: list[Value], policy: Any, map_ptr: Any
) -> None:
    if policy is not None:
        instruction = dataclasses.replace(instruction, hint=True)
        shared = [*shared, _policy(policy)]
    places, steps = _boxes(atom, smem, "shared-memory"), _boxes(atom, gmem, "TMA")
    if len(places) != len(steps):
        raise ConstraintError(
            f"{instruction}: {len(steps)} boxes of {gmem.layout} against {len(places)} of {smem.layout}: partition both "
            "with tma_partition"
        )
    _check_swizzle(atom, smem.iterator)
    base = unswizzled(smem.iterator)
    operands: list[Value] = []
    for place, step in zip(places, steps, strict=True):
        coordinates = flatten_to_tuple(add_coords(gmem.iterator, step))
        padded = (*coordinates, *[0] * (instruction.rank - len(coordinates)))
        operands += [(base + place).value(), *[Int32(_whole(c)).ir_value() for c in padded]]
    source = atom.tensor_map if map_ptr is None else map_ptr.value()
    Builder.current().call(instruction, [source, *shared, *operands], count=len(places))


def _policy(policy: Any) -> Value:
    name = getattr(policy, "name", None)
    if isinstance(name, str):
        if name not in CACHE_POLICIES:
            raise ConstraintError(f"TMA has the cache policies {', '.join(CACHE_POLICIES)}, not {name}")
        policy = CACHE_POLICIES[name]
    return Int64(policy).ir_value()  # type: ignore[no-any-return]


def _boxes(atom: TmaCopyAtom, tensor: Tensor, side: str) -> list[Any]:
    """What the layout gives for the first element of every box."""
    n, layout = atom.plan.elements_per_instruction, tensor.layout
    if not isinstance(layout, Layout) or not is_static(layout.shape) or size(layout) % n:
        raise ConstraintError(
            f"{atom.instruction}: copies boxes of {n} elements, which do not make up the {side} tensor {layout}: "
            "partition it with tma_partition and slice it to one tile"
        )
    first = layout
    while size(first) > n and isinstance(first.shape, tuple):
        first = first[0]
    if size(first) != n or (side != "TMA" and not _contiguous(coalesce(first), n)):
        raise ConstraintError(
            f"{atom.instruction}: copies boxes of {n} elements at a time, but mode 0 of the {side} tensor {layout} is no "
            "such box: partition it with tma_partition"
        )
    return [layout(i * n) for i in range(size(layout) // n)]


def _contiguous(layout: Layout, n: int) -> bool:
    return n == 1 or (layout.shape == n and layout.stride == 1) or 0 in flatten_to_tuple(layout.stride)


def _check_swizzle(atom: TmaCopyAtom, pointer: Pointer) -> None:
    """The tensor map's swizzle is that of the shared-memory tensor."""
    swizzle, bits = pointer.swizzle, atom.plan.swizzle
    given = 0 if swizzle is None else swizzle.bits
    if given != bits or (swizzle is not None and (swizzle.base, swizzle.shift) != (4, 3)):
        raise ConstraintError(
            f"{atom.instruction}: the atom was made for a shared-memory layout with {_swizzle_text(bits)}, but the tensor "
            f"has {_swizzle_text(given)} ({pointer}): give both the same layout"
        )


def _swizzle_text(bits: int) -> str:
    return f"the swizzle Sw<{bits},4,3> of bytes" if bits else "no swizzle"


def unswizzled(pointer: Pointer) -> Pointer:
    """The same address before the swizzle: TMA and wgmma permute address bits themselves."""
    if pointer.swizzle is None:
        return pointer
    return Pointer(pointer.base, pointer.dtype, const=pointer.const) + pointer.pending


def _whole(coordinate: Any) -> Any:
    """A coordinate as an integer: those of a coarser internal type are multiples of a fraction."""
    if getattr(coordinate, "denominator", 1) != 1:
        raise ConstraintError(f"TMA: the coordinate {coordinate} is no whole number of copied elements")
    return int(coordinate) if isinstance(coordinate, int) or hasattr(coordinate, "denominator") else coordinate
