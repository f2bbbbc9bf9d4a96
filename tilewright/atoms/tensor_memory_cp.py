"""``tcgen05.cp``: from shared to tensor memory, by the same unit as ``tcgen05.mma`` and in order with it (PTX ISA,
"tcgen05.cp"; CuTe: include/cute/atom/copy_traits_sm100.hpp).

A call stands for copies whose operands are ``[address, descriptor]``, both i32: the place in tensor memory, and the low
word of the matrix descriptor of the first. Attributes: ``steps``, for each copy what is added to the descriptor (units
of 16 bytes) and to the address (columns); ``high``, the descriptors' high word. A whole warp executes it, and elects
the thread that issues. Of a pair of blocks each has its own data in shared memory, at the same address.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.matrix_descriptor import TCGEN05 as DESCRIPTORS
from tilewright.atoms.matrix_descriptor import UNIT, MatrixDescriptor
from tilewright.atoms.matrix_tiles import FIELD, addresses, unpacked
from tilewright.atoms.tcgen05_mma import AGENT
from tilewright.atoms.tcgen05_unit import UnitWrite, need_whole_warps
from tilewright.atoms.tensor_memory import LANES, container_shift, tmem_place
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.atoms.tensor_memory_copy import SmemToTmemLayouts, smem_to_tmem_layouts
from tilewright.atoms.tensor_memory_state import TensorMemories, TensorMemory, uniform
from tilewright.atoms.warp import elect
from tilewright.atoms.wgmma_text import DESCRIPTOR, DESCRIPTOR_SOURCE
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed
from tilewright.ir.core import Op, Value
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Lanes, need
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.types import I32, U8, MemSpace
from tilewright.layout import Layout
from tilewright.layout.smem_atoms import BYTE_SWIZZLES, row_bytes

_WIDTHS = {"b4x16_p64": 4, "b6x16_p32": 6}
"""Bits of a number in shared memory, by the name of the packed format."""


@dataclass(frozen=True, repr=False)
class SmemToTmem(CopyInstruction):
    """A shape of PTX with its multicast (``"32x128b.warpx4"``), for one block or a pair. ``source_format``
    (``"b4x16_p64"``, ``"b6x16_p32"``): 16 bytes of shared memory begin with 16 numbers of 4 or 6 bits, each of which
    gets a byte of tensor memory (``container_shift``).

    >>> SmemToTmem("32x128b.warpx4"), SmemToTmem("32x128b.warpx4").rows, SmemToTmem("128x256b", 2).row_bytes
    (SM100_UTCCP_4x32dp128bit_1cta, 32, 32)
    """

    shape: str
    ctas: int = 1
    source_format: str = ""

    name = "tcgen05.cp"
    min_arch = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05
    accesses = (
        Access("read", "source", (MemSpace.SMEM,), 1, align=16, agent=AGENT, proxy="async"),
        Access("write", "destination", (MemSpace.TMEM,), 0, agent=AGENT),
    )

    def __post_init__(self) -> None:
        smem_to_tmem_layouts(self.shape, self.ctas)
        if self.source_format not in ("", *_WIDTHS):
            raise ConstraintError(f"tcgen05.cp unpacks {' or '.join(_WIDTHS)}, not {self.source_format!r}")

    @property
    def layouts(self) -> SmemToTmemLayouts:
        return smem_to_tmem_layouts(self.shape, self.ctas)

    @computed
    def thr_id(self) -> Layout:
        return Layout(self.ctas, self.ctas - 1)

    @computed
    def src_bits(self) -> Layout:
        return self.layouts.source

    @computed
    def dst_bits(self) -> Layout:
        return self.layouts.destination

    @computed
    def ref_bits(self) -> Layout:
        return self.dst_bits

    @property
    def rows(self) -> int:
        """Rows of the data in shared memory."""
        return int(self.shape.split("x")[0])

    @property
    def row_bytes(self) -> int:
        return int(self.shape.split("x")[1].split("b")[0]) // 8

    def mnemonic(self) -> str:
        unpacking = f".b8x16.{self.source_format}" if self.source_format else ""
        return f"{self.name}.cta_group::{self.ctas}.{self.shape}{unpacking}"

    @property
    def cute_name(self) -> str:
        shape, _, cast = self.shape.partition(".")
        rows, bits = shape.rstrip("b").split("x")
        times = {"warpx4": "4x", "warpx2::02_13": "2x", "warpx2::01_23": "2x"}.get(cast, "")
        end = cast.removeprefix("warpx2::") + "_" if "::" in cast else ""
        width = f"_unpack{_WIDTHS[self.source_format]}b" if self.source_format else ""
        return f"SM100_UTCCP_{times}{rows}dp{bits}bit_{end}{self.ctas}cta{width}"

    def count(self, op: Op) -> int:
        return len(op.attrs["steps"])

    def accessed(self, op: Op) -> list[tuple[Value, Access]]:
        return [(op.operands[access.operand], access) for access in self.accesses]

    def verify(self, op: Op) -> None:
        need(
            op,
            [v.type for v in op.operands] == [I32, I32],
            f"{self}: takes a place in tensor memory and the low word of a matrix descriptor (i32)",
        )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        what, memories = self.mnemonic(), lanes.beside(TensorMemories)
        need_whole_warps(lanes, what, "cute.copy")
        memories.agree(lanes, what, self.ctas)
        to, word = (
            uniform(lanes, f"{what}: {name}", value).astype(np.int64) & 0xFFFFFFFF
            for name, value in zip(("the place", "the descriptor"), operands, strict=True)
        )
        for row, sides in memories.sides(lanes, what, self.ctas, leads=True):
            for units, columns in op.attrs["steps"]:
                copy = UnitCopy(
                    self, lanes, row, sides, (int(word[row]) + units, op.attrs["high"]), int(to[row]) + columns
                )
                copy.begin()
                lanes.eventually(copy, lane=WARP * row)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        to, word = op.operands
        kind = f"{self.shape}.{self.source_format}".rstrip(".").replace("::", "_").replace(".", "_")
        name = f"tcgen05_cp_{kind}{'_pair' if self.ctas == 2 else ''}"
        out.helper(
            name,
            f"__device__ __forceinline__ void {name}(uint32_t address, uint64_t descriptor) {{\n"
            f'  asm volatile("{self.mnemonic()} [%0], %1;" :: "r"(address), "l"(descriptor) : "memory");\n}}\n',
        )
        out.helper(DESCRIPTOR, DESCRIPTOR_SOURCE)
        with out.block(f"if ({elect(out)}())"):
            for units, columns in op.attrs["steps"]:
                place = f"{out.value(to)}{f' + {columns}' if columns else ''}"
                low = f"{out.value(word)}{f' + {units}' if units else ''}"
                out.line(f"{name}({place}, {DESCRIPTOR}({low}, {op.attrs['high']:#x}));")


def copied_places(shape: str) -> list[list[list[tuple[int, ...]]]]:
    """``[copies][rows][words]`` lane and column of each word of a row, from the address on."""
    places = smem_to_tmem_layouts(shape).places
    rows, words = SmemToTmem(shape).rows, SmemToTmem(shape).row_bytes // 4
    step = WARP if rows == 4 else 1  # the layout of 4 rows counts the lanes between them, too
    copies = LANES // rows if rows > 4 else 1
    return [
        [
            [tmem_place(places(step * r + rows * step * (32 * w + 32 * words * c)), 1)[:2] for w in range(words)]
            for r in range(rows)
        ]
        for c in range(copies)
    ]


@lru_cache(maxsize=16)
def _cells(shape: str) -> tuple[Array, Array]:
    """``[copies, rows, words]`` lane and column of :func:`copied_places`."""
    cells = np.array(copied_places(shape))
    return cells[..., 0], cells[..., 1]


class UnitCopy(UnitWrite):
    """One copy of one warp; ``word`` are the low and high word of its descriptor."""

    atom: SmemToTmem

    def __init__(
        self,
        atom: SmemToTmem,
        lanes: Lanes,
        row: int,
        sides: list[tuple[int, TensorMemory]],
        word: tuple[int, int],
        to: int,
    ) -> None:
        super().__init__(atom, lanes, row, sides)
        self.word, self.to = word, to
        lane, column = _cells(atom.shape)
        self.where = lane + (to >> 16 & 0x3FFF), column + (to & 0xFFFF)

    def check(self) -> None:
        if self.to >> 16:
            raise self.fault(f"writes to lane {self.to >> 16}: a copy begins at lane 0", "take the address of lane 0")
        self.need_allocated(self.where[1])

    def __call__(self) -> None:
        self.check()
        atom, (low, high) = self.atom, self.word
        swizzle = BYTE_SWIZZLES[DESCRIPTORS.kind_of(high >> DESCRIPTORS.shift)]
        one = Layout((1, 1, 1), (0, 0, 0))
        place = addresses((low & 0xFFFFFFFF,), one, "K", swizzle, high & FIELD, atom.rows, atom.row_bytes, U8)
        for first, memory in self.sides:
            rows = self.read_shared(place, first).reshape(atom.rows, -1)
            if atom.source_format:
                width = _WIDTHS[atom.source_format]
                numbers = unpacked(rows.reshape(atom.rows, -1, UNIT)[..., : 2 * width], width)
                rows = np.ascontiguousarray(numbers << container_shift(width)).reshape(atom.rows, -1)
            rows = rows.view(np.uint32)
            memory.write(*self.where, np.broadcast_to(rows, self.where[0].shape))
            memory.products[self.where] -= 1


def copy_descriptor(values: Layout, kind: str, atom: SmemToTmem) -> MatrixDescriptor:
    """The descriptor of one copy's data, of a partition's first mode: bytes in the copy's order, rows first. Only the
    units of 16 bytes are compared. ``kind``: of the swizzle. ConstraintError for rows that no descriptor names.

    >>> copy_descriptor(Layout((32, 16), (16, 1)), "INTER", SmemToTmem("32x128b.warpx4"))[:3]
    (1, 8, 'INTER')
    """
    rows, units, width = atom.rows, atom.row_bytes // UNIT, row_bytes(kind) // UNIT
    # Of 4 rows, the partition counts the lanes between them, too.
    step, count = (WARP, LANES) if rows == 4 else (1, rows)
    at = [int(values(step * r)) - int(values(0)) for r in range(rows)]
    beside = int(values(count * UNIT)) - int(values(0))
    stride = at[8] // UNIT if rows > 8 else 8 * width
    leading = beside // UNIT if units > 1 and kind == "INTER" else 1
    expected = [UNIT * (r % 8 * width + r // 8 * stride) for r in range(rows)]
    if at != expected or not (units == 1 or kind == "INTER" or beside == UNIT):
        raise ConstraintError(
            f"{atom}: the {rows} rows of {atom.row_bytes} bytes are not where a matrix descriptor can name them: "
            f"groups of 8 rows, {width * UNIT} bytes from row to row (swizzle {kind}); the partition's first mode is "
            f"{values}"
        )
    return MatrixDescriptor(leading, stride, kind, 0, DESCRIPTORS)


def in_units(layout: Layout) -> Layout:
    """A layout of bytes as one of units of 16, mode by mode as the headers do: of 2 and 4 factors an MMA, modes of
    their partition overlap within a unit (which no descriptor sees), and ``recast_layout`` refuses that.

    >>> in_units(Layout((32, 4, 2), (16, 1, 512)))
    (32,1,2):(1,1,32)
    """
    return Layout(*_in_units(layout.shape, layout.stride))


def _in_units(shape: Any, stride: Any) -> tuple[Any, Any]:
    if isinstance(shape, tuple):
        shapes, strides = zip(*map(_in_units, shape, stride), strict=True)
        return shapes, strides
    if stride == 0 or stride >= UNIT:
        return shape, stride // UNIT
    return -(-shape * stride // UNIT), 1
