"""Retile derived from inverse and composition: the registers of one partition seen with the coordinates of another.

Let ``gA`` and ``gC`` be one thread's parts of the same tensor under two partitions: maps from each partition's
coordinates to memory offsets, over the same elements. Memory is the bridge between them::

    gC coordinate --gC--> memory offset --left_inverse(gA)--> gA coordinate --rA--> register

so that ``rC = rA o (left_inverse(gA) o gC)``. Two shortcuts are wrong: ``make_layout(gC.shape)`` numbers the registers
in gC's own order and reads the wrong ones (``cute.copy`` refuses it for an MMA's fragment and the copy made for this
MMA), and a fragment made like ``gC`` is right but costs more registers (``analyse_fragments`` tells how many).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tilewright.errors import ConstraintError, LayoutError
from tilewright.layout import Layout, composition, is_static, left_inverse, make_layout, rank, size
from tilewright.layout.evaluate import static_offsets
from tilewright.tiled.provenance import Partition, fragment_of, partition_of
from tilewright.tiled.views import layout_of, rearranged


def retile_through(rA: Any, gA: Any, gC: Any) -> Any:
    """The registers ``rA`` (a tensor or layout with the shape of ``gA``) with the coordinates of ``gC``.

    Raises ConstraintError when the two partitions give the thread different elements.

    >>> gA, gC = Layout((2, 2, 2), (1, 8, 16)), Layout((2, 4), (1, 8))
    >>> retile_through(Layout((2, 2, 2)), gA, gC)
    (2,4):(1,2)
    """
    a, c = layout_of(gA), layout_of(gC)
    if size(a) != size(c):
        raise ConstraintError(f"retile: one partition has {size(a)} elements ({a}), the other {size(c)} ({c})")
    try:
        to_a = composition(left_inverse(a), c)
        if any(to_a(i) >= size(a) or a(to_a(i)) != c(i) for i in range(size(c))):
            raise ConstraintError(f"retile: the partitions {a} and {c} give a thread different elements of the tensor")
        return rearranged(rA, lambda layout: composition(layout, to_a))
    except LayoutError as error:
        raise ConstraintError(f"retile: no layout leads from {c} through {a} to the registers: {error}") from error


def check_retiled(rC: Any, rA: Any, gA: Any, gC: Any) -> None:
    """Raise ConstraintError when ``rC`` does not name, for each coordinate of ``gC``, the register that holds it.

    Catches the natural layout of ``gC``'s shape put on ``rA``'s registers.

    >>> gA, gC = Layout((2, 2), (1, 8)), Layout((2, 2), (8, 1))
    >>> check_retiled(Layout((2, 2)), Layout((2, 2)), gA, gC)
    Traceback (most recent call last):
    ...
    tilewright.errors.ConstraintError: retile: coordinate 1 of (2,2):(8,1) is register 2, but (2,2):(1,2) names register
    1: use thr_copy.retile(rA), which gives (2,2):(2,1)
    """
    layout = layout_of(rC)
    required: Layout = layout_of(retile_through(layout_of(rA), gA, gC))
    for i in range(size(required)):
        if layout(i) != required(i):
            raise ConstraintError(
                f"retile: coordinate {i} of {layout_of(gC)} is register {required(i)}, but {layout} names register "
                f"{layout(i)}: use thr_copy.retile(rA), which gives {required}"
            )


def check_registers(copy: Any, registers: Any, numbers: tuple[tuple[int, ...], ...], memory: Any, steps: Any) -> None:
    """Refuse a view of an MMA's fragment that hands the copy made for this MMA other registers than ``retile`` would.

    ``numbers`` are the registers that each instruction gets, ``steps`` the layout of its addresses in ``memory``. A
    view of a part may skip instructions, but not mix them, and must skip the same in memory.
    """
    made_for, provenance = getattr(copy, "operand_of", None), fragment_of(registers.engine)
    if made_for is None or provenance is None or registers.engine.is_recast:
        return
    mma, operand, fragment = provenance
    if (mma._key(), operand) != (made_for[0]._key(), made_for[1]) or rank(fragment) < 3:
        return
    step = len(numbers[0])
    required, place = _instructions(copy, fragment, step)
    inside, view = size(required[0]) // step, size(_first(registers.linear))
    together = inside if view == size(required[0]) else 1  # instructions that a slice of rest modes keeps together
    places = [place.get(group, -1) for group in numbers]
    wrong = _first_out_of_order(places, len(place), together)
    if wrong is None:
        wrong = _first_elsewhere(places, len(place), partition_of(memory, copy), rank(required), steps)
    if wrong is not None:
        raise ConstraintError(
            f"{copy.instruction}: the registers {registers.linear} are a fragment of {operand} of {mma.instruction}, "
            f"{fragment}, seen in another order than this copy moves them: instruction {wrong} would get the "
            f"registers {list(numbers[wrong])}. Use thr_copy.retile(fragment), which gives {required}, and slice that"
        )


@lru_cache(256)
def _instructions(copy: Any, fragment: Layout, step: int) -> tuple[Layout, dict[tuple[int, ...], int]]:
    """The result of ``retile``, and the place in its order of every instruction's ``step`` registers."""
    required: Layout = copy.retile(fragment)
    order = static_offsets(required)
    return required, {order[i : i + step]: i // step for i in range(0, len(order), step)}


def _first_out_of_order(places: list[int], count: int, together: int) -> int | None:
    """The first of ``places`` (among ``count`` in order; -1: none of them) that no slice of the whole would have."""
    last = -1
    for i, at in enumerate(places):
        if len(places) == count:
            fits = at == i
        elif i % together:
            fits = at == last + 1
        else:
            fits = at > last and at % together == 0
        if not fits:
            return i
        last = at
    return None


def _first_elsewhere(places: list[int], count: int, origin: Partition | None, modes: int, steps: Any) -> int | None:
    """The first instruction whose address is not as far from the first one's as in the whole partition."""
    if origin is None or not isinstance(origin.part, Layout) or rank(origin.part) < modes:
        return None
    part = make_layout(*[origin.part[mode] for mode in range(modes)])  # a fragment has no stages
    if not is_static(part) or not is_static(steps) or size(part) % count:
        return None
    starts, offsets = static_offsets(part)[:: size(part) // count], static_offsets(steps)
    for i, at in enumerate(places):
        if offsets[i] - offsets[0] != starts[at] - starts[places[0]]:
            return i
    return None


def _first(layout: Layout) -> Layout:
    return layout[0] if isinstance(layout.shape, tuple) else layout
