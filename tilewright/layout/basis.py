"""Basis strides: steps through coordinates instead of memory.

``1@0`` is the unit step along mode 0, ``4@1`` four steps along mode 1, ``1@1@0`` one step along mode 1 *inside*
mode 0 (the innermost mode is written first, as CuTe prints it). A layout with basis strides maps a coordinate to a
coordinate; the identity layout of a shape is the simplest.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.ints import RuntimeInt, format_int, same_int


class ScaledBasis:
    """``value`` times the unit step along ``mode`` (an index, or a path of indices from the outside in).

    >>> ScaledBasis(4, 1), 3 * ScaledBasis(1, (0, 1)), ScaledBasis(2, 0) + ScaledBasis(3, 1)
    (4@1, 3@1@0, (2, 3))
    """

    __slots__ = ("mode", "value")
    value: Any
    mode: tuple[int, ...]

    def __init__(self, value: Any, mode: int | list[int] | tuple[int, ...]) -> None:
        if not isinstance(mode, (int, list, tuple)):
            raise TypeError(f"ScaledBasis({value!r}, {mode!r}): a mode is an index or a list of indices")
        self.value = value
        self.mode = (mode,) if isinstance(mode, int) else tuple(mode)

    def is_static(self) -> bool:
        return not isinstance(self.value, RuntimeInt)

    def to_tuple(self) -> Any:
        """The step as a coordinate: ``4@1`` is ``(0,4)``."""
        result = self.value
        for i in reversed(self.mode):
            result = (0,) * i + (result,)
        return result

    def __mul__(self, other: Any) -> ScaledBasis:
        return ScaledBasis(self.value * other, self.mode)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> ScaledBasis:
        return ScaledBasis(self.value // other, self.mode)

    def __neg__(self) -> ScaledBasis:
        return ScaledBasis(-self.value, self.mode)

    def __abs__(self) -> ScaledBasis:
        return ScaledBasis(abs(self.value) if isinstance(self.value, int) else self.value, self.mode)

    def __add__(self, other: Any) -> Any:
        return add_coords(self, other)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScaledBasis) and self.mode == other.mode and same_int(self.value, other.value)

    def __hash__(self) -> int:
        return hash((self.value, self.mode))

    def __repr__(self) -> str:
        return format_int(self.value) + "".join(f"@{i}" for i in reversed(self.mode))


def E(mode: int | list[int] | tuple[int, ...]) -> ScaledBasis:
    """The unit step along ``mode``.

    >>> E(0), E((1, 0))
    (1@0, 1@0@1)
    """
    return ScaledBasis(1, mode)


def basis_value(e: Any) -> Any:
    """The scale of a basis stride; other leaves are their own value.

    >>> from tilewright.layout import make_identity_layout
    >>> basis_value(make_identity_layout((4, 8)).stride[1]), basis_value(7)
    (1, 7)
    """
    return e.value if isinstance(e, ScaledBasis) else e


def basis_get(basis: Any, t: Any) -> Any:
    """The part of the tree ``t`` that a basis stride points to.

    >>> basis_get(E((1, 0)), (2, (3, 4)))
    3
    """
    if not isinstance(basis, ScaledBasis):
        return t
    part = t
    for i in basis.mode:
        if i >= (len(part) if isinstance(part, tuple) else 1):
            raise LayoutError(f"{basis} points to a mode that {t} does not have")
        part = part[i] if isinstance(part, tuple) else part
    return part


def make_basis_like(shape: Any) -> Any:
    """Unit steps in the profile of ``shape``.

    >>> make_basis_like((4, (2, 3)))
    (1@0, (1@0@1, 1@1@1))
    """

    def walk(s: Any, path: tuple[int, ...]) -> Any:
        if isinstance(s, tuple):
            return tuple([walk(x, (*path, i)) for i, x in enumerate(s)])
        return ScaledBasis(1, path) if path else 1

    return walk(shape, ())


def add_coords(a: Any, b: Any) -> Any:
    """Sum of two results of a layout: ints, basis steps or coordinates (shorter coordinates are padded with 0).

    >>> add_coords((1, 2), ScaledBasis(3, 1)), add_coords(0, (1, (2,)))
    ((1, 5), (1, (2,)))
    """
    if isinstance(a, ScaledBasis):
        a = a.to_tuple()
    if isinstance(b, ScaledBasis):
        b = b.to_tuple()
    if isinstance(a, tuple) and isinstance(b, tuple):
        n = max(len(a), len(b))
        return tuple(map(add_coords, a + (0,) * (n - len(a)), b + (0,) * (n - len(b))))
    if isinstance(a, tuple) or isinstance(b, tuple):
        tree, scalar = (a, b) if isinstance(a, tuple) else (b, a)
        if isinstance(scalar, int) and scalar == 0:
            return tree
        raise LayoutError(f"the offset {scalar} and the coordinate {tree} cannot be added")
    return a + b
