"""What orders ``tcgen05.mma``: ``tcgen05.commit``, and the fences around the synchronisation of threads (PTX ISA,
"tcgen05.commit", "tcgen05.fence")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.mbarrier import MbarrierInstruction
from tilewright.atoms.tcgen05_mma import AGENT
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed
from tilewright.ir.core import Op
from tilewright.ir.effects import Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes


@dataclass(frozen=True)
class Tcgen05Commit(MbarrierInstruction):
    """``tcgen05.commit``: the mbarrier (a pointer to it) gets one arrival of each thread that is here, when all
    ``tcgen05.mma`` that the thread has issued are done."""

    name: ClassVar[str] = "tcgen05.commit"
    min_arch: int = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05
    # What the thread has waited for before its MMAs is in the past of who waits for the commit, too: a stage that they
    # have read is filled again.
    orders = (
        Ordering("cta", release=True, through="mbarrier"),
        Ordering("cta", release=True, through="mbarrier", agent=AGENT),
    )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        touch = self.touch(lanes, operands).exists()
        once = np.ones(touch.rows.size, np.int64)
        lanes.eventually(lambda: touch.exists().arrive(once))
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        text = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
        out.line(f'asm volatile("{text}" :: "r"({self.address(out, op)}) : "memory");')


@dataclass(frozen=True)
class Tcgen05Fence(Instruction):
    """``tcgen05.fence``: ``before_thread_sync`` lets the asynchronous ``tcgen05`` before it be ordered by the
    synchronisation of threads that follows; ``after_thread_sync`` those behind it by the one before."""

    side: str

    name = "tcgen05.fence"
    quiet: ClassVar[bool] = True
    min_arch = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05
    accesses = ()

    @computed
    def orders(self) -> tuple[Ordering, ...]:
        """Between this thread's ``tcgen05`` and its synchronisation with others: the fence itself releases nothing."""
        return (Ordering("thread", acquire=self.side == "after", release=self.side == "before", agent=AGENT),)

    def __post_init__(self) -> None:
        if self.side not in ("before", "after"):
            raise ConstraintError(f"tcgen05.fence stands before or after a synchronisation, not {self.side!r}")

    def mnemonic(self) -> str:
        return f"tcgen05.fence::{self.side}_thread_sync"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f'asm volatile("{self.mnemonic()};" ::: "memory");')
