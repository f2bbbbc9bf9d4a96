"""Tensor maps: TMA's description of a tensor in global memory (``CUtensorMap``), its rules, and how one is made at a
launch.

A :class:`TensorMapTemplate` holds what is known while staging; called with an address and the run-time extents and
strides it gives the :class:`TensorMap` that a kernel takes as a parameter. Both machines take the same object: the GPU
machine encodes it through the driver, the simulator keeps its fields in the 128 bytes (:meth:`TensorMap.image`), where
instructions that change a tensor map in memory find them.

Modes are counted as TMA does, the contiguous one first. Rules: CUDA driver API, ``cuTensorMapEncodeTiled``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tilewright.errors import ArgumentError
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import B4X16, EXPANDED, SCALARS, U64, ScalarType, VecType

if TYPE_CHECKING:
    import numpy as np

TENSOR_MAP = VecType(U64, 16)
"""The type of a tensor map's value: 128 bytes, aligned to 64."""
BYTES = 128
RANK, LONGEST_BOX, LARGEST_EXTENT, LARGEST_STRIDE = 5, 256, 1 << 32, 1 << 40
SWIZZLE_SPANS = (0, 32, 64, 128, 128)
"""Bytes of a row that a swizzle mode permutes: none, 32B, 64B, 128B (the mode is the number of xored bits), and
128B_ATOM_32B, which exchanges chunks of 32 bytes."""
ATOM_32B = 4
GROUP = 128
"""Numbers of 4 and 6 bits that TMA expands (``EXPANDED``): a box is so many wide, and they come in multiples of it."""
CORNER_BITS = {3: 16, 4: 8, 5: 5}
"""The bits of a corner (signed), and of an offset (unsigned), of im2col copies, by the rank of the tensor."""
MOST_CHANNELS, MOST_PIXELS, LONGEST_STEP = 256, 1024, 8
REMEMBERED = 1024
_ELEMENTS = (*SCALARS.values(), B4X16, *EXPANDED.values())


def swizzle_name(swizzle: int) -> str:
    return f"{SWIZZLE_SPANS[swizzle]}B{'_ATOM_32B' if swizzle == ATOM_32B else ''}" if swizzle else "NONE"


def expands(element: ScalarType) -> bool:
    """Whether numbers of this type take more of shared than of global memory."""
    return element in EXPANDED.values()


def place_bits(element: ScalarType) -> int:
    """The bits of shared memory that an element takes."""
    return 8 if expands(element) else element.width


def row_bytes(element: ScalarType, extent: int, swizzle: int) -> tuple[int, int]:
    """The bytes of a box's row of ``extent`` elements in shared memory, and those from one row to the next: under a
    swizzle a row takes the swizzle's whole span, also where it is shorter (CUDA programming guide, "Tensor memory
    access"; so does an H200).

    >>> from tilewright.ir.types import F16
    >>> row_bytes(F16, 24, 0), row_bytes(F16, 24, 3)
    ((48, 48), (48, 128))
    """
    row = extent * place_bits(element) // 8
    return row, max(row, SWIZZLE_SPANS[swizzle])


def alignment_of(element: ScalarType) -> int:
    """The bytes of which the tensor's address and strides are multiples."""
    return 32 if expands(element) else 16


class Im2col(NamedTuple):
    """How an im2col copy goes through the pixels of images, by mode, W first: from ``lower`` to the last pixel plus
    ``upper``, in ``steps`` (PTX ISA, "im2col mode"). The box of such a map is (channels of a pixel, pixels).

    >>> Im2col((-1, -1), (-1, -1), (1, 1)).pixels((64, 9, 14, 2))
    (9, 14)
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    steps: tuple[int, ...]

    def pixels(self, dims: Sequence[int]) -> tuple[int, ...]:
        """How many pixels there are along each mode, of a tensor (C, W, H.., N)."""
        modes = zip(dims[1:-1], self.lower, self.upper, self.steps, strict=True)
        return tuple((n + upper - lower - 1) // step + 1 for n, lower, upper, step in modes)


class CopiedMap(Protocol):
    """What a copy must fit, of a tensor map or of the template of one."""

    @property
    def element(self) -> ScalarType: ...
    @property
    def box(self) -> tuple[int, ...]: ...
    @property
    def im2col(self) -> Im2col | None: ...
    @property
    def rank(self) -> int: ...


class TensorMap:
    """One tensor in global memory as TMA sees it: ``dims`` elements along each mode, ``strides`` in bytes for all modes
    but the first, which is contiguous; ``box`` elements move at a time. ``swizzle`` 0 to 4: see ``SWIZZLE_SPANS``.
    ``im2col``: of a map for im2col copies.

    >>> from tilewright.ir.types import F16
    >>> TensorMap(0x1000, F16, (64, 8), (128,), (32, 8), 2)
    tensor map of (64,8) x f16 at 0x1000, strides (128) bytes, box (32,8), swizzle 64B
    """

    __slots__ = ("box", "dims", "element", "encoded", "im2col", "pointer", "strides", "swizzle")

    def __init__(
        self,
        pointer: DevicePointer | int,
        element: ScalarType,
        dims: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
        swizzle: int = 0,
        im2col: Im2col | None = None,
    ) -> None:
        self.pointer = pointer
        self.element = element
        self.dims, self.strides, self.box = tuple(dims), tuple(strides), tuple(box)
        self.swizzle, self.im2col = swizzle, im2col
        self.encoded: bytes | None = None
        """The encoded descriptor; filled in by the GPU machine."""

    def at(self, address: int) -> TensorMap:
        """The same of a tensor at another address."""
        return TensorMap(address, self.element, self.dims, self.strides, self.box, self.swizzle, self.im2col)

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def address(self) -> int:
        return self.pointer if isinstance(self.pointer, int) else self.pointer.address

    @property
    def box_bytes(self) -> int:
        """Bytes that one copy brings; what is outside the tensor arrives as zeros and counts, too."""
        return math.prod(self.box) * self.element.width // 8

    @property
    def place_bytes(self) -> int:
        """Bytes of shared memory that a box takes; more than ``box_bytes`` where TMA expands the elements, or where
        rows are shorter than the swizzle's span."""
        return math.prod(self.box[1:]) * row_bytes(self.element, self.box[0], self.swizzle)[1]

    @property
    def tensor_bytes(self) -> int:
        """Bytes from the tensor's first to its last element."""
        rows = sum((n - 1) * d for n, d in zip(self.dims[1:], self.strides, strict=True))
        return rows + -(-self.dims[0] * self.element.width // 8)

    def image(self) -> np.ndarray[Any, Any]:
        """The fields in 16 words of 64 bits, as the simulator keeps a tensor map in memory."""
        import numpy as np

        words = np.zeros(16, np.uint64)
        words[ADDRESS] = self.address
        kind = _ELEMENTS.index(self.element)
        words[KIND] = _MAGIC | kind << 16 | self.swizzle << 8 | self.rank
        words[DIMS : DIMS + self.rank] = self.dims
        words[STRIDES : STRIDES + self.rank - 1] = self.strides
        for i, n in enumerate(self.box):
            words[BOX + i // 4] |= np.uint64(n << 16 * (i % 4))
        if self.im2col is not None:
            words[KIND] |= np.uint64(_IM2COL)
            for word, numbers in zip((*PIXELS, BOX + 1), self.im2col, strict=True):
                words[word] = sum((n & 0xFFFF) << 16 * i for i, n in enumerate(numbers))
        return words

    @staticmethod
    def of_image(words: np.ndarray[Any, Any]) -> TensorMap | None:
        """The tensor map in 16 words; None if there is no tensor map."""
        kind = int(words[KIND])
        rank = kind & 0xFF
        if kind >> 32 << 32 != _MAGIC or not 1 <= rank <= RANK:
            return None
        element = _ELEMENTS[kind >> 16 & 0xFF]
        im2col = _im2col_of(words, rank - 2) if kind & _IM2COL else None
        extents = rank if im2col is None else 2
        box = [int(words[BOX + i // 4]) >> 16 * (i % 4) & 0xFFFF for i in range(extents)]
        dims, strides = words[DIMS : DIMS + rank].tolist(), words[STRIDES : STRIDES + rank - 1].tolist()
        return TensorMap(int(words[ADDRESS]), element, dims, strides, box, kind >> 8 & 0xFF, im2col)

    def __repr__(self) -> str:
        dims, strides, box = (f"({','.join(map(str, x))})" for x in (self.dims, self.strides, self.box))
        return (
            f"tensor map of {dims} x {self.element} at {self.address:#x}, strides {strides} bytes, box {box}, "
            f"swizzle {swizzle_name(self.swizzle)}{f', {self.im2col}' if self.im2col else ''}"
        )


def _im2col_of(words: np.ndarray[Any, Any], modes: int) -> Im2col:
    """What an image says of an im2col copy."""
    numbers = [
        tuple((int(words[word]) >> 16 * i & 0xFFFF ^ 0x8000) - 0x8000 for i in range(modes))
        for word in (*PIXELS, BOX + 1)
    ]
    return Im2col(*numbers)


# Words of the image. The extent that takes 33 bits (2^32) is the reason for whole words.
ADDRESS, KIND, DIMS, STRIDES, BOX, PIXELS = 0, 1, 2, 7, 11, (13, 14)
_IM2COL = 1 << 24
_MAGIC = 0x7E50A3A9 << 32


class Leaf(NamedTuple):
    """An extent or stride of the tensor: ``value``, or the run-time number at ``place`` among those of a launch."""

    value: int
    place: int = -1

    def of(self, values: Sequence[int]) -> int:
        return self.value if self.place < 0 else values[self.place]


class ModePart(NamedTuple):
    """The contribution of one mode of the tensor to a TMA mode. ``contiguous``: its stride is 1, known while
    staging."""

    mode: str
    """How the user's tensor calls it: ``mode 0``, ``mode (1,0)``."""
    extent: Leaf
    stride: Leaf
    contiguous: bool


@dataclass(frozen=True)
class TensorMapTemplate:
    """All of a tensor map but its address and the run-time numbers.

    ``source`` is the element type of the tensor, ``element`` the type that TMA copies; ``modes`` says for each TMA mode
    what it is made of; ``scales`` are the parts whose steps in a shared last mode are known at the launch only.
    """

    name: str
    source: ScalarType
    element: ScalarType
    modes: tuple[tuple[ModePart, ...], ...]
    box: tuple[int, ...]
    swizzle: int
    scales: tuple[ModePart, ...] = ()
    tensor: str = ""
    im2col: Im2col | None = None
    known: dict[tuple[int, ...], tuple[Any, ...]] = field(default_factory=dict, compare=False, repr=False)
    """What was made for (address, *values) on a GPU; the generated host code looks here first."""

    @property
    def rank(self) -> int:
        return len(self.modes)

    def __call__(self, pointer: DevicePointer | int, *values: int) -> tuple[Any, ...]:
        """``(tensor map, *scales)`` of one launch; what was made before for the same numbers is given again.

        Raises ArgumentError for an address, extent or stride that TMA cannot take.
        """
        key = (int(pointer), *values)
        made = self.known.get(key)
        if made is None:
            made = self.make(pointer, values)
            if isinstance(pointer, int) or pointer.device != "cpu":  # the simulator needs the live array
                if len(self.known) >= REMEMBERED:
                    self.known.clear()
                self.known[key] = made
        return made

    def make(self, pointer: DevicePointer | int, values: Sequence[int]) -> tuple[Any, ...]:
        """The same, made again."""
        kept = pointer if isinstance(pointer, int) or pointer.device == "cpu" else pointer._replace(owner=None)
        dims, strides = self.dims_and_strides(values)
        problem = self.part_problem(values)
        # Nothing steps along an extent of 1, whose stride DLPack sets to 1.
        strides[1:] = [16 if n == 1 and d % 16 else d for n, d in zip(dims[1:], strides[1:], strict=True)]
        problem = problem or self.problem(kept if isinstance(kept, int) else kept.address, dims, strides)
        if problem:
            raise ArgumentError(f"{self.name}: {problem}")
        made = TensorMap(kept, self.element, dims, strides[1:], self.box, self.swizzle, self.im2col)
        return (made, *(self.scale(part, values, strides[-1]) for part in self.scales))

    def dims_and_strides(self, values: Sequence[int]) -> tuple[list[int], list[int]]:
        """The extent of every TMA mode, and its stride in bytes.

        Modes of the tensor that share a TMA mode step by the greatest common divisor of their strides.
        """
        dims, strides, bits = [], [], self.source.memory_bits
        for parts in self.modes:
            extent, step = 1, 0
            for part in parts:
                n, d = part.extent.of(values), part.stride.of(values) * bits // 8
                if part.contiguous:  # counted in elements of the copied type
                    n, d = n * bits // self.element.width, self.element.bytes
                common = math.gcd(step, d)
                if common == 0:
                    extent = n
                else:
                    extent = (extent - 1) * (step // common) + (n - 1) * (d // common) + 1
                step = common
            dims.append(extent)
            strides.append(step)
        return dims, strides

    def part_problem(self, values: Sequence[int]) -> str:
        """The first rule that a mode of the tensor breaks which its TMA mode does not show; empty if none."""
        for part in self.doubtful_parts:
            extent, stride = part.extent.of(values), part.stride.of(values)
            if stride < 0 and extent > 1:
                return f"the stride of {part.mode} of {self.tensor} is negative ({stride}); TMA steps forwards only"
            if not part.contiguous and stride * self.source.memory_bits % 8:
                return f"the stride of {part.mode} of {self.tensor} is {stride} elements: no whole number of bytes"
            if part.contiguous and extent * self.source.memory_bits % self.element.width:
                return (
                    f"the {extent} elements of {self.source} along {part.mode} of {self.tensor} are not a whole number "
                    f"of {self.element}, which TMA copies: take a smaller internal_type"
                )
        return ""

    @cached_property
    def doubtful_parts(self) -> tuple[ModePart, ...]:
        """The parts that some numbers of a launch could make break a rule of :meth:`part_problem`: most are known to
        keep them while staging, and a launch of an extent that is new need not look at them."""
        bits = self.source.memory_bits

        def keeps(part: ModePart) -> bool:
            if part.contiguous:
                return bits % self.element.width == 0
            return part.stride.place < 0 and part.stride.value >= 0 and part.stride.value * bits % 8 == 0

        return tuple(part for parts in self.modes for part in parts if not keeps(part))

    @cached_property
    def alignment(self) -> int:
        """The bytes of which the address and the strides are multiples."""
        return alignment_of(self.element)

    def scale(self, part: ModePart, values: Sequence[int], step: int) -> int:
        """How many steps of a shared TMA mode one step of ``part`` is."""
        return -(-part.stride.of(values) * self.source.memory_bits // 8 // max(step, 16))

    def problem(self, address: int, dims: Sequence[int], strides: Sequence[int]) -> str:
        """The first rule that the numbers break, with the mode and what would do; empty if none."""
        align = self.alignment
        if address % align:
            return (
                f"the address {address:#x} of {self.tensor} is not a multiple of {align} bytes, which TMA needs: start "
                f"the view at a multiple of {align} bytes, or copy with cp.async"
            )
        if dims[0] % GROUP and expands(self.element):
            return (
                f"the extent of {self.where(0)} is {dims[0]}; TMA expands numbers of {self.element.width} bits in "
                f"multiples of {GROUP}: pad the rows with zeros"
            )
        for i, (extent, stride) in enumerate(zip(dims, strides, strict=True)):
            if extent < 1:
                return f"the extent of {self.where(i)} is less than 1 ({extent}): launch nothing for an empty tensor"
            if extent > LARGEST_EXTENT:
                return f"the extent of {self.where(i)} is {extent}, more than 2^32"
            if i == 0:
                if stride != self.element.bytes:
                    return (
                        f"the stride of {self.where(i)} is {stride} bytes, and TMA needs contiguous elements there "
                        f"({self.element.bytes} bytes): the major mode of the shared-memory layout must be that of the "
                        "tensor"
                    )
                continue
            if stride >= LARGEST_STRIDE:
                return f"the stride of {self.where(i)} is {stride} bytes; TMA takes less than 2^40"
            if stride % align:
                better = -(-stride // align) * 8 * align // self.source.memory_bits
                return (
                    f"the stride of {self.where(i)} is not a multiple of {align} bytes: {stride} bytes; pad it to "
                    f"{better} elements of {self.source}, or copy with cp.async"
                )
        return ""

    def where(self, i: int) -> str:
        """TMA mode ``i`` in the user's words."""
        parts = " and ".join(dict.fromkeys(part.mode for part in self.modes[i]))
        return f"TMA mode {i} ({parts} of {self.tensor})"
