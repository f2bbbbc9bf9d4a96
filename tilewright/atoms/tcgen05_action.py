"""What ``tcgen05.mma`` does on the simulator. The unit carries out what was issued in order, and as late as can be:
when no warp can go on without it. Then it reads shared memory through the descriptors, as the hardware does,
multiplies, and adds to the accumulators in tensor memory. Until then no other access may touch
those (``TensorMemory.products``).

Of a pair of blocks, each has its half of the rows of A and D and of the columns of B, at the same addresses; a block's
half of D takes all of B.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.atoms import numbers
from tilewright.atoms.matrix_descriptor import ABSOLUTE, TCGEN05, UNIT
from tilewright.atoms.matrix_product import added, multiplied, rounds_each_step
from tilewright.atoms.matrix_tiles import FIELD, addresses, matrices
from tilewright.atoms.tables import offsets
from tilewright.atoms.tcgen05_unit import UnitWork, need_whole_warps
from tilewright.atoms.tcgen05_zero_columns import ZeroColumns
from tilewright.atoms.tensor_memory import LANES, container_shift, elements_per_column
from tilewright.atoms.tensor_memory_state import TensorMemories, TensorMemory, uniform
from tilewright.ir.core import Op
from tilewright.ir.instruction import Lanes
from tilewright.ir.joint import JointAction
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.layout import Layout
from tilewright.layout.smem_atoms import BYTE_SWIZZLES
from tilewright.layout.swizzle import Swizzle

if TYPE_CHECKING:
    from tilewright.atoms.tcgen05_mma import Tcgen05Mma


def issue(atom: Tcgen05Mma, lanes: Lanes, op: Op, operands: list[Any]) -> None:
    """Hand a call's instructions to the unit, for each active warp one thread's."""
    need_whole_warps(lanes, atom.mnemonic(), "cute.gemm")
    names = ("the address of D", "the place of A", "the descriptor of B", "whether it accumulates")
    d, a, b, keep = (uniform(lanes, f"{atom.mnemonic()}: {n}", v) for n, v in zip(names, operands[:4], strict=True))
    make = atom.product_of(lanes, operands)
    lanes.beside(TensorMemories).agree(lanes, atom.mnemonic(), atom.ctas)
    products: list[tuple[Callable[[], None], int, int]] = []
    for row, memories in lanes.beside(TensorMemories).sides(lanes, atom.mnemonic(), atom.ctas, leads=True):
        words = int(d[row]), int(a[row]), int(b[row]), bool(keep[row])
        product = make(row, op, row, memories, words)
        product.begin()
        products.append((product, WARP * row, 0))
    lanes.all_eventually(products)


class Further(NamedTuple):
    """What only some forms of the instruction are given. ``factors``: the addresses of SFA and SFB; ``metadata``: that
    of the metadata of a sparse A, and ``selector`` the sparsity selector; ``columns``: which columns of B are zeros;
    ``negate``: A, B; ``collector``: the buffer that keeps an operand, and what is done with it; ``alone [128]``: the
    lanes of D that it leaves as they are; ``scale_d``: D is multiplied by 2 ** -scale_d before it is added to."""

    factors: tuple[int, int] = (0, 0)
    metadata: int = 0
    selector: int = 0
    columns: ZeroColumns | None = None
    negate: tuple[bool, bool] = (False, False)
    collector: tuple[str, str] = ("a", "discard")
    alone: Array | None = None
    scale_d: int = 0


NOTHING_FURTHER = Further()


class Product(UnitWork, JointAction):
    """One call of one warp."""

    atom: Tcgen05Mma

    def __init__(
        self,
        atom: Tcgen05Mma,
        lanes: Lanes,
        op: Op,
        row: int,
        sides: list[tuple[int, TensorMemory]],
        words: tuple[int, int, int, bool],
        further: Further = NOTHING_FURTHER,
    ) -> None:
        super().__init__(atom, lanes, row, sides)
        self.op, self.further = op, further
        d, self.a, self.b, self.keep = words
        self.d = _tiles(op.attrs["d_layout"], atom.type_d.width, d)
        width = atom.stored_type("A").width
        self.in_memory = None if atom.reads_shared("A") else _cells(op.attrs["a_layout"], width, self.a)

    def begin(self) -> None:
        """From now on the accumulators are the unit's."""
        self._check()
        sums: list[tuple[Any, Any]] = [where for row in self.d.where for where in row]
        operand = self.reads()
        for _, memory in self.sides:
            for lanes, columns in (*sums, *operand):
                what = memory.busy(lanes, columns)
                if what is not None:
                    raise self.fault(*what)
            if operand:
                self.lanes.tensor_memory(self.row, memory, False, operand)
            for where in operand:
                memory.operands[where] += 1
            self.lanes.tensor_memory(self.row, memory, True, sums)
            for where in sums:
                memory.products[where] += 1

    @property
    def blocks(self) -> frozenset[int]:  # type: ignore[override]  # of products whose operands begin() knows
        plain = type(self) is Product and self.further is NOTHING_FURTHER
        return frozenset(first for first, _ in self.sides) if plain else frozenset()

    @classmethod
    def before_all(cls, products: Sequence[Product]) -> None:
        """Notify observers of the reads of all of them, operand by operand."""
        first = products[0]
        if len(products) == 1 or not first.lanes.observed:
            return
        rows = np.array([product.row for product in products])
        warps = np.array([product.sides[0][0] for product in products])
        atom = first.atom
        each = [("B", atom.shape_mnk[1]), *([("A", first.rows)] if first.in_memory is None else [])]
        for role, count in each:
            first.lanes.reads_shared(np.concatenate([p.addresses(role, count) for p in products]), rows, warps)
        for product in products:
            product.notified = True

    def reads(self) -> list[tuple[Any, Any]]:
        """The cells of tensor memory that it reads beside the accumulators."""
        return [] if self.in_memory is None else [self.in_memory[:2]]

    def _check(self) -> None:
        cells = [self.d.corners]
        if self.in_memory is not None:
            cells.append((self.in_memory[0], self.in_memory[1]))
        for lanes, columns in cells:
            if lanes.max() >= LANES:
                raise self.fault(
                    f"reaches lane {lanes.max()} of tensor memory, which has lanes 0 to {LANES - 1}", "begin at lane 0"
                )
            self.need_allocated(columns)

    def alone(self) -> None:
        self._check()
        right = self._right()
        for first, memory in self.sides:
            left, columns = self.left(first, memory), self.right_of(right, memory)
            self._collect(memory, left, right)
            values = self._accumulators(memory) if self.keep else None
            if left.shape[1] != self.rows * self._rests("a")[0]:
                values = self._twice(left, columns, values)
            else:
                values = self._multiplied(left, columns, values)
            self._write(memory, values[0].view(f"u{values.itemsize}"))
            for where in self.reads():
                memory.operands[where] -= 1

    def _collect(self, memory: TensorMemory, left: Array, right: Array) -> None:
        """What happens to the collector buffer. An operand that may come from there or from memory must be the same in
        both: the tensor core is free to load it again."""
        buffer, does = self.further.collector
        operand = left if buffer == "a" else right
        kept = memory.collectors.get(buffer)
        if does in ("use", "lastuse") and not (kept is not None and np.array_equal(kept, operand)):
            what = "which nothing has filled" if kept is None else "which holds another matrix than is in memory now"
            raise self.fault(
                f"uses collector buffer {buffer}, {what}: the tensor core may take the one or the other",
                f"fill the buffer (collector::{buffer}::fill) by an earlier MMA with the same matrix",
            )
        if does == "fill":
            memory.collectors[buffer] = operand.copy()
        elif does != "use":
            memory.collectors.pop(buffer, None)

    @property
    def rows(self) -> int:
        """The rows of one instruction that a block has."""
        return self.atom.shape_mnk[0] // self.atom.ctas

    def _multiplied(self, left: Array, right: Array, values: Array | None) -> Array:
        atom = self.atom
        k = atom.shape_mnk[2]
        steps = range(0, left.shape[2], k) if rounds_each_step(atom) else (None,)
        for at in steps:
            part = slice(None) if at is None else slice(at, at + k)
            values = added(atom, values, multiplied(atom, left[..., part], right[..., part]))
        assert values is not None
        return values

    def _twice(self, left: Array, right: Array, values: Array | None) -> Array:
        """With A in tensor memory, 64 rows of a block are there twice: each copy is for half of the columns."""
        m, n = self.rows, self.atom.shape_mnk[1]
        copies = left.reshape(1, -1, 2, m, left.shape[2])
        upper, lower = (
            self._multiplied(np.ascontiguousarray(copies[:, :, i]).reshape(1, -1, left.shape[2]), right, values)
            for i in (0, 1)
        )
        halves = np.arange(right.shape[1]) // (n // 2) % 2
        return np.where(halves == 0, upper, lower)

    def _write(self, memory: TensorMemory, words: Array) -> None:
        m, n = self.rows, self.atom.shape_mnk[1]
        for i, row in enumerate(self.d.where):
            for j, where in enumerate(row):
                tile = words[i * m : (i + 1) * m, j * n : (j + 1) * n]
                if self.further.alone is None:
                    memory.write(*where, tile)
                else:
                    alone, was = self._alone(where), memory.written[where].copy()
                    memory.write(*where, np.where(alone, memory.words[where], tile))
                    memory.written[where] = was | ~alone
                memory.products[where] -= 1

    def _alone(self, where: tuple[Any, Any]) -> Array:
        """Which cells of a tile are in lanes that are left as they are."""
        assert self.further.alone is not None
        lanes = self.further.alone[where[0]]
        return lanes if lanes.ndim == 2 else lanes[:, None]

    def _rests(self, role: str) -> tuple[int, int]:
        layout = self.op.attrs[f"{role}_layout"]
        return offsets(layout[1]).size, offsets(layout[2]).size

    def _accumulators(self, memory: TensorMemory) -> Array:
        atom = self.atom
        defined = [
            memory.written[where] if self.further.alone is None else memory.written[where] | self._alone(where)
            for row in self.d.where
            for where in row
        ]
        if not all(cells.all() for cells in defined):
            raise self.fault(
                "adds to accumulators in tensor memory that nothing has written",
                "set(tcgen05.Field.ACCUMULATE, False) before the first MMA into them, or store zeros there first",
            )
        words = np.block([[memory.words[where] for where in row] for row in self.d.where])
        patterns = words.astype(np.uint16) if atom.type_d.width == 16 else words
        values: Array = patterns.view(atom.type_d.dtype)[None]
        return values * values.dtype.type(2.0**-self.further.scale_d) if self.further.scale_d else values

    def right_of(self, right: Array, memory: TensorMemory) -> Array:
        """What a block multiplies with."""
        return right

    def left(self, first: int, memory: TensorMemory) -> Array:
        """``[1, M tiles * rows, K]`` what a block has of A."""
        elements = self.stored(first, memory)
        return -elements if self.further.negate[0] else elements

    def stored(self, first: int, memory: TensorMemory) -> Array:
        """``[1, M tiles * rows, stored K]`` A as it is in memory."""
        if self.in_memory is None:
            return self._operand("A", self.rows, first)
        type_, (lane, column, place) = self.atom.type_a, self.in_memory
        if not memory.written[lane, column].all():
            raise self.fault(
                "reads operand A in tensor memory, of which something was never written",
                "store all of it first: a tcgen05.st and fence_view_async_tmem_store(), or a tcgen05.cp",
            )
        width = self.atom.stored_type("A").width
        patterns: Array = memory.words[lane, column] >> (place * width).astype(np.uint32)
        if type_.width < 8:
            patterns = patterns >> (container_shift(type_.width) if width == 8 else 0) & (1 << type_.width) - 1
        narrow = np.ascontiguousarray(patterns.astype(f"u{type_.bytes}"))
        elements = numbers.widen(numbers.raw(narrow, type_), type_)
        rests = self._rests("a")
        rows = lane.shape[2]
        return elements.reshape(*rests, rows, -1).transpose(0, 2, 1, 3).reshape(1, rests[0] * rows, -1)

    def _right(self) -> Array:
        """``[1, N tiles * N, K]`` what all blocks have of B."""
        atom = self.atom
        n = atom.shape_mnk[1] // atom.ctas
        columns = self.further.columns
        shift = columns.shift if columns is not None else 0
        if shift:
            more = shift if self.atom.majors[1] == "K" else -(-shift // UNIT) * UNIT  # whole pieces
            parts = [self._operand("B", n + more, self.sides[0][0])[:, shift : n + shift]]
        else:
            parts = [self._operand("B", n, first) for first, _ in self.sides]
        elements = parts[0]
        if len(parts) > 1:
            tiles = [part.reshape(1, -1, n, part.shape[2]) for part in parts]
            elements = np.concatenate(tiles, 2).reshape(1, -1, elements.shape[2])
        if columns is not None:
            elements = np.where(columns.mask(self.atom.shape_mnk[:2])[None, :, None], elements.dtype.type(0), elements)
        return -elements if self.further.negate[1] else elements

    def _operand(self, role: str, rows: int, first: int) -> Array:
        """An operand in the shared memory of the block whose first warp has this number."""
        type_, held = getattr(self.atom, f"type_{role.lower()}"), self.atom.stored_type(role)
        elements = self.read_shared(self.addresses(role, rows), first)
        return matrices(elements, self._rests(role.lower()), self.atom.major_of(role), rows, type_, held)

    def addresses(self, role: str, rows: int) -> Array:
        """``[1, pieces]``: where the pieces of an operand are in a block's shared memory."""
        low, high = (self.a if role == "A" else self.b), self.op.attrs[f"{role.lower()}_high"]
        layout, held = self.op.attrs[f"{role.lower()}_layout"], self.atom.stored_type(role)
        swizzle, major = BYTE_SWIZZLES[TCGEN05.kind_of(high >> TCGEN05.shift)], self.atom.major_of(role)
        k = self.atom.stored_k if role == "A" else self.atom.shape_mnk[2]
        address = addresses((low & 0xFFFFFFFF,), layout, major, swizzle, high & FIELD, rows, k, held)
        if self.atom.form.k_96 and swizzle.bits:
            address = self._going_on(address.reshape(rows, -1), role, (low, high), swizzle)
        return address

    def _going_on(self, address: Array, role: str, words: tuple[int, int], swizzle: Swizzle) -> Array:
        """``[1, pieces]`` the addresses of an operand with K = 96, whose three pieces of a row may begin at its end:
        then the row goes on at the address that the descriptor names."""
        low, high = words
        width = 1 << (swizzle.bits + swizzle.base - 4)
        here = width - (low & FIELD) % width
        if here < address.shape[1]:
            if not high & ABSOLUTE:
                raise self.fault(
                    f"takes 48 bytes of each row of {role} from byte {UNIT * (width - here)} on, which is less than "
                    f"that before the end of the {UNIT * width} bytes of the swizzle",
                    "name the address where the rows go on: leading_dim_mode=1 of the matrix descriptor",
                )
            k, rows, held = self.atom.shape_mnk[2], len(address), self.atom.stored_type(role)
            one, go_on = Layout((1, 1, 1), (0, 0, 0)), low >> 16 & FIELD
            rest = addresses((go_on,), one, "K", swizzle, high & FIELD, rows, k, held).reshape(rows, -1)
            address = np.concatenate([address[:, :here], rest[:, : address.shape[1] - here]], 1)
        return address.reshape(1, -1)


class _Tiles(NamedTuple):
    """Where accumulators are: ``where[m][n]`` is the index (lanes, columns) of the tile of one instruction, and
    ``corners`` the least and greatest lanes and columns of all."""

    where: list[list[tuple[Any, Any]]]
    corners: tuple[Array, Array]


@lru_cache(maxsize=256)
def _tiles(layout: Layout, width: int, address: int) -> _Tiles:
    """The tiles of a layout ``((rows, columns), M, N)`` at an address; a tile's columns in a lane are neighbours."""
    lane, column, _ = _cells(layout, width, address)
    m_tiles, n_tiles = lane.shape[:2]

    def one(i: int, j: int) -> tuple[Any, Any]:
        if (lane[i, j] != lane[i, j, :, :1]).any():  # parts of N are in lanes of their own
            return lane[i, j], column[i, j]
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
