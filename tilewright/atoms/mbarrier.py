"""mbarriers: barriers in shared memory that count arrivals and bytes (PTX ISA, "Parallel Synchronization and
Communication Instructions: mbarrier").

The first operand is a pointer to the 8 bytes of the mbarrier; all others are i32. A wait names a phase by its parity:
it is over when the current phase has the other one, so on a fresh mbarrier a wait for parity 1 is over at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.cp_async import AGENT
from tilewright.atoms.mbarrier_state import MOST, Touch
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Constant, Op
from tilewright.ir.effects import Access, Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes
from tilewright.ir.types import BOOL, I32, MemSpace, PtrType

BYTES = 8
_SHARED = (MemSpace.SMEM,)
_READ = Access("read", "mbarrier", _SHARED, bits=64, order="relaxed", scope="cta")
_UPDATE = Access("update", "mbarrier", _SHARED, bits=64, order="relaxed", scope="cta")
_UPDATE_CLUSTER = Access("update", "mbarrier", _SHARED, bits=64, order="relaxed", scope="cluster")


class MbarrierInstruction(Instruction):
    """The common part of the instructions. ``takes`` names the i32 operands after the pointer.

    ``order``: what PTX's ``.sem`` says, for those that have one (``default_order``: where the text leaves it out).
    A ``relaxed`` arrival releases what a fence before it does, and a relaxed test acquires by a fence after it.
    ``scope``: PTX's ``.scope``, "cta" or "cluster"; None leaves it out, which is cta.
    """

    takes: ClassVar[tuple[str, ...]] = ()
    default_order: ClassVar[str] = ""
    remote: bool = False
    order: str = ""
    scope: str | None = None

    def check_order(self) -> None:
        if self.order not in (self.default_order, "relaxed") or self.scope not in (None, "cta", "cluster"):
            raise ConstraintError(
                f"{self.name}: the order is {self.default_order} or relaxed, not {self.order!r}; "
                f"the scope is cta or cluster, not {self.scope!r}"
            )

    @property
    def is_relaxed(self) -> bool:
        return self.order == "relaxed"

    @property
    def qualifiers(self) -> str:
        """``.sem.scope`` of the PTX text; nothing where both are what PTX takes without them."""
        if self.scope is None and not self.is_relaxed:
            return ""
        return f".{self.order}.{self.ordered_scope}"

    @property
    def ordered_scope(self) -> str:
        """Whose accesses it orders: those of remote ones reach the cluster in any case."""
        return self.scope or ("cluster" if self.remote else "cta")

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return (_UPDATE_CLUSTER if self.remote else _UPDATE,)

    def mnemonic(self) -> str:
        return f"{self.name}.cluster" if self.remote else self.name

    def verify(self, op: Op) -> None:
        where = f" at {op.loc}" if op.loc else ""
        takes = (*self.takes, "rank") if self.remote else self.takes
        if len(op.operands) != 1 + len(takes) or any(v.type != I32 for v in op.operands[1:]):
            raise ConstraintError(
                f"{self.mnemonic()} takes ({', '.join(['mbarrier', *(f'{t}: i32' for t in takes)])}){where}"
            )
        kind = op.operands[0].type
        if not isinstance(kind, PtrType) or kind.space is not MemSpace.SMEM:
            raise ConstraintError(f"{self.mnemonic()}: an mbarrier must be in shared memory, not at {kind}{where}")
        if kind.align % BYTES:
            raise ConstraintError(
                f"{self.mnemonic()}: {kind} is not known to be aligned to 8 bytes; allocate mbarriers as Int64{where}"
            )

    def touch(self, lanes: Lanes, operands: list[Any]) -> Touch:
        return Touch(lanes, operands[0], operands[-1] if self.remote else None, self.mnemonic())

    def address(self, out: Emitter, op: Op) -> str:
        """The C++ text of the shared address: the own block's, or that of the block of this rank in the cluster."""
        own = out.shared_address(op.operands[0])
        if not self.remote:
            return own
        out.helper("map_shared_rank", MAP_RANK)
        return f"map_shared_rank({own}, {out.value(op.operands[-1])})"

    @property
    def space(self) -> str:
        return "shared::cluster" if self.remote else "shared::cta"


def _releases(atom: MbarrierInstruction) -> tuple[Ordering, ...]:
    return () if atom.is_relaxed else (Ordering(atom.ordered_scope, release=True, through="mbarrier"),)


MAP_RANK = """__device__ __forceinline__ uint32_t map_shared_rank(uint32_t address, uint32_t rank) {
  uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}
"""


@dataclass(frozen=True)
class MbarrierInit(MbarrierInstruction):
    """``mbarrier.init``: phase 0 begins and waits for ``count`` arrivals, as every later phase will."""

    name: ClassVar[str] = "mbarrier.init"
    accesses = (Access("write", "mbarrier", _SHARED, bits=64),)
    takes: ClassVar[tuple[str, ...]] = ("count",)

    def verify(self, op: Op) -> None:
        super().verify(op)
        count = op.operands[1]
        if isinstance(count, Constant) and not 1 <= count.value <= MOST:
            raise ConstraintError(f"mbarrier.init: a count of {count.value} arrivals; it is 1 to {MOST}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        touch = self.touch(lanes, operands)
        touch.init(touch.values(operands[1]))
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        operands = f'"r"({self.address(out, op)}), "r"({out.value(op.operands[1])})'
        out.line(f'asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: {operands} : "memory");')


@dataclass(frozen=True)
class MbarrierInval(MbarrierInstruction):
    """``mbarrier.inval``: the mbarrier ends; its bytes may be used again."""

    name: ClassVar[str] = "mbarrier.inval"
    accesses = (Access("write", "mbarrier", _SHARED, bits=64),)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        self.touch(lanes, operands).exists().inval()
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f'asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"({self.address(out, op)}) : "memory");')


@dataclass(frozen=True)
class MbarrierArrive(MbarrierInstruction):
    """``mbarrier.arrive``: every thread arrives ``arrivals`` times; what it wrote before is seen by those who wait.

    ``remote``: at the mbarrier at the same place in the block ``rank`` (last operand) of the cluster. More than one
    arrival and remote ones need sm_90. The release is one of the block's scope there, too, as in CUTLASS: one of the
    cluster's scope costs a fence of the whole GPU each time, which only data written into ``dsmem`` needs.
    """

    arrivals: int = 1
    remote: bool = False
    order: str = "release"
    scope: str | None = None
    name: ClassVar[str] = "mbarrier.arrive"
    default_order: ClassVar[str] = "release"

    def __post_init__(self) -> None:
        self.check_order()
        if not isinstance(self.arrivals, int) or not 1 <= self.arrivals <= MOST:
            raise ConstraintError(f"mbarrier.arrive: {self.arrivals!r} arrivals; a static count from 1 to {MOST}")

    @computed_once
    def orders(self) -> tuple[Ordering, ...]:
        return _releases(self)

    @computed
    def min_arch(self) -> int:
        return 90 if self.remote or self.arrivals > 1 or self.is_relaxed or self.scope == "cluster" else 80

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        touch = self.touch(lanes, operands).exists()
        touch.arrive(np.full(touch.rows.size, self.arrivals))
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        count = f", {self.arrivals}" if self.arrivals > 1 else ""
        text = f"mbarrier.arrive{self.qualifiers}.{self.space}.b64 _, [%0]{count};"
        out.line(f'asm volatile("{text}" :: "r"({self.address(out, op)}) : "memory");')


@dataclass(frozen=True)
class MbarrierExpectTx(MbarrierInstruction):
    """``mbarrier[.arrive].expect_tx``: the current phase waits for ``bytes`` more; with ``arrive`` each thread
    arrives, too."""

    arrive: bool = False
    remote: bool = False
    order: str = "release"
    scope: str | None = None
    name: ClassVar[str] = "mbarrier.expect_tx"
    default_order: ClassVar[str] = "release"
    expects_bytes: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ("bytes",)
    min_arch: int = 90

    def __post_init__(self) -> None:
        self.check_order()

    @computed_once
    def orders(self) -> tuple[Ordering, ...]:
        return _releases(self) if self.arrive else ()

    def mnemonic(self) -> str:
        name = "mbarrier.arrive.expect_tx" if self.arrive else self.name
        return f"{name}.cluster" if self.remote else name

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        touch = self.touch(lanes, operands).exists()
        sizes = touch.values(operands[1])
        if (sizes < 0).any():
            raise touch.fault(sizes < 0, f"{self.mnemonic()} of {int(sizes.min())} bytes", "expect what is copied")
        touch.expect(sizes)
        if self.arrive:
            touch.arrive(np.ones_like(sizes))
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        alone = f"expect_tx.relaxed.{self.ordered_scope}"
        form = f"arrive.expect_tx{self.qualifiers}" if self.arrive else alone
        text = f"mbarrier.{form}.{self.space}.b64 {'_, ' if self.arrive else ''}[%0], %1;"
        operands = f'"r"({self.address(out, op)}), "r"({out.value(op.operands[1])})'
        out.line(f'asm volatile("{text}" :: {operands} : "memory");')


@dataclass(frozen=True)
class MbarrierCompleteTx(MbarrierInstruction):
    """``mbarrier.complete_tx``: ``bytes`` of the current phase are there, as if an asynchronous copy had brought
    them."""

    name: ClassVar[str] = "mbarrier.complete_tx"
    takes: ClassVar[tuple[str, ...]] = ("bytes",)
    min_arch: int = 90

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        touch = self.touch(lanes, operands).exists()
        touch.complete(touch.values(operands[1]))
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        operands = f'"r"({self.address(out, op)}), "r"({out.value(op.operands[1])})'
        out.line(
            f'asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: {operands} : "memory");'
        )


@dataclass(frozen=True)
class MbarrierTest(MbarrierInstruction):
    """``mbarrier.try_wait.parity``, or with ``hint`` off ``test_wait``: whether the phase of this parity is complete.

    On a GPU ``try_wait`` may let the thread rest for a while first; sm_80 has ``test_wait`` only, and is given that.
    ``limited``: at most for so many nanoseconds (last operand).
    """

    hint: bool = True
    order: str = "acquire"
    scope: str | None = None
    limited: bool = False
    name: ClassVar[str] = "mbarrier.try_wait"
    default_order: ClassVar[str] = "acquire"
    quiet: ClassVar[bool] = True
    accesses = (_READ,)

    def __post_init__(self) -> None:
        self.check_order()

    @computed
    def takes(self) -> tuple[str, ...]:
        return ("parity", "nanoseconds") if self.limited else ("parity",)

    @computed_once
    def orders(self) -> tuple[Ordering, ...]:
        ordering = Ordering(self.ordered_scope, acquire=True, through="mbarrier", where_true=True)
        return () if self.is_relaxed else (ordering,)

    @computed
    def min_arch(self) -> int:
        return 90 if self.is_relaxed or self.scope == "cluster" else 80

    def mnemonic(self) -> str:
        return self.name if self.hint else "mbarrier.test_wait"

    def verify(self, op: Op) -> None:
        super().verify(op)
        if len(op.results) != 1 or op.results[0].type != BOOL:
            raise ConstraintError(f"{self.mnemonic()} gives one i1")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        touch = self.touch(lanes, operands).exists()
        done = np.zeros(touch.active.shape, bool)
        done[touch.active] = touch.test(touch.values(operands[1]))
        return (done,)

    def emit(self, out: Emitter, op: Op) -> None:
        name = _test(out, self.hint, self.qualifiers, self.limited)
        operands = [self.address(out, op), *map(out.value, op.operands[1:])]
        out.line(f"{out.declare(op.results[0])} = {name}({', '.join(operands)});")


@dataclass(frozen=True)
class MbarrierWait(MbarrierInstruction):
    """Wait until the phase of this parity is complete: a loop of ``mbarrier.try_wait.parity`` (sm_80: ``test_wait``).
    What others wrote before they arrived is visible after."""

    name: ClassVar[str] = "mbarrier.wait"
    blocking: ClassVar[bool] = True
    quiet: ClassVar[bool] = True
    accesses = (_READ,)
    orders = (Ordering("cta", acquire=True, through="mbarrier"),)
    takes: ClassVar[tuple[str, ...]] = ("parity",)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        touch = self.touch(lanes, operands).exists()
        touch.wait(touch.values(operands[1]))
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        test = _test(out, True)
        body = f"  while (!{test}(barrier, parity)) {{}}\n"
        head = "__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity)"
        out.helper("mbarrier_wait", f"{head} {{\n{body}}}\n")
        out.line(f"mbarrier_wait({self.address(out, op)}, {out.value(op.operands[1])});")


def _test(out: Emitter, hint: bool, qualifiers: str = "", limited: bool = False) -> str:
    """The device function that asks once."""
    form = "try_wait" if hint and out.arch >= 90 else "test_wait"
    name = f"mbarrier_{form}{qualifiers.replace('.', '_')}{'_limited' if limited else ''}"
    operands, inputs, last = "uint32_t barrier, uint32_t parity", '"r"(barrier), "r"(parity)', ""
    if limited:
        operands += ", uint32_t nanoseconds"
        if form == "try_wait":  # test_wait never rests
            inputs, last = f'{inputs}, "r"(nanoseconds)', ", %3"
    return out.helper(
        name,
        f"__device__ __forceinline__ bool {name}({operands}) {{\n"
        "  uint32_t done;\n"
        f'  asm volatile("{{ .reg .pred p; mbarrier.{form}.parity{qualifiers}.shared::cta.b64 p, [%1], %2{last}; '
        'selp.u32 %0, 1, 0, p; }"\n'
        f'               : "=r"(done) : {inputs} : "memory");\n'
        "  return done;\n"
        "}\n",
    )


@dataclass(frozen=True)
class CpAsyncMbarrierArrive(MbarrierInstruction):
    """``cp.async.mbarrier.arrive[.noinc]``: each thread arrives once all its earlier ``cp.async`` have landed.

    With ``noinc`` the arrival is one of those that ``mbarrier.init`` counts; without, the phase waits for one more.
    """

    noinc: bool = True
    name: ClassVar[str] = "cp.async.mbarrier.arrive"
    orders = (Ordering("cta", release=True, through="mbarrier", agent=AGENT),)

    def mnemonic(self) -> str:
        return f"{self.name}.noinc" if self.noinc else self.name

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        touch = self.touch(lanes, operands).exists()
        once = np.ones(touch.rows.size, np.int64)
        if not self.noinc:
            np.add.at(touch.table.pending, touch.rows, once)
        lanes.eventually(lambda: touch.exists().arrive(once), after=AGENT, places=touch.places)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        text = f"{self.mnemonic()}.shared::cta.b64 [%0];"
        out.line(f'asm volatile("{text}" :: "r"({self.address(out, op)}) : "memory");')


@dataclass(frozen=True)
class FenceMbarrierInit(Instruction):
    """``fence.mbarrier_init.release.cluster``: the mbarriers that this thread has initialised are seen so by all
    threads that synchronise with it. sm_80 has no clusters and is given a fence of the block."""

    name: ClassVar[str] = "fence.mbarrier_init"
    publishes_init = True
    quiet: ClassVar[bool] = True
    accesses = ()
    orders = (Ordering("cluster", release=True),)

    def verify(self, op: Op) -> None:
        if op.operands or op.results:
            raise ConstraintError("fence.mbarrier_init takes no operands")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        text = "fence.mbarrier_init.release.cluster;" if out.arch >= 90 else "fence.acq_rel.cta;"
        out.line(f'asm volatile("{text}" ::: "memory");')
