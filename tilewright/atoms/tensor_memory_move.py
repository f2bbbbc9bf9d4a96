"""``tcgen05.ld`` and ``tcgen05.st``: between the registers of a warp and its 32 lanes of tensor memory, and the waits.

Both are asynchronous (PTX ISA, "tcgen05.ld", "tcgen05.wait"): registers hold what was loaded after ``wait::ld``, and
tensor memory holds what was stored after ``wait::st``. Operands of a call are ``[fragment, address * R]``; addresses
are those of tensor memory (i32), equal in all threads of a warp, with the warp's first lane in their upper half.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tilewright.atoms.copy import REGISTERS, CopyInstruction, check_fragment, read_registers, write_registers
from tilewright.atoms.mma import active_warps
from tilewright.atoms.tensor_memory import LOAD, STORE
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.atoms.tensor_memory_copy import WARP, TmemCopyLayouts, tmem_copy_layouts
from tilewright.atoms.tensor_memory_state import TensorMemories, TensorMemory, uniform
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Access, Ordering
from tilewright.ir.instruction import Emitter, HeldRegisters, Instruction, Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.types import I32, FragType, MemSpace, element_of
from tilewright.layout import Layout
from tilewright.layout.evaluate import static_offsets


@dataclass(frozen=True, repr=False)
class TmemMove(CopyInstruction):
    """The common part: a shape of PTX (``"32x32b"``) and how often it is repeated along the columns. ``pack``: a
    register has the low halves of two neighbouring columns (``.pack::16b`` of loads, ``.unpack::16b`` of stores)."""

    shape: str
    repeat: int
    pack: bool = False

    min_arch = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05
    thr_id = Layout(WARP, 1)

    def __post_init__(self) -> None:
        tmem_copy_layouts(self.shape, self.repeat, self.pack)

    @property
    def layouts(self) -> TmemCopyLayouts:
        return tmem_copy_layouts(self.shape, self.repeat, self.pack)

    @computed
    def memory_bits(self) -> Layout:
        return self.layouts.memory

    @computed
    def register_bits(self) -> Layout:
        return self.layouts.registers

    @computed
    def ref_bits(self) -> Layout:
        return self.register_bits

    def mnemonic(self) -> str:
        return f"{self.name}.{self.shape}.x{self.repeat}{self.packing}"

    @property
    def packing(self) -> str:
        """The qualifier of the instruction for ``pack``."""
        return "" if not self.pack else ".pack::16b" if self.name == LOAD else ".unpack::16b"

    @property
    def split(self) -> int | None:
        """``16x32bx2``: the distance, in columns, from those of threads 0-15 to those of threads 16-31."""
        return self.repeat << self.pack if self.shape == "16x32bx2" else None

    @property
    def cute_name(self) -> str:
        way = "LOAD" if self.name == LOAD else "STORE"
        return f"SM100_TMEM_{way}_{self.shape}{self.repeat}x{'_16b' if self.pack else ''}"

    def memory_offsets(self, width: int) -> tuple[int, ...]:
        """Where the elements of ``width`` bits are from a warp's address, in elements, in the copy's order."""
        return tuple(bit // width for bit in static_offsets(self.layouts.places)[::width])

    def verify(self, op: Op) -> None:
        if op.attrs.get("predicated"):
            raise ConstraintError(f"{self}: cannot be predicated, all 32 lanes execute it")
        check_fragment(self, op, 32 * self.layouts.register_count)
        for address in op.operands[1:]:
            if address.type != I32:
                raise ConstraintError(f"{self}: one side is tensor memory, named by an address, not {address.type}")

    def _places(self, lanes: Lanes, value: Any) -> list[_Place]:
        """Where each active warp is by one call."""
        cells = _cells(self.shape, self.repeat, self.pack)
        addresses = uniform(lanes, f"{self.mnemonic()}: the address", value)
        places = []
        for row, warp, memory in lanes.beside(TensorMemories).of(lanes):
            address, first = int(addresses[row]) & 0xFFFFFFFF, WARP * (warp % 4)
            if (cells.lanes + (address >> 16)).max() < WARP:  # no warp's lanes are named: its own, as in DeepGEMM
                address += first << 16
            columns = cells.columns + (address & 0xFFFF)
            place = _Place(row, memory, cells.at(address), cells.reached(address), columns)
            low, high = (cells.lanes + (address >> 16)).tolist()
            if low < first or high >= first + WARP:
                raise lanes.fault(
                    f"{self.mnemonic()}: warp {warp} names lanes {low} to {high} of tensor memory, but it "
                    f"reaches lanes {first} to {first + WARP - 1} only",
                    np.arange(32 * lanes.warps) // WARP == row,
                    "warp w reaches lanes 32 * (w % 4) and the 31 after it: partition with get_slice(thread_idx % 128)",
                )
            self._check(lanes, place)
            self._refuse(lanes, row, memory.unfinished(*place.reached))
            if self.name == STORE:
                self._refuse(lanes, row, memory.wanted(*place.reached))
            places.append(place)
        return places

    def _tell(self, lanes: Lanes, places: list[_Place]) -> None:
        """Notify of the access of each warp, once for all that its calls reach."""
        by_row: dict[int, list[_Place]] = {}
        for place in places:
            by_row.setdefault(place.row, []).append(place)
        for row, mine in by_row.items():
            lanes.tensor_memory(row, mine[0].memory, self.name == STORE, [place.reached for place in mine])

    def _check(self, lanes: Lanes, place: _Place) -> None:
        self._refuse(lanes, place.row, place.memory.wrong(place.columns))

    def _refuse(self, lanes: Lanes, row: int, wrong: tuple[str, str] | None) -> None:
        if wrong is not None:
            chosen = np.arange(32 * lanes.warps) // WARP == row
            raise lanes.fault(f"{self.mnemonic()} {wrong[0]}", chosen, wrong[1])

    def emit(self, out: Emitter, op: Op) -> None:
        n, load = self.layouts.register_count, self.name == LOAD
        name = f"tcgen05_{'ld' if load else 'st'}_{self.shape}_x{self.repeat}{'_16b' if self.pack else ''}"
        # The address comes last of a load's operands and first of a store's.
        slots = ", ".join(f"%{i if load else i + 1}" for i in range(n))
        bound = [f'"{"=" if load else ""}r"(r{i})' for i in range(n)]
        lists = ["\n         ".join(", ".join(bound[i : i + 8]) + ("," if i + 8 < n else "") for i in range(0, n, 8))]
        registers = ", ".join(f"uint32_t{'&' if load else ''} r{i}" for i in range(n))
        form = f"{self.name}.sync.aligned.{self.shape}.x{self.repeat}{self.packing}.b32"
        split = "" if self.split is None else f", {self.split}"
        text = f"{form} {{{slots}}}, [%{n}]{split};" if load else f"{form} [%0]{split}, {{{slots}}};"
        operands = f': {lists[0]} : "r"(address)' if load else f': : "r"(address), {lists[0]}'
        out.helper(
            name,
            f"__device__ __forceinline__ void {name}(uint32_t address, {registers}) {{\n"
            f'  asm volatile("{text}"\n       {operands} : "memory");\n}}\n',
        )
        fragment, *addresses = op.operands
        per = 32 // element_of(fragment.type).width
        for chosen, address in zip(op.attrs["registers"], addresses, strict=True):
            named = ", ".join(out.register(fragment, r) for r in chosen[::per])
            out.line(f"{name}({out.value(address)}, {named});")


class _Place(NamedTuple):
    """The cells that a warp reads or writes. ``row`` is the warp's, ``memory`` its block's, ``where`` the index (lanes,
    columns) of ``[32, registers]`` cells (``[32, registers, 2]`` with ``pack``, which puts two in a register),
    ``reached`` an index of the same cells in any order, and ``columns`` the least and the greatest column."""

    row: int
    memory: TensorMemory
    where: tuple[Any, Any]
    reached: tuple[Any, Any]
    columns: Array


class _Cells:
    """The cells of a call from its address on; ``lanes``, ``columns``: the least and the greatest."""

    def __init__(self, lane: Array, column: Array) -> None:
        self._lane, self._column = lane, column
        self.lanes, self.columns = (np.array([at.min(), at.max()]) for at in (lane, column))
        # Thread t has neighbouring columns of lane t: slices are a faster index.
        count = column.shape[-1]
        self._slices = bool((column == np.arange(count)).all() and (lane == np.arange(WARP)[:, None]).all())
        sizes = [int(high) + 1 - int(low) for low, high in (self.lanes, self.columns)]
        self._fills = np.unique(lane << 16 | column).size == sizes[0] * sizes[1]

    def at(self, address: int) -> tuple[Any, Any]:
        """The index of the cells in tensor memory."""
        lane, column = address >> 16, address & 0xFFFF
        if self._slices:
            return slice(lane, lane + WARP), slice(column, column + self._column.shape[-1])
        return self._lane + lane, self._column + column

    def reached(self, address: int) -> tuple[Any, Any]:
        """An index of the same cells in any order: slices, which are faster, where they are all between the first and
        the last."""
        if not self._fills:
            return self.at(address)
        lanes, columns = self.lanes + (address >> 16), self.columns + (address & 0xFFFF)
        return slice(int(lanes[0]), int(lanes[1]) + 1), slice(int(columns[0]), int(columns[1]) + 1)


@lru_cache(maxsize=128)
def _cells(shape: str, repeat: int, pack: bool) -> _Cells:
    layouts = tmem_copy_layouts(shape, repeat, pack)
    halves = (0, 16) if pack else (0,)
    registers = range(layouts.register_count)
    where = np.array([[[layouts.place(t, r, bit)[:2] for bit in halves] for r in registers] for t in range(WARP)])
    lane, column = where[..., 0], where[..., 1]
    return _Cells(lane, column) if pack else _Cells(lane[..., 0], column[..., 0])


def _packed(words: Array, pack: bool) -> Array:
    """Registers, of the words of cells."""
    return words[..., 0] & 0xFFFF | (words[..., 1] & 0xFFFF) << 16 if pack else words


def _unpacked(words: Array, pack: bool) -> Array:
    """The words of cells, of registers."""
    return np.stack([words & 0xFFFF, words >> 16], -1) if pack else words


@dataclass(frozen=True, repr=False)
class TmemLoad(TmemMove):
    """``tcgen05.ld``: from tensor memory to registers, which have it after ``wait::ld``.

    >>> TmemLoad("32x32b", 8), TmemLoad("32x32b", 8).dst_bits
    (SM100_TMEM_LOAD_32x32b8x, (32,256):(256,1))
    """

    name = LOAD
    in_flight = True
    accesses = (
        Access("read", "source", (MemSpace.TMEM,), 1, agent=LOAD),
        Access("write", "destination", REGISTERS, agent=LOAD),
    )

    @computed
    def src_bits(self) -> Layout:
        return self.memory_bits

    @computed
    def dst_bits(self) -> Layout:
        return self.register_bits

    def settled_by(self) -> Instruction:
        return TmemWait(LOAD)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        active_warps(lanes, self)
        fragment, *addresses = operands
        places_of = [self._places(lanes, address) for address in addresses]
        self._tell(lanes, [place for places in places_of for place in places])
        self._tell_unwritten(lanes, op, places_of)
        for chosen, places in zip(op.attrs["registers"], places_of, strict=True):
            for place in places:
                if place.memory.stores[place.reached].any():
                    raise lanes.fault(
                        f"{self.mnemonic()} reads tensor memory to which a tcgen05.st is still on its way",
                        np.arange(32 * lanes.warps) // WARP == place.row,
                        "cute.arch.fence_view_async_tmem_store() (tcgen05.wait::st) after the store",
                    )
            held = lanes.hold(fragment, np.array([place.row for place in places]))
            for registers in held:
                fill = np.full((WARP, self.layouts.register_count), 0x7FFFDEAD, np.uint32)
                write_registers(registers.values, chosen, fill, None)
            for place in places:
                place.memory.loads[place.reached] += 1
            lanes.defer(LOAD, _Loaded(self, lanes, places, chosen, held))
        return ()

    def _tell_unwritten(self, lanes: Lanes, op: Op, places_of: list[list[_Place]]) -> None:
        """Notify of registers that get what nothing has written."""
        unwritten = None
        for chosen, places in zip(op.attrs["registers"], places_of, strict=True):
            for place in places:
                written = place.memory.written[place.where]
                if written.all():
                    continue
                if unwritten is None:
                    kind = op.operands[0].type
                    assert isinstance(kind, FragType)
                    unwritten = np.zeros((WARP * lanes.warps, kind.n), bool)
                words = ~written.all(-1) if self.pack else ~written
                rows = slice(WARP * place.row, WARP * (place.row + 1))
                unwritten[rows, list(chosen)] = np.repeat(words, len(chosen) // words.shape[1], axis=1)
        if unwritten is not None:
            lanes.unwritten(unwritten)


class _Loaded:
    """What a load does when it is waited for."""

    def __init__(
        self, atom: TmemLoad, lanes: Lanes, places: list[_Place], chosen: Any, held: list[HeldRegisters]
    ) -> None:
        self.atom, self.lanes, self.places, self.chosen, self.held = atom, lanes, places, chosen, held

    def __call__(self) -> None:
        for place, registers in zip(self.places, self.held, strict=True):
            self.atom._check(self.lanes, place)
            words = _packed(place.memory.words[place.where], self.atom.pack)
            write_registers(registers.values, self.chosen, words, None)
            place.memory.loads[place.reached] -= 1
            registers.release()


@dataclass(frozen=True, repr=False)
class TmemStore(TmemMove):
    """``tcgen05.st``: from registers to tensor memory, which has it after ``wait::st``.

    >>> TmemStore("16x256b", 2)
    SM100_TMEM_STORE_16x256b2x
    """

    name = STORE
    accesses = (
        Access("read", "source", REGISTERS),
        Access("write", "destination", (MemSpace.TMEM,), 1, agent=STORE),
    )

    @computed
    def src_bits(self) -> Layout:
        return self.register_bits

    @computed
    def dst_bits(self) -> Layout:
        return self.memory_bits

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        active_warps(lanes, self)
        fragment, *addresses = operands
        for chosen, address in zip(op.attrs["registers"], addresses, strict=True):
            places = self._places(lanes, address)
            self._tell(lanes, places)
            words = np.ascontiguousarray(read_registers(fragment, chosen)).view(np.uint32)
            values = words.reshape(lanes.warps, WARP, -1)
            for place in places:
                place.memory.stores[place.reached] += 1
            lanes.defer(STORE, _Stored(self, lanes, places, values))
        return ()


class _Stored:
    """What a store does when it is waited for."""

    def __init__(self, atom: TmemStore, lanes: Lanes, places: list[_Place], values: Array) -> None:
        self.atom, self.lanes, self.places, self.given = atom, lanes, places, values

    def __call__(self) -> None:
        for place in self.places:
            self.atom._check(self.lanes, place)
            place.memory.write(*place.where, _unpacked(self.given[place.row], self.atom.pack))
            place.memory.stores[place.reached] -= 1


@dataclass(frozen=True)
class TmemWait(Instruction):
    """``tcgen05.wait::ld`` or ``wait::st``: until all loads or stores of this thread are done. ``added``: the program
    has not written it, but uses registers that have to be there."""

    agent: str
    added: bool = field(default=False, compare=False)

    name = "tcgen05.wait"
    pending: ClassVar[int] = 0
    min_arch = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05
    accesses = ()

    @computed_once
    def orders(self) -> tuple[Ordering, ...]:
        return (Ordering("thread", acquire=True, release=True, through="group", agent=self.agent),)

    def implied(self) -> TmemWait:
        return TmemWait(self.agent, True)

    def mnemonic(self) -> str:
        return f"tcgen05.wait::{self.agent[-2:]}"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        active_warps(lanes, self)
        lanes.commit(self.agent)
        lanes.wait(self.agent, 0)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        from tilewright.atoms.wgmma_flow import in_flight
        from tilewright.atoms.wgmma_text import hold

        out.line(f'asm volatile("{self.mnemonic()}.sync.aligned;" ::: "memory");')
        hold(out, in_flight(out.function, self.agent).get(op, ()))
