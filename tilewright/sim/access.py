"""One kind of memory access, prepared at load time: element type, count, and the width of the machine's accesses."""

from __future__ import annotations

import numpy as np

from tilewright.errors import byte_count
from tilewright.ir.types import ScalarType

WIDEST = 16
ITEMS = tuple(np.dtype(name) for name in ("u1", "u2", "u4", "u8", "c16"))  # by log2 of the width in bytes


class VectorAccess:
    """``n`` contiguous elements of type ``elem`` at a pointer that is known to be ``align``-aligned.

    The machine makes one access of ``nbytes`` if the alignment allows it, else ``parts`` accesses of ``width`` bytes.
    ``scalar`` ones give ``[L]``, others ``[L, n]``.
    """

    __slots__ = ("elem", "dtype", "n", "scalar", "nbytes", "width", "shift", "parts", "steps", "item", "bool_")

    def __init__(self, elem: ScalarType, n: int, align: int, scalar: bool) -> None:
        self.elem = elem
        self.dtype = elem.dtype
        self.n = n
        self.scalar = scalar
        self.nbytes = n * elem.bytes
        # The widest accesses that the alignment allows and that fill the bytes without a rest.
        width = min(WIDEST, align & -align)
        while self.nbytes % width:
            width //= 2
        self.width = width
        self.shift = width.bit_length() - 1
        self.parts = self.nbytes // width
        self.steps = np.arange(self.parts, dtype=np.int64)
        self.item = ITEMS[self.shift]
        self.bool_ = elem.kind == "bool"

    def describe(self) -> str:
        what = str(self.elem) if self.n == 1 else f"{self.n} x {self.elem}"
        return f"{what} ({byte_count(self.nbytes)})"

    def decode(self, items: np.ndarray) -> np.ndarray:
        """Items ``[A]`` or ``[A, parts]`` as elements ``[A]`` or ``[A, n]``."""
        elements = items.view(np.uint8) != 0 if self.bool_ else items.view(self.dtype)
        return elements.reshape(-1) if self.scalar else elements.reshape(-1, self.n)

    def encode(self, elements: np.ndarray) -> np.ndarray:
        """Elements ``[A]`` or ``[A, n]`` as items ``[A]``, or ``[A, parts]`` when there are several."""
        items = np.ascontiguousarray(elements, self.dtype).reshape(-1, self.n).view(self.item)
        return items.reshape(-1) if self.parts == 1 else items.reshape(-1, self.parts)

    def encode_as(self, dtype: np.dtype, elements: np.ndarray) -> np.ndarray:
        """The same as items of another type, such as the rows of whole warps."""
        items = self.encode(elements)
        return items if items.dtype == dtype else items.reshape(-1).view(dtype)


_accesses: dict[tuple[ScalarType, int, int, bool], VectorAccess] = {}


def access_of(elem: ScalarType, count: int, align: int, scalar: bool) -> VectorAccess:
    """The access with these properties, made once."""
    key = (elem, count, align, scalar)
    access = _accesses.get(key)
    if access is None:
        access = _accesses[key] = VectorAccess(elem, count, align, scalar)
    return access
