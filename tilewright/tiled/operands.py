"""Checks of what the makers of tiled operations are given."""

from __future__ import annotations

import warnings
from typing import Any

from tilewright.errors import HOW_STATIC, ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.types import F32, TF32, ScalarType
from tilewright.lang.device.threads import block_shape
from tilewright.lang.staging.ranges import HintWarning
from tilewright.lang.staging.unrolling import register_number
from tilewright.lang.tensors.registers import Registers
from tilewright.layout import Layout, is_static, product, rank, recast_layout, size


def need(who: str, x: Any, kind: type, words: str) -> None:
    """Refuse an operand of another kind than ``who`` takes."""
    if not isinstance(x, kind):
        raise ConstraintError(f"{who} takes {words}, not {x!r} ({type(x).__name__})")


def need_type(instruction: Any, role: str, x: Any, required: ScalarType) -> None:
    """Refuse a tensor of other elements than the instruction's operand has; float32 serves as tf32."""
    dtype = x.element_type.ir_type
    if dtype != required and {dtype, required} != {F32, TF32}:
        raise ConstraintError(f"{instruction}: {role} must hold {required}, but {x} holds {dtype}")


def need_thread(who: str, thr_idx: Any, threads: int) -> None:
    """Refuse a thread that is known not to be there, and warn of a block that has fewer threads than ``who``."""
    if isinstance(thr_idx, tuple):
        raise ConstraintError(
            f"get_slice: {who} numbers its threads by one integer, and this is a tuple: take one of the three numbers "
            "of thread_idx(), as in tidx, _, _ = cute.arch.thread_idx()"
        )
    block = block_shape() if Builder.active() and not isinstance(thr_idx, int) else None
    if block is not None and product(block) < threads:
        warnings.warn(
            f"get_slice: {who} is for {threads} threads, and the launch has blocks of {product(block)}: the parts of "
            f"other threads are left out, unless the slices of several numbers are taken. Launch {threads} threads, or "
            f"make {who} for {product(block)}",
            HintWarning,
            stacklevel=3,
        )
    if isinstance(thr_idx, int) and not 0 <= thr_idx < threads:
        raise ConstraintError(f"get_slice: there is no thread {thr_idx} among the {threads} of {who}")


def need_tv(who: str, layout: Any) -> None:
    """Refuse anything but a layout (thread, value) -> coordinate."""
    need(who, layout, Layout, "a layout (thread, value) -> coordinate")
    if rank(layout) != 2:
        raise ConstraintError(f"{who} takes a layout of two modes (thread, value) -> coordinate, not {layout}")
    if not is_static(layout):
        raise ConstraintError(f"{who}: the layout (thread, value) -> coordinate {layout} must be known while staging")


def checked_tiler(tiler: Any) -> tuple[Any, ...]:
    """A tile as a tuple of extents, shapes or layouts."""
    modes = tiler if isinstance(tiler, tuple) else (tiler,)
    for mode in modes:
        if not is_tiler(mode):
            raise ConstraintError(f"a tile has a positive extent, a shape or a layout for each mode, not {tiler!r}")
    return modes


def is_tiler(mode: Any) -> bool:
    """Whether ``mode`` is a positive int, a shape of them, or a layout."""
    if isinstance(mode, tuple):
        return all(is_tiler(part) for part in mode)
    return isinstance(mode, Layout) or isinstance(mode, int) and not isinstance(mode, bool) and mode > 0


def check_mma_operands(atom_layout: Layout, tile: Any, permutation: tuple[Any, ...]) -> None:
    """Refuse atoms that share a warp's place, and permutations that are not a tile (M, N, K)."""
    if rank(atom_layout) > 3:
        raise ConstraintError(f"atom_layout_mnk: {atom_layout} has more modes than M, N and K")
    places = {atom_layout(i) for i in range(size(atom_layout))} if is_static(atom_layout) else None
    if places is not None and len(places) != size(atom_layout):
        raise ConstraintError(
            f"atom_layout_mnk: {atom_layout} gives {size(atom_layout)} atoms only {len(places)} warps (or threads): "
            "two atoms cannot be one"
        )
    if len(permutation) > 3 or not all(mode is None or is_tiler(mode) for mode in permutation):
        raise ConstraintError(
            f"permutation_mnk: {tile!r} is not a tile (M, N, K) of positive extents, layouts, or None by mode"
        )
    for mode, name in zip(permutation, "MNK", strict=False):
        if isinstance(mode, Layout) and is_static(mode):
            if len({mode(i) for i in range(size(mode))}) != size(mode):
                raise ConstraintError(f"permutation_mnk: {mode} along {name} takes an element twice")


def register_operand(instruction: Any, role: str, x: Any) -> tuple[Any, Layout, int]:
    """(fragment, layout, offset) of an operand whose place is static."""
    registers = x.engine
    if not isinstance(registers, Registers):
        maker = f"make_fragment_{role.replace('D', 'C')}"
        where = f"{x.linear} must be in registers, not in {x.memspace}"
        raise ConstraintError(f"{instruction}: {role} {where}: use {maker}")
    if not is_static(x.linear):
        raise ConstraintError(
            f"{instruction}: registers are named by static numbers, but the layout of {role} {x} is not known: "
            f"{HOW_STATIC}"
        )
    offset = register_number(registers.offset, f"{instruction}: registers are named by static numbers, but {role} {x}")
    own = registers.elem.width
    if own == 8 and registers.dtype.ir_type.packed:  # numbers without gaps: the instruction sees their bytes
        width = registers.dtype.width
        return registers.frag, recast_layout(8, width, x.linear), offset * width // 8
    if own != registers.dtype.width:
        raise ConstraintError(
            f"{instruction}: {role} is a view of {own}-bit registers as {registers.dtype}: copy it to a fragment of "
            "its own type"
        )
    return registers.frag, x.linear, offset
