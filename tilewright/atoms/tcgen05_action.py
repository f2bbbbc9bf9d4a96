"""What ``tcgen05.mma`` does on the simulator. The unit carries out what was issued in order, and as late as can be:
when no warp can go on without it. Then it reads shared memory through the descriptors, as the hardware does,
multiplies, and adds to the accumulators in tensor memory. Until then no other access may touch
those (``TensorMemory.products``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.atoms import numbers
from tilewright.atoms.matrix_descriptor import TCGEN05
from tilewright.atoms.matrix_product import added, multiplied, rounds_each_step
from tilewright.atoms.matrix_tiles import FIELD, addresses, matrices
from tilewright.atoms.tables import offsets
from tilewright.atoms.tensor_memory import LANES, elements_per_column
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
        self.d = _tiles(op.attrs["d_layout"], atom.type_d.width, d)
        self.in_memory = None if atom.reads_shared("A") else _cells(op.attrs["a_layout"], atom.type_a.width, self.a)

    def begin(self) -> None:
        """From now on the accumulators are the unit's."""
        self._check()
        used: list[tuple[Any, Any]] = [where for row in self.d.where for where in row]
        if self.in_memory is not None:
            used.append(self.in_memory[:2])
        for lanes, columns in used:
            what = self.memory.busy(lanes, columns)
            if what is not None:
                raise self._fault(*what)
        if self.in_memory is not None:
            self.lanes.tensor_memory(self.row, self.memory, False, [self.in_memory[:2]])
        self.lanes.tensor_memory(self.row, self.memory, True, [where for row in self.d.where for where in row])
        for row in self.d.where:
            for where in row:
                self.memory.products[where] += 1

    def _check(self) -> None:
        cells = [self.d.corners]
        if self.in_memory is not None:
            cells.append((self.in_memory[0], self.in_memory[1]))
        for lanes, columns in cells:
            if lanes.max() >= LANES:
                raise self._fault(
                    f"reaches lane {lanes.max()} of tensor memory, which has lanes 0 to {LANES - 1}", "begin at lane 0"
                )
            wrong = self.memory.wrong(columns)
            if wrong is not None:
                raise self._fault(*wrong)

    def _fault(self, text: str, fix: str) -> Exception:
        chosen = np.arange(WARP * self.lanes.warps) // WARP == self.row
        return self.lanes.fault(f"{self.atom.mnemonic()} {text}", chosen, fix)

    def __call__(self) -> None:
        atom, memory = self.atom, self.memory
        self._check()
        m, n, k = atom.shape_mnk
        left = self._operand("A", m) if self.in_memory is None else self._left(m)
        right = self._operand("B", n)
        values = self._accumulators() if self.keep else None
        steps = range(0, left.shape[2], k) if rounds_each_step(atom) else (None,)
        for at in steps:
            part = slice(None) if at is None else slice(at, at + k)
            values = added(atom, values, multiplied(atom, left[..., part], right[..., part]))
        assert values is not None
        words = values[0].view(f"u{values.itemsize}")
        for i, row in enumerate(self.d.where):
            for j, where in enumerate(row):
                memory.write(*where, words[i * m : (i + 1) * m, j * n : (j + 1) * n])
                memory.products[where] -= 1

    def _rests(self, role: str) -> tuple[int, int]:
        layout = self.op.attrs[f"{role}_layout"]
        return offsets(layout[1]).size, offsets(layout[2]).size

    def _accumulators(self) -> Array:
        atom, memory = self.atom, self.memory
        if not all(memory.written[where].all() for row in self.d.where for where in row):
            raise self._fault(
                "adds to accumulators in tensor memory that nothing has written",
                "set(tcgen05.Field.ACCUMULATE, False) before the first MMA into them, or store zeros there first",
            )
        words = np.block([[memory.words[where] for where in row] for row in self.d.where])
        patterns = words.astype(np.uint16) if atom.type_d.width == 16 else words
        return patterns.view(atom.type_d.dtype)[None]

    def _left(self, m: int) -> Array:
        """A in tensor memory."""
        assert self.in_memory is not None
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


class _Tiles(NamedTuple):
    """Where accumulators are: ``where[m][n]`` is the index (lanes, columns) of the tile of one instruction, and
    ``corners`` the least and greatest lanes and columns of all."""

    where: list[list[tuple[Any, slice]]]
    corners: tuple[Array, Array]


@lru_cache(maxsize=256)
def _tiles(layout: Layout, width: int, address: int) -> _Tiles:
    """Of a layout ``((rows, columns), M, N)`` at an address; the columns of a tile are neighbours."""
    lane, column, _ = _cells(layout, width, address)
    m_tiles, n_tiles = lane.shape[:2]

    def one(i: int, j: int) -> tuple[Any, slice]:
        columns = column[i, j, 0]
        return _lanes(lane[i, j, :, 0]), slice(int(columns[0]), int(columns[-1]) + 1)

    where = [[one(i, j) for j in range(n_tiles)] for i in range(m_tiles)]
    return _Tiles(where, (np.array([lane.min(), lane.max()]), np.array([column.min(), column.max()])))


def _lanes(lanes: Array) -> Any:
    """As a slice, where they are neighbours: that is faster."""
    first, last = int(lanes[0]), int(lanes[-1])
    return slice(first, last + 1) if last - first + 1 == lanes.size else lanes


@lru_cache(maxsize=256)
def _cells(layout: Layout, width: int, address: int) -> tuple[Array, Array, Array]:
    """``[M, N, rows, columns]`` lane, column, and element in the column, of a layout ``((rows, columns), M, N)`` at an
    address."""
    per = elements_per_column(width)
    tile = offsets(layout[0][1])[None, :] + offsets(layout[0][0])[:, None]
    rests = offsets(layout[1])[:, None] + offsets(layout[2])[None, :]
    at = rests[:, :, None, None] + tile
    return (at // per >> 16) + (address >> 16 & 0x3FFF), (at // per & 0xFFFF) + (address & 0xFFFF), at % per
