"""``cp.async``: 4, 8 or 16 bytes from global to shared memory without registers, in groups to be waited for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright.atoms.copy import OneThreadCopy, check_pointer, check_width, combine, split_operands
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed_once
from tilewright.ir.core import Constant, Op
from tilewright.ir.effects import Access, Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes
from tilewright.ir.types import MemSpace, ScalarType, element_of

AGENT = "cp.async"


class LoadCacheMode(Enum):
    """Which caches a load may fill: ``ALWAYS`` (L1 and L2, PTX ``.ca``) or ``GLOBAL`` (L2 only, ``.cg``); ``NONE``
    leaves it open, which is ``.ca`` too. PTX has no ``STREAMING`` and ``LAST_USE`` for ``cp.async``."""

    ALWAYS = "ca"
    GLOBAL = "cg"
    STREAMING = "cs"
    LAST_USE = "lu"
    NONE = "none"


@dataclass(frozen=True, repr=False)
class CpAsync(OneThreadCopy):
    """One ``cp.async``. With ``zero_fill`` a false predicate writes zeros instead of nothing.

    >>> CpAsync(128, LoadCacheMode.GLOBAL), CpAsync(64, zero_fill=True)
    (SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint64_t>)
    """

    bits: int
    cache: LoadCacheMode = LoadCacheMode.ALWAYS
    zero_fill: bool = False

    name = "cp.async"
    widths = (32, 64, 128)

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return (
            Access("read", "source", (MemSpace.GMEM, MemSpace.GENERIC), bits=self.bits, agent=AGENT),
            Access("write", "destination", (MemSpace.SMEM,), bits=self.bits, agent=AGENT),
        )

    def __post_init__(self) -> None:
        if self.bits not in self.widths:
            raise ConstraintError(
                f"cp.async copies 32, 64 or 128 bits, not {self.bits}: set num_bits_per_copy to one of them"
            )
        if self.cache is LoadCacheMode.NONE:
            object.__setattr__(self, "cache", LoadCacheMode.ALWAYS)
        if self.cache in (LoadCacheMode.STREAMING, LoadCacheMode.LAST_USE):
            raise ConstraintError(f"cp.async has no {self.cache}: use LoadCacheMode.ALWAYS or LoadCacheMode.GLOBAL")
        if self.cache is LoadCacheMode.GLOBAL and self.bits != 128:
            raise ConstraintError(
                f"cp.async with LoadCacheMode.GLOBAL (.cg) copies 128 bits only, not {self.bits}: "
                "use LoadCacheMode.ALWAYS or 128 bits"
            )

    @property
    def cute_name(self) -> str:
        cache = "ALWAYS" if self.cache is LoadCacheMode.ALWAYS else "GLOBAL"
        return f"SM80_CP_ASYNC_CACHE{cache}{'_ZFILL' if self.zero_fill else ''}<uint{self.bits}_t>"

    def mnemonic(self) -> str:
        return f"cp.async.{self.cache.value}.b{self.bits}{'.zfill' if self.zero_fill else ''}"

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> CpAsync:
        return self if num_bits in (0, self.bits) else CpAsync(num_bits, self.cache, self.zero_fill)

    def verify(self, op: Op) -> None:
        if "registers" in op.attrs:
            raise ConstraintError(f"{self}: copies from global to shared memory; for registers use CopyUniversalOp")
        sources, targets, _ = split_operands(op, op.operands)
        fix = f"state the alignment (assumed_align={self.bits // 8}) or copy fewer bits (num_bits_per_copy)"
        for source, target in zip(sources, targets, strict=True):
            a = check_pointer(self, self.source, source, fix)
            b = check_pointer(self, self.destination, target, fix)
            check_width(self, a.elem, b.elem)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        """Global memory is read now; shared memory changes when the program's waits force it."""
        sources, targets, predicates = split_operands(op, operands)
        n = self.bits // (8 * element_of(op.operands[0].type).bytes)
        for source, target, predicate in zip(sources, targets, predicates, strict=True):
            mask = combine(lanes, predicate)
            values = lanes.load(source, n, mask)
            lanes.defer(AGENT, _Arrival(lanes, target, values, lanes.mask if self.zero_fill else mask))
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        size, fill = self.bits // 8, self.zero_fill and op.attrs.get("predicated", False)
        name = f"cp_async_{self.cache.value}_{size}{'_zfill' if fill else ''}"
        form = f"cp.async.{self.cache.value}.shared.global.L2::128B"
        extra = ", int source_bytes" if fill else ""
        slot, operand = (", %3", ', "r"(source_bytes)') if fill else ("", "")
        body = f'"{form} [%0], [%1], %2{slot};" : : "r"(target), "l"(source), "n"({size}){operand} : "memory"'
        out.helper(
            name,
            f"__device__ __forceinline__ void {name}(uint32_t target, void const* source{extra}) {{\n"
            f"  asm volatile({body});\n"
            f"}}\n",
        )
        sources, targets, predicates = split_operands(op, op.operands)
        for source, target, predicate in zip(sources, targets, predicates, strict=True):
            arguments = f"{out.shared_address(target)}, {out.value(source)}"
            if fill:
                out.line(f"{name}({arguments}, {out.value(predicate)} ? {size} : 0);")
            elif predicate is None or (isinstance(predicate, Constant) and predicate.value):
                out.line(f"{name}({arguments});")
            elif not isinstance(predicate, Constant):
                out.line(f"if ({out.value(predicate)}) {name}({arguments});")


class _Arrival:
    """The moment at which the bytes of one cp.async appear in shared memory."""

    def __init__(self, lanes: Lanes, target: Any, values: Any, mask: Any) -> None:
        self.lanes, self.target, self.values, self.mask = lanes, target, values, mask

    def __call__(self) -> None:
        self.lanes.store(self.target, self.values, self.mask)


@dataclass(frozen=True)
class CpAsyncCommit(Instruction):
    """``cp.async.commit_group``: the copies issued so far and not yet in a group become one group."""

    name = "cp.async.commit_group"
    accesses = ()
    orders = (Ordering("thread", release=True, through="group", agent=AGENT),)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.commit(AGENT)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line('asm volatile("cp.async.commit_group;" : : : "memory");')


@dataclass(frozen=True)
class CpAsyncWait(Instruction):
    """``cp.async.wait_group N``: wait until at most the ``pending`` newest groups of this thread are unfinished."""

    pending: int

    name = "cp.async.wait_group"
    accesses = ()
    orders = (Ordering("thread", acquire=True, through="group", agent=AGENT),)

    def __post_init__(self) -> None:
        if not isinstance(self.pending, int) or self.pending < 0:
            raise ConstraintError(f"cp.async.wait_group takes a static count of groups >= 0, not {self.pending!r}")

    def mnemonic(self) -> str:
        return f"cp.async.wait_group {self.pending}"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.wait(AGENT, self.pending)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f'asm volatile("cp.async.wait_group {self.pending};" : : : "memory");')
