"""Thread-block and warp synchronisation: ``bar.sync`` / ``bar.arrive`` (PTX ISA, "bar"), ``bar.warp.sync`` and fences.

On the simulator a barrier counts whole warps: a warp arrives with 32 threads, as the PTX ISA has it. Fences order the
memory of one thread as others see it; the simulator's memories are sequentially consistent, so there a fence does
nothing: its ``orders`` are for checkers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.effects import Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.target import WARP
from tilewright.ir.types import I32

NAMED_BARRIERS = 16


def check_named(op: Op, operands: Sequence[Value], name: str) -> None:
    """``id`` in 0..15 and a count of whole warps, as far as they are known while staging."""
    need(
        op,
        len(operands) == 2 and all(v.type == I32 for v in operands),
        f"{name} takes (id: i32, number_of_threads: i32)",
    )
    barrier, count = operands
    if isinstance(barrier, Constant):
        need(
            op, 0 <= barrier.value < NAMED_BARRIERS, f"{name}: barrier {barrier.value} does not exist; ids are 0 to 15"
        )
    if isinstance(count, Constant):
        need(
            op,
            count.value > 0 and count.value % WARP == 0,
            f"{name}: {count.value} threads; a barrier counts whole warps, so give a multiple of 32",
        )


@dataclass(frozen=True)
class SyncThreads(Instruction):
    """``__syncthreads()``: every thread of the block waits for all others. No operands."""

    name: ClassVar[str] = "bar.sync.all"
    whole_block: ClassVar[bool] = True
    blocking: ClassVar[bool] = True
    quiet: ClassVar[bool] = True
    accesses = ()
    orders = (Ordering("cta", acquire=True, release=True, through="barrier"),)

    def verify(self, op: Op) -> None:
        need(op, not op.operands, "sync_threads takes no operands")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.barrier(0, None)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line("__syncthreads();")


@dataclass(frozen=True)
class BarrierSync(Instruction):
    """``bar.sync id, count``: wait until ``count`` threads (whole warps) have arrived at ``id``. Operands (id,
    count). Not ``aligned``: the compiler need not assume that a warp's threads come to it together."""

    aligned: bool = True
    name: ClassVar[str] = "bar.sync"
    blocking: ClassVar[bool] = True
    quiet: ClassVar[bool] = True
    accesses = ()
    orders = (Ordering("cta", acquire=True, release=True, through="barrier"),)

    def verify(self, op: Op) -> None:
        check_named(op, op.operands, "barrier")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.barrier(operands[0], operands[1])
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        barrier, count = (out.value(v) for v in op.operands)
        text = "bar.sync" if self.aligned else "barrier.sync"
        out.line(f'asm volatile("{text} %0, %1;" :: "r"({barrier}), "r"({count}) : "memory");')


@dataclass(frozen=True)
class BarrierArrive(Instruction):
    """``bar.arrive id, count``: arrive at barrier ``id`` without waiting. Operands (id, count). ``aligned`` as in
    :class:`BarrierSync`."""

    aligned: bool = True
    name: ClassVar[str] = "bar.arrive"
    accesses = ()
    orders = (Ordering("cta", release=True, through="barrier"),)

    def verify(self, op: Op) -> None:
        check_named(op, op.operands, "barrier_arrive")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.arrive(operands[0], operands[1])
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        barrier, count = (out.value(v) for v in op.operands)
        text = "bar.arrive" if self.aligned else "barrier.arrive"
        out.line(f'asm volatile("{text} %0, %1;" :: "r"({barrier}), "r"({count}) : "memory");')


@dataclass(frozen=True)
class SyncWarp(Instruction):
    """``__syncwarp(mask)``: the lanes of ``mask`` wait for each other. Operand: mask (i32), or none."""

    name: ClassVar[str] = "bar.warp.sync"
    quiet: ClassVar[bool] = True
    accesses = ()
    orders = (Ordering("warp", acquire=True, release=True, through="warp"),)

    def verify(self, op: Op) -> None:
        need(op, len(op.operands) <= 1, "sync_warp takes one mask at most")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f"__syncwarp({out.value(op.operands[0])});" if op.operands else "__syncwarp();")


FENCES = {"cta": "__threadfence_block();", "gpu": "__threadfence();", "sys": "__threadfence_system();"}
ACQ_REL = {scope: f'asm volatile("fence.acq_rel.{scope};" ::: "memory");' for scope in ("cta", "cluster", "gpu", "sys")}


@dataclass(frozen=True)
class Fence(Instruction):
    """A memory fence. ``semantics``: ``"sc"`` (``__threadfence*``; scopes cta gpu sys) or ``"acq_rel"`` (also
    cluster)."""

    scope: str = "gpu"
    semantics: str = "sc"
    name: ClassVar[str] = "fence"
    quiet: ClassVar[bool] = True
    accesses = ()

    def __post_init__(self) -> None:
        scopes = FENCES if self.semantics == "sc" else ACQ_REL
        if self.semantics not in ("sc", "acq_rel") or self.scope not in scopes:
            raise ConstraintError(
                f"no fence.{self.semantics}.{self.scope}; scopes of {self.semantics} are {', '.join(scopes)}"
            )

    @computed_once
    def orders(self) -> tuple[Ordering, ...]:
        return (Ordering(self.scope, acquire=True, release=True),)

    @computed
    def min_arch(self) -> int:
        return 90 if self.scope == "cluster" else 80

    def mnemonic(self) -> str:
        return f"fence.{self.semantics}.{self.scope}"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(FENCES[self.scope] if self.semantics == "sc" else ACQ_REL[self.scope])


@dataclass(frozen=True)
class FenceProxy(Instruction):
    """``fence.proxy.async[.space]``: order generic accesses with those of the async proxy (TMA, wgmma) to ``space``:
    ``global``, ``shared::cta``, ``shared::cluster``, or ``""`` for all memory. ``kind`` ``alias``: accesses to one
    place by two addresses.
    """

    space: str = "shared::cta"
    kind: str = "async"
    name: ClassVar[str] = "fence.proxy"
    publishes_init = computed(lambda self: self.kind == "async")
    quiet: ClassVar[bool] = True
    accesses = ()

    def __post_init__(self) -> None:
        spaces = ("", "global", "shared::cta", "shared::cluster") if self.kind == "async" else ("",)
        if self.kind not in ("async", "alias") or self.space not in spaces:
            raise ConstraintError(f"no {self.mnemonic()}")

    @computed_once
    def orders(self) -> tuple[Ordering, ...]:
        proxies = ("generic", "async") if self.kind == "async" else ("generic",)
        return (Ordering("thread", acquire=True, release=True, proxies=proxies),)

    @computed
    def min_arch(self) -> int:
        return 90 if self.kind == "async" else 80

    def fences_async_proxy(self, memory: str) -> bool:
        return self.kind == "async" and self.space.partition(":")[0] in ("", memory)

    def mnemonic(self) -> str:
        return f"{self.name}.{self.kind}{'.' if self.space else ''}{self.space}"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f'asm volatile("{self.mnemonic()};" ::: "memory");')
