"""What ``tcgen05.mma`` does on the simulator. The unit carries out what was issued in order, and as late as can be:
when no warp can go on without it. Then it reads shared memory through the descriptors, as the hardware does,
multiplies, and adds to the accumulators in tensor memory. Until then nobody else may touch those
(``TensorMemory.products``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms import numbers
from tilewright.atoms.matrix_descriptor import TCGEN05
from tilewright.atoms.matrix_product import added, multiplied, rounds_each_step
from tilewright.atoms.matrix_tiles import FIELD, addresses, matrices
from tilewright.atoms.tables import offsets
from tilewright.atoms.tensor_memory import elements_per_column
from tilewright.atoms.tensor_memory_state import TensorMemories, TensorMemory, uniform
from tilewright.ir.core import Op
from tilewright.ir.instruction import Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.layout import Layout
from tilewright.layout.smem_atoms import BYTE_SWIZZLES

if TYPE_CHECKING:
    from tilewright.atoms.tcgen05_mma import Tcgen05Mma


def issue(atom: Tcgen05Mma, lanes: Lanes, op: Op, operands: list[Any]) -> None:
    """Hand a call's instructions to the unit, for each active warp one thread's."""
    active = lanes.active().reshape(-1, WARP)
    torn = active.any(1) & ~active.all(1)
    if torn.any():
        raise lanes.fault(
            f"{atom.mnemonic()} by {int(active[torn][0].sum())} threads of a warp: the warp elects the thread that "
            "issues, for which all 32 must be here",
            np.repeat(torn, WARP),
            "call cute.gemm from a whole warp (if warp_idx == 0:), not inside `with elect_one():`",
        )
    names = ("the address of D", "the place of A", "the descriptor of B", "whether it accumulates")
    d, a, b, keep = (uniform(lanes, f"{atom.mnemonic()}: {n}", v) for n, v in zip(names, operands, strict=True))
    for row, _, memory in lanes.beside(TensorMemories).of(lanes):
        product = _Product(atom, lanes, op, row, memory, (int(d[row]), int(a[row]), int(b[row]), bool(keep[row])))
        product.begin()
        lanes.eventually(product, lane=WARP * row)


class _Product:
    """One call of one warp."""

    def __init__(
        self, atom: Tcgen05Mma, lanes: Lanes, op: Op, row: int, memory: TensorMemory, words: tuple[int, int, int, bool]
    ) -> None:
        self.atom, self.lanes, self.op, self.row, self.memory = atom, lanes, op, row, memory
        d, self.a, self.b, self.keep = words
        self.d = self._cells("d", d, atom.type_d.width)
        self.in_memory = None if atom.reads_shared("A") else self._cells("a", self.a, atom.type_a.width)

    def _cells(self, role: str, address: int, width: int) -> tuple[Array, Array, Array]:
        lane, column, place = _places(self.op.attrs[f"{role}_layout"], width)
        return lane + (address >> 16 & 0x3FFF), column + (address & 0xFFFF), place

    def begin(self) -> None:
        """From now on the accumulators are the unit's."""
        for cells in (self.d, self.in_memory):
            if cells is not None:
                self._check(cells)
                what = self.memory.busy(cells[0], cells[1])
                if what is not None:
                    raise self._fault(what[0], what[1])
        self.memory.products[self.d[0], self.d[1]] += 1

    def _check(self, cells: tuple[Array, Array, Array]) -> None:
        lane, column, _ = cells
        if lane.max() >= 128:
            raise self._fault(
                f"reaches lane {lane.max()} of tensor memory, which has lanes 0 to 127", "begin at lane 0"
            )
        wrong = self.memory.wrong(column)
        if wrong is not None:
            raise self._fault(*wrong)

    def _fault(self, text: str, fix: str) -> Exception:
        chosen = np.arange(WARP * self.lanes.warps) // WARP == self.row
        return self.lanes.fault(f"{self.atom.mnemonic()} {text}", chosen, fix)

    def __call__(self) -> None:
        atom, (lane, column, _) = self.atom, self.d
        self._check(self.d)
        m, n, k = atom.shape_mnk
        left = self._operand("A", m) if self.in_memory is None else self._left(m)
        right = self._operand("B", n)
        values = self._accumulators() if self.keep else None
        steps = range(0, left.shape[2], k) if rounds_each_step(atom) else (None,)
        for at in steps:
            part = slice(None) if at is None else slice(at, at + k)
            values = added(atom, values, multiplied(atom, left[..., part], right[..., part]))
        assert values is not None
        # Rows are (M, row), columns (N, column): cells are in the order (M, N, row, column).
        rests = self._rests("d")
        tiles = values.reshape(rests[0], m, rests[1], n).transpose(0, 2, 1, 3)
        self.memory.write(lane, column, _words(np.ascontiguousarray(tiles)))
        self.memory.products[lane, column] -= 1

    def _rests(self, role: str) -> tuple[int, int]:
        layout = self.op.attrs[f"{role}_layout"]
        return offsets(layout[1]).size, offsets(layout[2]).size

    def _accumulators(self) -> Array:
        atom, (lane, column, _) = self.atom, self.d
        m, n, _ = atom.shape_mnk
        if not self.memory.written[lane, column].all():
            raise self._fault(
                "adds to accumulators in tensor memory that nothing has written",
                "set(tcgen05.Field.ACCUMULATE, False) before the first MMA into them, or store zeros there first",
            )
        words = np.ascontiguousarray(self.memory.words[lane, column])
        patterns = words.astype(np.uint16) if atom.type_d.width == 16 else words
        rests = self._rests("d")
        tiles = patterns.view(atom.type_d.dtype).reshape(*rests, m, n).transpose(0, 2, 1, 3)
        return tiles.reshape(1, rests[0] * m, rests[1] * n).copy()

    def _left(self, m: int) -> Array:
        """A in tensor memory."""
        assert self.in_memory is not None
        self._check(self.in_memory)
        type_, (lane, column, place) = self.atom.type_a, self.in_memory
        patterns = self.memory.words[lane, column] >> (place * type_.width).astype(np.uint32)
        narrow = np.ascontiguousarray(patterns.astype(f"u{type_.bytes}"))
        found = numbers.widen(numbers.raw(narrow, type_), type_)
        rests = self._rests("a")
        return found.reshape(*rests, m, -1).transpose(0, 2, 1, 3).reshape(1, rests[0] * m, -1)

    def _operand(self, role: str, rows: int) -> Array:
        """An operand in shared memory."""
        low, high = (self.a if role == "A" else self.b), self.op.attrs[f"{role.lower()}_high"]
        layout, type_ = self.op.attrs[f"{role.lower()}_layout"], getattr(self.atom, f"type_{role.lower()}")
        swizzle, major = BYTE_SWIZZLES[TCGEN05.kind_of(high >> TCGEN05.shift)], self.atom.major_of(role)
        k = self.atom.shape_mnk[2]
        address = addresses((low & 0xFFFFFFFF,), layout, major, swizzle, high & FIELD, rows, k, type_)
        warp = self.lanes.warp_numbers()[[self.row]]
        if self.lanes.observed:
            self.lanes.reads_shared(address, np.array([self.row]))
        found = self.lanes.read_shared(address, warp)
        return matrices(found, self._rests(role.lower()), major, rows, type_)


@lru_cache(maxsize=256)
def _places(layout: Layout, width: int) -> tuple[Array, Array, Array]:
    """``[M, N, rows, columns]`` lane, column, and element in the column, of a layout ``((rows, columns), M, N)``."""
    per = elements_per_column(width)
    tile = offsets(layout[0][1])[None, :] + offsets(layout[0][0])[:, None]
    rests = offsets(layout[1])[:, None] + offsets(layout[2])[None, :]
    at = rests[:, :, None, None] + tile
    return at // per >> 16, at // per & 0xFFFF, at % per


def _words(values: Array) -> Array:
    """The columns that hold numbers of 16 or 32 bits."""
    return values.view(f"u{values.itemsize}").astype(np.uint32)
