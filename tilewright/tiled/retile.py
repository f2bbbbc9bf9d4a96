"""Retile derived from inverse and composition: the registers of one partition seen with the coordinates of another.

Let ``gA`` and ``gC`` be one thread's parts of the same tensor under two partitions: maps from each partition's
coordinates to memory offsets, over the same elements. Memory is the bridge between them::

    gC coordinate --gC--> memory offset --left_inverse(gA)--> gA coordinate --rA--> register

so that ``rC = rA o (left_inverse(gA) o gC)``. Two shortcuts are wrong: ``make_layout(gC.shape)`` numbers the registers
in gC's own order and reads the wrong ones, and a fragment made like ``gC`` is right but costs more registers.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError, LayoutError
from tilewright.layout import Layout, composition, left_inverse, size
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
    given = layout_of(rC)
    wanted: Layout = layout_of(retile_through(layout_of(rA), gA, gC))
    for i in range(size(wanted)):
        if given(i) != wanted(i):
            raise ConstraintError(
                f"retile: coordinate {i} of {layout_of(gC)} is register {wanted(i)}, but {given} names register "
                f"{given(i)}: "
                f"use thr_copy.retile(rA), which gives {wanted}"
            )
