"""What orders ``tcgen05.mma``: ``tcgen05.commit``, and the fences around the synchronisation of threads (PTX ISA,
"tcgen05.commit", "tcgen05.fence")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.mbarrier import MbarrierInstruction
from tilewright.atoms.mbarrier_state import Touch
from tilewright.atoms.tcgen05_mma import AGENT
from tilewright.atoms.tensor_memory import COMMIT, FENCE
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.atoms.tensor_memory_state import TensorMemories
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.types import I16, MemSpace, PtrType


@dataclass(frozen=True)
class Tcgen05Commit(MbarrierInstruction):
    """``tcgen05.commit``: the mbarrier (a pointer to it) gets one arrival of each thread that is here, when all
    ``tcgen05.mma`` that the thread has issued are done.

    ``ctas``: of those MMAs. ``remote``: the mbarriers at the same place in the blocks of the cluster that a mask (i16,
    second operand) names get it.
    """

    ctas: int = 1
    remote: bool = False

    name: ClassVar[str] = COMMIT
    min_arch: int = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05

    # What the thread has waited for before its MMAs is in the past of who waits for the commit, too: a stage that they
    # have read is filled again.
    @computed_once
    def orders(self) -> tuple[Ordering, ...]:
        scope = "cluster" if self.remote or self.ctas == 2 else "cta"
        return (
            Ordering(scope, release=True, through="mbarrier"),
            Ordering(scope, release=True, through="mbarrier", agent=AGENT),
        )

    def mnemonic(self) -> str:
        return f"{self.name}.cta_group::{self.ctas}{'.multicast' if self.remote else ''}"

    def verify(self, op: Op) -> None:
        place = op.operands[0].type
        fits = isinstance(place, PtrType) and place.space is MemSpace.SMEM and place.align % 8 == 0
        need(op, fits, f"{self.name}: an mbarrier is an Int64 in shared memory, not {place}")
        required = [I16] if self.remote else []
        need(op, [v.type for v in op.operands[1:]] == required, f"{self.mnemonic()}: takes an mbarrier and {required}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.beside(TensorMemories).agree(lanes, self.mnemonic(), self.ctas)
        if not self.remote:
            touches = [Touch(lanes, operands[0], None, self.mnemonic())]
        else:
            masks = lanes.spread(operands[1]).astype(np.int64) & 0xFFFF
            none = (masks == 0) & lanes.active()
            if none.any():
                raise lanes.fault(
                    f"{self.mnemonic()}: the mask is 0, which names no block",
                    none,
                    "make the mask of the blocks whose loads the MMAs have read",
                )
            touches = Touch.in_blocks(lanes, operands[0], masks, self.mnemonic())

        def arrive() -> None:
            for touch in touches:
                touch.exists().arrive(np.ones(touch.rows.size, np.int64))

        for touch in touches:
            touch.exists()
        lanes.eventually(arrive)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        cast, slot = (".multicast::cluster", ", %1") if self.remote else ("", "")
        text = f"{self.name}.cta_group::{self.ctas}.mbarrier::arrive::one.shared::cluster{cast}.b64 [%0]{slot};"
        mask = f', "h"(static_cast<uint16_t>({out.value(op.operands[1])}))' if self.remote else ""
        out.line(f'asm volatile("{text}" :: "r"({out.shared_address(op.operands[0])}){mask} : "memory");')


@dataclass(frozen=True)
class Tcgen05Fence(Instruction):
    """``tcgen05.fence``: ``before_thread_sync`` lets the asynchronous ``tcgen05`` before it be ordered by the
    synchronisation of threads that follows; ``after_thread_sync`` those behind it by the one before. ``written``: by
    the program itself, not by a method of a pipeline: it means to have all that are needed."""

    side: str
    written: bool = True

    name = FENCE
    quiet: ClassVar[bool] = True
    min_arch = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05
    accesses = ()

    @computed_once
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
