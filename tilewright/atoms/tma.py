"""TMA copies of boxes of a tensor: ``cp.async.bulk.tensor`` and others (PTX ISA, "Data Movement and Conversion").

One call stands for ``count`` copies. Its operands are the tensor map (a parameter, or a pointer to 128 bytes of
memory), then what all copies share (``shared``: mbarrier, multicast mask, cache policy), then for each copy the address
in shared memory and the coordinates of the box, the contiguous mode first. A whole warp executes it; the instruction
elects the thread that issues. With ``each`` it is the bare instruction of PTX: every thread that is here issues.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.reductions import REDUCTIONS, tensor_types
from tilewright.atoms.tensor_memory_alloc import TmemRelinquish
from tilewright.atoms.tma_engine import READS, WRITES, Engine, LoadEngine, StoreEngine
from tilewright.atoms.warp import elect
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Op, Value
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Lanes
from tilewright.ir.target import Architecture
from tilewright.ir.tensormap import TENSOR_MAP, CopiedMap, expands
from tilewright.ir.types import I16, I32, I64, MemSpace, PtrType, Type
from tilewright.layout import Layout

AGENT = "tma"
ALIGNMENT = 128
"""Bytes that a box in shared memory is aligned to."""


@dataclass(frozen=True, repr=False)
class TmaCopy(CopyInstruction):
    """The common part of the copies. ``bits`` are those of the whole box, of which each block of a multicast issues a
    part; ``rank`` is that of the tensor map; ``hint``: a cache policy is given; ``each``: no thread is elected, and
    only the tensor map of a run knows the box: ``bits`` are those of a byte."""

    bits: int
    rank: int = 1
    hint: bool = False
    each: bool = False

    min_arch = 90
    boxes: ClassVar[int] = 1
    """Operands of each copy that are addresses in shared memory."""
    rows: ClassVar[bool] = False
    """Whether a copy is of four boxes of a matrix, a row each."""
    thr_id = Layout(1, 0)

    @property
    def numbers(self) -> int:
        """Numbers of each copy behind its addresses: coordinates."""
        return self.rank

    @computed
    def src_bits(self) -> Layout:
        return Layout((1, self.bits), (0, 1))

    dst_bits = ref_bits = src_bits

    def kinds(self) -> list[tuple[str, Type | None]]:
        """The operands that all copies share, with their types (None: a pointer to an mbarrier)."""
        return [("cache_policy", I64)] if self.hint else []

    def parts(self, operands: list[Any]) -> tuple[Any, list[Any], list[list[Any]]]:
        """(tensor map, shared operands, [address, coordinates...] of every copy)."""
        n, step = 1 + len(self.kinds()), self.boxes + self.numbers
        return operands[0], operands[1:n], [operands[i : i + step] for i in range(n, len(operands), step)]

    def count(self, op: Op) -> int:
        return int(op.attrs["count"])

    def verify(self, op: Op) -> None:
        where = f" at {op.loc}" if op.loc else ""
        kinds = self.kinds()
        if len(op.operands) != 1 + len(kinds) + op.attrs["count"] * (self.boxes + self.numbers) or op.results:
            raise ConstraintError(
                f"{self.mnemonic()}: {len(op.operands)} operands for {op.attrs['count']} copies{where}"
            )
        tensor_map, shared, copies = self.parts(op.operands)
        check_map(self.mnemonic(), tensor_map, where)
        for (name, kind), value in zip(kinds, shared, strict=True):
            if kind is None:
                check_mbarrier(self.mnemonic(), value, where)
            elif value.type != kind:
                raise ConstraintError(f"{self.mnemonic()}: {name} is {kind}, not {value.type}{where}")
        for operands in copies:
            for address in operands[: self.boxes]:
                check_box(self.mnemonic(), address, where)
            if any(c.type != I32 for c in operands[self.boxes :]):
                raise ConstraintError(f"{self.mnemonic()}: coordinates are i32{where}")

    def accessed(self, op: Op) -> list[tuple[Value, Access]]:
        tensor_map, _, copies = self.parts(op.operands)
        tensor, box = self.source, self.destination
        if box.memories == (MemSpace.GMEM,):
            tensor, box = box, tensor
        return [(tensor_map, tensor), *[(address, box) for address, *_ in copies]]

    def misfit(self, tensor_map: CopiedMap) -> tuple[str, str]:
        """Why this copy cannot be one by ``tensor_map``, and what to do; empty where it can."""
        return self.other_mode(tensor_map)

    def other_mode(self, tensor_map: CopiedMap) -> tuple[str, str]:
        """The same, of the mode and the rank alone."""
        if tensor_map.im2col is not None:
            fix = 'copy with mode="im2col" and im2col_offsets, or make a tensor map of tiles'
            return "the tensor map is for im2col copies", fix
        if tensor_map.rank != self.rank:
            problem = f"the tensor map has {tensor_map.rank} modes, and the copy is of {self.rank} coordinates"
            return problem, "make a tensor map for this copy"
        return "", ""

    # -- CUDA --------------------------------------------------------------------------------------------------------

    def emit(self, out: Emitter, op: Op) -> None:
        tensor_map, shared, copies = self.parts(op.operands)
        name = self.helper(out)
        common = [map_address(out, tensor_map), *self.shared_text(out, shared)]
        with nullcontext() if self.each else out.block(f"if ({elect(out)}())"):
            for operands in copies:
                addresses, coordinates = operands[: self.boxes], operands[self.boxes :]
                arguments = [*common, *map(out.shared_address, addresses), *map(out.value, coordinates)]
                out.line(f"{name}({', '.join(arguments)});")

    def shared_text(self, out: Emitter, shared: list[Value]) -> list[str]:
        return [
            self.mbarrier_text(out, v) if kind is None else out.value(v)
            for (_, kind), v in zip(self.kinds(), shared, strict=True)
        ]

    def mbarrier_text(self, out: Emitter, mbarrier: Value) -> str:
        return out.shared_address(mbarrier)

    def form(self) -> str:
        """The instruction with ``{map}``, ``{smem}``, ``{mbarrier}``, ``{mask}``, ``{policy}`` for its operands."""
        raise NotImplementedError

    def helper(self, out: Emitter) -> str:
        """The device function that issues one copy."""
        name = "_".join(["tma", *self.mnemonic().replace("::", ".").split(".")[1:]]).replace("_tile", "")
        coordinates, offsets = [f"c{i}" for i in range(self.rank)], [f"o{i}" for i in range(self.numbers - self.rank)]
        types = {"mbarrier": ("uint32_t", "r"), "mask": ("uint16_t", "h"), "cache_policy": ("uint64_t", "l")}
        kind_names = [n for n, _ in self.kinds()]
        names = ["map", *kind_names, *["smem"][: self.boxes], *coordinates, *offsets]
        kinds = {"map": ("void const*", "l"), "smem": ("uint32_t", "r"), **types}
        kinds |= dict.fromkeys(coordinates, ("int", "r")) | dict.fromkeys(offsets, ("uint16_t", "h"))
        slots = {n: f"%{i}" for i, n in enumerate(names)}
        box = f"[{slots['map']}, {{{', '.join(slots[c] for c in coordinates)}}}]"
        hint = ".L2::cache_hint" if self.hint else ""
        text = self.form().format(box=box, hint=hint, **slots) + (f", {slots['cache_policy']}" if self.hint else "")
        parameters = ", ".join(f"{kinds[n][0]} {n}" for n in names)
        operands = ", ".join(f'"{kinds[n][1]}"({n})' for n in names)
        return out.helper(
            name,
            f"__device__ __forceinline__ void {name}({parameters}) {{\n"
            f'  asm volatile("{text};"\n'
            f'               :: {operands} : "memory");\n'
            f"}}\n",
        )


@dataclass(frozen=True, repr=False)
class TmaLoad(TmaCopy):
    """A box from global to shared memory; its bytes complete transactions of an mbarrier. ``multicast``: into the same
    place of all blocks of the cluster in a 16-bit mask, where they count at the mbarriers at the same place.
    ``pair``: for an MMA of a pair of blocks; the bytes count at the mbarrier of the block of even rank of the pair that
    receives them (PTX ISA: ``.cta_group::2``; CuTe: include/cute/arch/copy_sm100_tma.hpp)."""

    multicast: bool = False
    pair: bool = False

    name = "cp.async.bulk.tensor"
    accesses = (
        Access("read", "source", (MemSpace.GMEM,), lanes=1, agent=AGENT, proxy="async"),
        Access("write", "destination", (MemSpace.SMEM,), align=ALIGNMENT, lanes=1, agent=AGENT, proxy="async"),
        Access(
            "update", "mbarrier", (MemSpace.SMEM,), 1, align=8, lanes=1, agent=AGENT, order="release", scope="cluster"
        ),
    )

    def accessed(self, op: Op) -> list[tuple[Value, Access]]:
        return [*super().accessed(op), (op.operands[1], self.accesses[2])]

    @property
    def cute_name(self) -> str:
        name = "SM100_TMA_2SM_LOAD" if self.pair else "SM90_TMA_LOAD"
        return f"{name}_MULTICAST" if self.multicast else name

    def mnemonic(self) -> str:
        ends = (".multicast" if self.multicast else "") + (".hint" if self.hint else "")
        return f"tma.load.{self.rank}d{'.pair' if self.pair else ''}{ends}"

    def lacking(self, arch: Architecture, op: Op | None = None) -> str:
        return TmemRelinquish().lacking(arch) if self.pair else super().lacking(arch, op)

    def kinds(self) -> list[tuple[str, Type | None]]:
        return [("mbarrier", None), *([("mask", I16)] if self.multicast else []), *super().kinds()]

    def mbarrier_text(self, out: Emitter, mbarrier: Value) -> str:
        # Bit 24 of an address of the cluster's shared memory is the lowest of the block's rank.
        own = out.shared_address(mbarrier)
        return f"{own} & 0xFEFFFFFFu" if self.pair else own

    def form(self) -> str:
        cast = ".multicast::cluster" if self.multicast else ""
        mask = ", {mask}" if self.multicast else ""
        pair = ".cta_group::2" if self.pair else ""
        return (
            f"cp.async.bulk.tensor.{self.rank}d{pair}.shared::cluster.global.mbarrier::complete_tx::bytes{cast}"
            f"{{hint}} [{{smem}}], {{box}}, [{{mbarrier}}]{mask}"
        )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        tensor_map, shared, copies = self.parts(operands)
        engine = LoadEngine(lanes, self, tensor_map, op.operands[0].type)
        engine.load(copies, shared[0], shared[1] if self.multicast else None, self.pair)
        return ()


@dataclass(frozen=True, repr=False)
class TmaStore(TmaCopy):
    """A box from shared to global memory, in a bulk group (``cp.async.bulk.commit_group``). ``reduction``: the elements
    are combined with those in global memory, each atomically."""

    reduction: str = ""

    name = "cp.async.bulk.tensor"

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        does = "update" if self.reduction else "write"
        return (
            Access("read", "source", (MemSpace.SMEM,), align=ALIGNMENT, lanes=1, agent=READS, proxy="async"),
            Access(
                does,
                "destination",
                (MemSpace.GMEM,),
                lanes=1,
                agent=WRITES,
                proxy="async",
                order="relaxed" if self.reduction else "weak",
                scope="gpu",
            ),
        )

    def __post_init__(self) -> None:
        if self.reduction and self.reduction not in REDUCTIONS:
            raise ConstraintError(f"TMA reduces by {', '.join(REDUCTIONS)}, not by {self.reduction!r}")

    def misfit(self, tensor_map: CopiedMap) -> tuple[str, str]:
        problem, fix = super().misfit(tensor_map)
        element = tensor_map.element
        if not problem and expands(element):
            problem = f"TMA expands numbers of {element.width} bits to 16 bytes for 16, and only loads them so"
            fix = "store them from registers"
        if not problem and self.reduction and element.name not in tensor_types(self.reduction):
            problem = f"there is no reduction by {self.reduction!r} of {element} in a tensor"
            fix = f"{self.reduction!r} is there for {', '.join(tensor_types(self.reduction))}"
        return problem, fix

    @property
    def cute_name(self) -> str:
        return f"SM90_TMA_REDUCE_{self.reduction.upper()}" if self.reduction else "SM90_TMA_STORE"

    def mnemonic(self) -> str:
        kind = f"reduce.{self.reduction}" if self.reduction else "store"
        return f"tma.{kind}.{self.rank}d{'.hint' if self.hint else ''}"

    def form(self) -> str:
        head = "cp.reduce.async" if self.reduction else "cp.async"
        kind = f".{self.reduction}.tile" if self.reduction else ""
        return f"{head}.bulk.tensor.{self.rank}d.global.shared::cta{kind}.bulk_group{{hint}} {{box}}, [{{smem}}]"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        tensor_map, _, copies = self.parts(operands)
        engine = StoreEngine(lanes, self, tensor_map, op.operands[0].type)
        engine.store(copies, self.reduction)
        return ()


@dataclass(frozen=True, repr=False)
class TmaPrefetch(TmaCopy):
    """A box from global memory to the L2 cache."""

    name = "cp.async.bulk.prefetch.tensor"
    boxes: ClassVar[int] = 0
    accesses = (Access("read", "source", (MemSpace.GMEM,), lanes=1, agent=AGENT, proxy="async"),)

    @property
    def cute_name(self) -> str:
        return "SM90_TMA_LOAD::PREFETCH"

    def mnemonic(self) -> str:
        return f"tma.prefetch.{self.rank}d{'.hint' if self.hint else ''}"

    def accessed(self, op: Op) -> list[tuple[Value, Access]]:
        return [(op.operands[0], self.source)]

    def form(self) -> str:
        return f"cp.async.bulk.prefetch.tensor.{self.rank}d.L2.global{{hint}} {{box}}"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        for _ in Engine(lanes, self, operands[0], op.operands[0].type).maps():
            pass  # nothing moves that a program can see; a torn warp or an invalid map is still a mistake
        return ()


# -- operands ----------------------------------------------------------------------------------------------------------


def check_map(what: str, value: Value, where: str) -> None:
    kind = value.type
    if kind != TENSOR_MAP and not (isinstance(kind, PtrType) and kind.align % 64 == 0):
        raise ConstraintError(
            f"{what}: a tensor map is a parameter of the kernel or in memory aligned to 64 bytes, not {kind}{where}"
        )


def check_mbarrier(what: str, value: Value, where: str) -> None:
    kind = value.type
    if not isinstance(kind, PtrType) or kind.space is not MemSpace.SMEM or kind.align % 8:
        raise ConstraintError(
            f"{what}: tma_bar_ptr points to an mbarrier, 8 aligned bytes of shared memory (Int64), not {kind}{where}"
        )


def check_box(what: str, value: Value, where: str) -> None:
    kind = value.type
    if not isinstance(kind, PtrType) or kind.space is not MemSpace.SMEM:
        raise ConstraintError(f"{what}: the box must be in shared memory, not at {kind}{where}")
    if kind.align % ALIGNMENT:
        raise ConstraintError(
            f"{what}: the box in shared memory is aligned to {ALIGNMENT} bytes, but its address is only known to be a "
            f"multiple of {kind.align}: allocate with byte_alignment=128 (1024 for a tile under a 128-byte "
            "swizzle) and "
            f"keep stages multiples of it{where}"
        )


def map_address(out: Emitter, value: Value) -> str:
    """The generic address of a tensor map. TMA cannot read a copy of a parameter in local memory."""
    if value.type != TENSOR_MAP:
        return out.value(value)
    if value not in out.function.params:
        raise ConstraintError(
            "a TMA atom that is chosen at run time: TMA reads its tensor map in the kernel's parameters; write a "
            "cute.copy for each atom inside the branches"
        )
    return f"&{out.value(value)}"
