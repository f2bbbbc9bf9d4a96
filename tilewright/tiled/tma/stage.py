"""``cute.copy`` with a TMA atom: one instruction call with the address and the coordinates of every box."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tilewright.atoms.tma import TmaCopy, TmaLoad, TmaPrefetch
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.tensormap import ATOM_32B, expands
from tilewright.ir.types import I8, U8
from tilewright.lang.numbers.numeric import Int16, Int32, Int64, class_of, unwrap
from tilewright.lang.staging.with_block import inside
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout, coalesce, flatten_to_tuple, is_static, size
from tilewright.layout.basis import add_coords

if TYPE_CHECKING:
    from tilewright.tiled.tma.atom import TmaCopyAtom

CACHE_POLICIES = {
    "EVICT_NORMAL": 0x1000000000000000,
    "EVICT_FIRST": 0x12F0000000000000,
    "EVICT_LAST": 0x14F0000000000000,
}
"""What ``createpolicy.fractional`` gives for a whole access on sm_90 (CUTLASS: ``TMA::CacheHintSm90``)."""


def stage_copy(
    atom: TmaCopyAtom,
    src: Tensor,
    dst: Tensor,
    *,
    pred: Any = None,
    tma_bar_ptr: Any = None,
    mcast_mask: Any = None,
    cache_policy: Any = None,
    tma_desc_ptr: Any = None,
    mbar_ptr: Any = None,
) -> None:
    """``cute.copy`` between a TMA tensor and shared memory.

    A load's bytes count at the mbarrier ``tma_bar_ptr``; ``mcast_mask`` names the blocks of the cluster that receive
    a multicast. A store joins the bulk group that is open. ``tma_desc_ptr`` points to a tensor map in memory to copy by
    instead of the atom's own.
    """
    instruction = atom.instruction
    assert isinstance(instruction, TmaCopy)
    if mbar_ptr is not None:
        raise ConstraintError(f"cute.copy: {instruction} takes its mbarrier as tma_bar_ptr, not as mbar_ptr")
    if pred is not None:
        raise ConstraintError(f"cute.copy: {instruction} takes no pred; TMA itself leaves out what is outside")
    _outside_elect_one(instruction, "cute.copy")
    if isinstance(instruction, TmaLoad):
        _check_sides(atom, dst, src, "cute.copy(atom, TMA tensor, shared-memory tensor, tma_bar_ptr=...)")
        shared = _load_operands(instruction, tma_bar_ptr, mcast_mask)
        return _stage(atom, instruction, dst, src, shared, cache_policy, tma_desc_ptr)
    for name, value in (("tma_bar_ptr", tma_bar_ptr), ("mcast_mask", mcast_mask)):
        if value is not None:
            raise ConstraintError(
                f"cute.copy: {instruction} takes no {name}; wait for its group with cute.arch.cp_async_bulk_wait_group"
            )
    _check_sides(atom, src, dst, "cute.copy(atom, shared-memory tensor, TMA tensor)")
    return _stage(atom, instruction, src, dst, [], cache_policy, tma_desc_ptr)


def stage_prefetch(atom: TmaCopyAtom, src: Tensor, cache_policy: Any = None, tma_desc_ptr: Any = None) -> None:
    """``cute.prefetch``: the boxes of a partitioned TMA tensor to the L2 cache."""
    if not isinstance(src, Tensor) or not src.is_coordinate:
        raise ConstraintError(f"cute.prefetch takes a TMA tensor that tma_partition has partitioned, not {src}")
    load = atom.instruction
    assert isinstance(load, TmaCopy)
    instruction = TmaPrefetch(load.bits, load.rank)
    _outside_elect_one(instruction, "cute.prefetch")
    shared = []
    if cache_policy is not None:
        instruction, shared = dataclasses.replace(instruction, hint=True), [cache_policy_value(cache_policy)]
    operands = [c for step in _boxes(atom, src, "TMA") for c in _coordinates(instruction, src, step)]
    source = atom.tensor_map if tma_desc_ptr is None else tma_desc_ptr.value()
    count = len(operands) // instruction.rank
    Builder.current().call(instruction, [source, *shared, *operands], count=count)


def _outside_elect_one(instruction: TmaCopy, what: str) -> None:
    if inside("elect_one block"):
        raise ConstraintError(
            f"{what}: {instruction} is called by a whole warp and elects the thread that issues; inside "
            "`with elect_one():` it would wait for the other 31 forever: move it out of the block"
        )


def _coordinates(instruction: TmaCopy, tensor: Tensor, step: Any) -> list[Value]:
    """The TMA coordinate of a box as operands."""
    coordinates = flatten_to_tuple(add_coords(tensor.engine, step))
    return [Int32(_whole(c)).ir_value() for c in (*coordinates, *[0] * (instruction.rank - len(coordinates)))]


def _load_operands(instruction: TmaLoad, tma_bar_ptr: Any, mcast_mask: Any) -> list[Value]:
    """The mbarrier, and the mask of a multicast."""
    if not isinstance(tma_bar_ptr, Pointer):
        raise ConstraintError(
            f"{instruction}: a load completes on an mbarrier; give it as tma_bar_ptr (a pointer to Int64 in shared "
            "memory, such as pipeline.producer_get_barrier(state))"
        )
    if instruction.multicast:
        if mcast_mask is None:
            raise ConstraintError(
                f"{instruction}: give the blocks that receive as mcast_mask (create_tma_multicast_mask)"
            )
        return [tma_bar_ptr.value(), Int16(mcast_mask).ir_value()]
    # A mask that is made at run time may be given to all loads of a cluster: this one brings to one block only.
    if isinstance(unwrap(mcast_mask), int) and unwrap(mcast_mask):
        raise ConstraintError(
            f"{instruction}: takes no mcast_mask; make the atom with CopyBulkTensorTileG2SMulticastOp and num_multicast"
        )
    return [tma_bar_ptr.value()]


def _check_sides(atom: TmaCopyAtom, smem: Tensor, gmem: Tensor, usage: str) -> None:
    if not gmem.is_coordinate:
        raise ConstraintError(
            f"{atom.instruction}: the global side is the TMA tensor that make_tiled_tma_atom gives beside the atom, "
            f"partitioned by tma_partition, not {gmem}: {usage}"
        )
    if smem.is_coordinate or smem.memspace is not AddressSpace.smem:
        raise ConstraintError(f"{atom.instruction}: the other side must be in shared memory, not {smem}: {usage}")
    _check_elements(atom, smem)


def _check_elements(atom: TmaCopyAtom, smem: Tensor) -> None:
    """Copies move bits: what is read as another type than was loaded gives wrong numbers and no error. Numbers of 8
    bits are let through (arrays of fp8 come as bytes), and so are integers of either sign, and TF32 for Float32."""
    held, moved = smem.element_type.ir_type, atom.scalar
    if expands(atom.plan.element):
        if held not in (U8, I8):
            raise ConstraintError(
                f"{atom.instruction}: 16 numbers of {class_of(moved)} take 16 bytes of shared memory, whose tensor is "
                f"one of Uint8, not of {smem.element_type}: allocate it for Uint8"
            )
        return
    integers = not held.is_float and not moved.is_float
    same = held == moved or integers or moved.width == 8 or (moved.is_float and held.is_float and moved.width == 32)
    if held.width == moved.width and same:
        return
    element_type = class_of(moved)
    hint = f"allocate it for {element_type}, or recast it: cute.recast_tensor(tensor, {element_type})"
    if smem.element_type is Int32:
        hint += "; the element_type of a TMA tensor is Int32, that of its coordinates: take the atom's value_type"
    raise ConstraintError(
        f"{atom.instruction}: copies {element_type}, but the shared-memory tensor holds {smem.element_type}; {hint}"
    )


def _stage(
    atom: TmaCopyAtom, instruction: TmaCopy, smem: Tensor, gmem: Tensor, shared: list[Value], policy: Any, map_ptr: Any
) -> None:
    if policy is not None:
        instruction = dataclasses.replace(instruction, hint=True)
        shared = [*shared, cache_policy_value(policy)]
    places, steps = _boxes(atom, smem, "shared-memory"), _boxes(atom, gmem, "TMA")
    if len(places) != len(steps):
        raise ConstraintError(
            f"{instruction}: {len(steps)} boxes of {gmem.layout} against {len(places)} of {smem.layout}: "
            "partition both "
            "with tma_partition"
        )
    _check_swizzle(atom, smem.engine)
    base, offset = smem.engine.unswizzled()
    base = base + offset
    operands: list[Value] = []
    for place, step in zip(places, steps, strict=True):
        operands += [(base + place).value(), *_coordinates(instruction, gmem, step)]
    source = atom.tensor_map if map_ptr is None else map_ptr.value()
    Builder.current().call(instruction, [source, *shared, *operands], count=len(places))


def cache_policy_value(policy: Any) -> Value:
    """A cache policy, by name or as the 64 bits that ``createpolicy`` gives, as an operand."""
    name = getattr(policy, "name", None)
    if isinstance(name, str):
        if name not in CACHE_POLICIES:
            raise ConstraintError(f"TMA has the cache policies {', '.join(CACHE_POLICIES)}, not {name}")
        policy = CACHE_POLICIES[name]
    return Int64(policy).ir_value()


def _boxes(atom: TmaCopyAtom, tensor: Tensor, side: str) -> list[Any]:
    """The layout's value for the first element of every box."""
    n, layout = atom.plan.elements_per_instruction, tensor.linear
    if not isinstance(layout, Layout) or not is_static(layout.shape) or size(layout) % n:
        raise ConstraintError(
            f"{atom.instruction}: copies boxes of {n} elements, which do not make up the {side} tensor {layout}: "
            "partition it with tma_partition and slice it to one tile"
        )
    first = layout
    while size(first) > n and isinstance(first.shape, tuple):
        first = first[0]
    if size(first) != n or (side != "TMA" and coalesce(first) != Layout(n)):
        raise ConstraintError(
            f"{atom.instruction}: copies boxes of {n} elements at a time, but mode 0 of the {side} tensor "
            f"{layout} is no "
            "such box: partition it with tma_partition"
        )
    return [layout(i * n) for i in range(size(layout) // n)]


def _check_swizzle(atom: TmaCopyAtom, pointer: Pointer) -> None:
    """The tensor map's swizzle is that of the shared-memory tensor."""
    swizzle, mode = pointer.swizzle, atom.plan.swizzle
    required = (2, 5, 2) if mode == ATOM_32B else (mode, 4, 3)
    held = (0, 4, 3) if swizzle is None or not swizzle.bits else (swizzle.bits, swizzle.base, swizzle.shift)
    if held != required:
        raise ConstraintError(
            f"{atom.instruction}: the atom was made for a shared-memory layout with {_swizzle_text(*required)}, but "
            f"the tensor has {_swizzle_text(*held)} ({pointer}): give both the same layout"
        )


def _swizzle_text(bits: int, base: int, shift: int) -> str:
    return f"the swizzle Sw<{bits},{base},{shift}> of bytes" if bits else "no swizzle"


def _whole(coordinate: Any) -> Any:
    """A coordinate as an integer: those of a coarser internal type are multiples of a fraction."""
    if not isinstance(coordinate, (int, Fraction)):
        return coordinate
    if coordinate.denominator != 1:
        raise ConstraintError(f"TMA: the coordinate {coordinate} is not a whole number of copied elements")
    return int(coordinate)
