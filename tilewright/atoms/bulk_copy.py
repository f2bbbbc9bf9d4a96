"""Bulk copies of contiguous bytes, without a tensor map: ``cp.async.bulk`` and ``cp.reduce.async.bulk`` (PTX ISA).

One call stands for ``count`` copies of ``bytes`` bytes. Its operands are what all copies share (``shared``: mbarrier,
multicast mask, cache policy), then for each copy the destination and the source. Every thread that is here issues; a
program lets one do it (``with elect_one():``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.atoms.bulk_groups import BulkGroups
from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.mbarrier import MAP_RANK
from tilewright.atoms.mbarrier_state import Touch
from tilewright.atoms.reductions import REDUCTIONS, reduction_type
from tilewright.atoms.tma import AGENT, check_mbarrier
from tilewright.atoms.tma_engine import READS, WRITES, receivers, reduced
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Op, Value
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Instruction, Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.types import I16, I32, I64, MemSpace, PtrType, ScalarType, Type
from tilewright.layout import Layout

ALIGNMENT = 16
GLOBAL, SHARED = (MemSpace.GMEM, MemSpace.GENERIC), (MemSpace.SMEM,)


@dataclass(frozen=True, repr=False)
class BulkCopy(CopyInstruction):
    """The common part of the bulk copies. ``bits`` are those of one element: a copy takes any number of bytes that 16
    divides."""

    bits: int
    hint: bool = False

    min_arch = 90
    thr_id = Layout(1, 0)

    @computed
    def src_bits(self) -> Layout:
        return Layout((1, self.bits), (0, 1))

    dst_bits = ref_bits = src_bits

    def kinds(self) -> list[tuple[str, Type | None]]:
        """The operands that all copies share, with their types (None: a pointer to an mbarrier)."""
        return [("cache_policy", I64)] if self.hint else []

    def parts(self, operands: list[Any]) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """(shared operands, [(destination, source)])."""
        n = len(self.kinds())
        return operands[:n], list(zip(operands[n::2], operands[n + 1 :: 2], strict=True))

    def count(self, op: Op) -> int:
        return int(op.attrs["count"])

    def accessed(self, op: Op) -> list[tuple[Value, Access]]:
        _, copies = self.parts(op.operands)
        sides = [((target, self.destination), (source, self.source)) for target, source in copies]
        return [side for pair in sides for side in pair]

    def verify(self, op: Op) -> None:
        where = f" at {op.loc}" if op.loc else ""
        what, size = self.mnemonic(), op.attrs["bytes"]
        _check_size(what, size, where)
        shared, copies = self.parts(op.operands)
        if len(copies) != op.attrs["count"] or op.results:
            raise ConstraintError(f"{what}: {len(op.operands)} operands for {op.attrs['count']} copies{where}")
        for (name, kind), value in zip(self.kinds(), shared, strict=True):
            if kind is None:
                check_mbarrier(what, value, where)
            elif value.type != kind:
                raise ConstraintError(f"{what}: {name} is {kind}, not {value.type}{where}")
        for target, source in copies:
            _check_side(what, "destination", target, self.destination.spaces, where)
            _check_side(what, "source", source, self.source.spaces, where)

    def form(self) -> str:
        """The instruction with the names of its operands in braces."""
        raise NotImplementedError

    def asm_operands(self, out: Emitter, operands: dict[str, Value]) -> dict[str, str]:
        """The operands of the ``asm`` statement, each with its constraint."""
        return {name: _constraint(out, name, value) for name, value in operands.items()}

    def emit(self, out: Emitter, op: Op) -> None:
        shared, copies = self.parts(op.operands)
        hint = ".L2::cache_hint" if self.hint else ""
        by_name = dict(zip([name for name, _ in self.kinds()], shared, strict=True))
        for target, source in copies:
            operands = self.asm_operands(out, {"target": target, "source": source, **by_name})
            slots = {name: f"%{i}" for i, name in enumerate(operands)}
            text = self.form().format(hint=hint, size=op.attrs["bytes"], **slots)
            text += f", {slots['cache_policy']}" if self.hint else ""
            arguments = ", ".join(operands.values())
            out.line(f'asm volatile("{text};" :: {arguments} : "memory");')


@dataclass(frozen=True, repr=False)
class BulkLoad(BulkCopy):
    """Contiguous bytes from global to shared memory; they complete transactions of an mbarrier."""

    multicast: bool = False

    name = "cp.async.bulk"
    accesses = (
        Access("read", "source", GLOBAL, align=ALIGNMENT, agent=AGENT, proxy="async"),
        Access("write", "destination", SHARED, align=ALIGNMENT, agent=AGENT, proxy="async"),
        Access("update", "mbarrier", SHARED, 0, align=8, agent=AGENT, order="release", scope="cluster"),
    )

    @property
    def cute_name(self) -> str:
        return "SM90_BULK_COPY_G2S"

    def mnemonic(self) -> str:
        return f"bulk.load{'.multicast' if self.multicast else ''}{'.hint' if self.hint else ''}"

    def kinds(self) -> list[tuple[str, Type | None]]:
        return [("mbarrier", None), *([("mask", I16)] if self.multicast else []), *super().kinds()]

    def accessed(self, op: Op) -> list[tuple[Value, Access]]:
        return [*super().accessed(op), (op.operands[0], self.accesses[2])]

    def form(self) -> str:
        cast, mask = (".multicast::cluster", ", {mask}") if self.multicast else ("", "")
        return (
            f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{cast}{{hint}} "
            f"[{{target}}], [{{source}}], {{size}}, [{{mbarrier}}]{mask}"
        )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        shared, copies = self.parts(operands)
        size = op.attrs["bytes"]
        masks = lanes.spread(shared[1]).astype(np.int64) & 0xFFFF if self.multicast else None
        for target, source in copies:
            addresses = lanes.addresses(source)
            where = receivers(lanes, target, shared[0], masks)
            loads = []
            for lane in map(int, np.flatnonzero(lanes.active())):
                load = _Load(lanes, self.mnemonic(), int(addresses[lane]), size, where(lane))
                loads.append((load, lane, size))
            lanes.all_eventually(loads)
        return ()


@dataclass(frozen=True, repr=False)
class BulkStore(BulkCopy):
    """Contiguous bytes from shared to global memory, in a bulk group. ``reduction``: combined with the previous
    contents, as elements of ``element``."""

    reduction: str = ""
    element: ScalarType | None = None

    name = "cp.async.bulk"

    def __post_init__(self) -> None:
        if self.reduction and (self.reduction not in REDUCTIONS or not reduction_type(self.reduction, self.element)):
            raise ConstraintError(f"no bulk reduction by {self.reduction!r} of {self.element}")

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        does = "update" if self.reduction else "write"
        return (
            Access("read", "source", SHARED, align=ALIGNMENT, agent=READS, proxy="async"),
            Access(
                does,
                "destination",
                GLOBAL,
                align=ALIGNMENT,
                agent=WRITES,
                proxy="async",
                order="relaxed" if self.reduction else "weak",
                scope="gpu",
            ),
        )

    @property
    def cute_name(self) -> str:
        return f"SM90_BULK_REDUCE_{self.reduction.upper()}" if self.reduction else "SM90_BULK_COPY_S2G"

    def mnemonic(self) -> str:
        kind = f"reduce.{self.reduction}.{self.element}" if self.reduction else "store"
        return f"bulk.{kind}{'.hint' if self.hint else ''}"

    def form(self) -> str:
        head = "cp.reduce.async" if self.reduction else "cp.async"
        kind = f".{self.reduction}.{reduction_type(self.reduction, self.element)}" if self.reduction else ""
        return f"{head}.bulk.global.shared::cta.bulk_group{{hint}}{kind} [{{target}}], [{{source}}], {{size}}"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        size = op.attrs["bytes"]
        for target, source in self.parts(operands)[1]:
            addresses, places = lanes.addresses(target), lanes.places(source)
            stores = []
            for lane in map(int, np.flatnonzero(lanes.active())):
                store = _Store(lanes, self, int(addresses[lane]), int(places[lane]), size)
                stores.append((lane, store.read, store.write))
            lanes.beside(BulkGroups).add(lanes, stores)
        return ()


@dataclass(frozen=True, repr=False)
class BulkToBlock(BulkCopy):
    """Contiguous bytes from the own shared memory to that of the block ``rank`` of the cluster; they complete
    transactions of an mbarrier of that block.

    The destination and the mbarrier are pointers of the own block, and mean the same places in the other one.
    """

    name = "cp.async.bulk"
    remote = True

    def __post_init__(self) -> None:
        if self.hint:
            raise ConstraintError(f"{self.mnemonic()}: a copy between blocks takes no cache policy")

    accesses = (
        Access("read", "source", SHARED, align=ALIGNMENT, agent=AGENT, proxy="async"),
        Access("write", "destination", SHARED, align=ALIGNMENT, agent=AGENT, proxy="async"),
        Access("update", "mbarrier", SHARED, 0, align=8, agent=AGENT, order="release", scope="cluster"),
    )

    @property
    def cute_name(self) -> str:
        return "SM90_BULK_COPY_S2C"

    def mnemonic(self) -> str:
        return "bulk.to_block"

    def kinds(self) -> list[tuple[str, Type | None]]:
        return [("mbarrier", None), ("rank", I32)]

    def accessed(self, op: Op) -> list[tuple[Value, Access]]:
        return [*super().accessed(op), (op.operands[0], self.accesses[2])]

    def form(self) -> str:
        return (
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
            "[{target}], [{source}], {size}, [{mbarrier}]"
        )

    def asm_operands(self, out: Emitter, operands: dict[str, Value]) -> dict[str, str]:
        out.helper("map_shared_rank", MAP_RANK)
        rank = out.value(operands.pop("rank"))
        operands_text = super().asm_operands(out, operands)
        for name in ("target", "mbarrier"):
            operands_text[name] = f'"r"(map_shared_rank({out.shared_address(operands[name])}, {rank}))'
        return operands_text

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        (barrier, rank, *_), copies = self.parts(operands)
        for target, source in copies:
            sources, targets, barriers = lanes.places(source), lanes.places(target, rank), lanes.places(barrier, rank)
            copies_of_lanes = []
            for lane in map(int, np.flatnonzero(lanes.active())):
                moved = _Moved(lanes, op, int(sources[lane]), int(targets[lane]), int(barriers[lane]))
                copies_of_lanes.append((moved, lane, op.attrs["bytes"]))
            lanes.all_eventually(copies_of_lanes)
        return ()


@dataclass(frozen=True, repr=False)
class BulkPrefetch(Instruction):
    """Contiguous bytes from global memory to the L2 cache. Operands: the source, then the cache policy if ``hint``.

    A program cannot see what it does: no data moves to where a thread could read it, so it is no read of the source."""

    hint: bool = False

    name = "cp.async.bulk.prefetch"
    min_arch = 90
    accesses = ()

    def verify(self, op: Op) -> None:
        where = f" at {op.loc}" if op.loc else ""
        _check_size(self.name, op.attrs["bytes"], where)
        _check_side(self.name, "source", op.operands[0], GLOBAL, where)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        torn = (lanes.addresses(operands[0]) % ALIGNMENT != 0) & lanes.active()
        if torn.any():
            raise lanes.fault(f"{self.name} from an address that is not a multiple of {ALIGNMENT} bytes", torn)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        arguments = ", ".join(_constraint(out, "source", value) for value in op.operands)
        hint, policy = (".L2::cache_hint", ", %1") if self.hint else ("", "")
        text = f"cp.async.bulk.prefetch.L2.global{hint} [%0], {op.attrs['bytes']}{policy};"
        out.line(f'asm volatile("{text}" :: {arguments} : "memory");')


class _Load:
    """The moment at which the bytes arrive and count at the mbarriers."""

    def __init__(self, lanes: Lanes, name: str, address: int, size: int, where: list[tuple[int, int]]) -> None:
        self.lanes, self.name, self.address, self.size, self.where = lanes, name, address, size, where

    def __call__(self) -> None:
        data = self.lanes.global_bytes(self.address, [self.size], [1], False).copy()
        for place, barrier in self.where:
            self.lanes.shared_bytes(place, self.size, True)[:] = data
            Touch.at(self.lanes, np.array([barrier]), self.name).exists().complete(np.array([self.size]))


class _Moved:
    """The moment at which bytes arrive in another block, and count at its mbarrier."""

    def __init__(self, lanes: Lanes, op: Op, source: int, target: int, barrier: int) -> None:
        self.lanes, self.op, self.source, self.target, self.barrier = lanes, op, source, target, barrier

    def __call__(self) -> None:
        size = self.op.attrs["bytes"]
        data = self.lanes.shared_bytes(self.source, size, False).copy()
        self.lanes.shared_bytes(self.target, size, True)[:] = data
        name = self.op.attrs["atom"].mnemonic()
        Touch.at(self.lanes, np.array([self.barrier]), name).exists().complete(np.array([size]))


class _Store:
    """The two moments of a store: shared memory is read, global memory is written."""

    def __init__(self, lanes: Lanes, instruction: BulkStore, address: int, place: int, size: int) -> None:
        self.lanes, self.instruction, self.address, self.place, self.size = lanes, instruction, address, place, size
        self.data: Array | None = None

    def read(self) -> None:
        if self.data is None:
            self.data = self.lanes.shared_bytes(self.place, self.size, False).copy()

    def write(self) -> None:
        self.read()
        target, data, element = self.lanes.global_bytes(self.address, [self.size], [1], True), self.data, None
        assert data is not None
        element = self.instruction.element
        if self.instruction.reduction and element is not None:
            old, new = target.copy().view(element.dtype), data.view(element.dtype)
            data = reduced(self.instruction.reduction, old, new).view(np.uint8)
        target[:] = data
        self.data = np.zeros(0, np.uint8)


def _check_size(what: str, size: int, where: str) -> None:
    if size % ALIGNMENT or size <= 0:
        raise ConstraintError(f"{what}: copies a multiple of 16 bytes, not {size}{where}")


def _check_side(what: str, role: str, value: Value, spaces: tuple[MemSpace, ...], where: str) -> None:
    kind = value.type
    if not isinstance(kind, PtrType) or kind.space not in spaces:
        names = " or ".join(s.value for s in spaces)
        raise ConstraintError(f"{what}: the {role} must be in {names}, not at {kind}{where}")
    if kind.align % ALIGNMENT:
        raise ConstraintError(
            f"{what}: the {role} must be 16-byte aligned, but its address is only known to be a multiple of "
            f"{kind.align} bytes: state it (assumed_align=16, byte_alignment=16, cute.assume of the strides){where}"
        )


def _constraint(out: Emitter, name: str, value: Value) -> str:
    """One asm operand."""
    kind = value.type
    if isinstance(kind, PtrType) and kind.space is MemSpace.SMEM:
        return f'"r"({out.shared_address(value)})'
    return f'"{"h" if name == "mask" else "l"}"({out.value(value)})'
