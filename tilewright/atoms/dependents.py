"""``griddepcontrol``: kernels that follow each other in a stream overlap (PTX ISA, "griddepcontrol"; sm_90).

A kernel launched with ``use_pdl=True`` may begin before the one before it has ended. It waits for that one, and for
what it wrote, with ``wait``. ``launch_dependents`` says that the next kernel may begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes

OVERLAPPING = 90
"""The compute capability from which kernels of a stream can overlap."""


@dataclass(frozen=True)
class GridDependency(Instruction):
    """``griddepcontrol.wait`` or ``griddepcontrol.launch_dependents``. No operands.

    The simulator ends each kernel before the next begins, so that both act at once there. With ``min_arch`` below 90
    it is left out for the architectures that have it not, where kernels follow each other whole.
    """

    action: str
    name: ClassVar[str] = "griddepcontrol"
    grid_dependency = computed(lambda self: self.action)
    quiet: ClassVar[bool] = True
    min_arch: int = OVERLAPPING
    accesses = ()

    def __post_init__(self) -> None:
        if self.action not in ("wait", "launch_dependents"):
            raise ConstraintError(f"no griddepcontrol.{self.action}; there are wait and launch_dependents")

    @computed_once
    def orders(self) -> tuple[Ordering, ...]:
        return (Ordering("gpu", acquire=True),) if self.action == "wait" else ()

    def mnemonic(self) -> str:
        return f"{self.name}.{self.action}"

    def verify(self, op: Op) -> None:
        if op.operands or op.results:
            raise ConstraintError(f"{self.mnemonic()} takes no operands")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        if self.min_arch < OVERLAPPING:
            out.line(f"#if __CUDA_ARCH__ >= {OVERLAPPING}0")
        out.line(f'asm volatile("{self.mnemonic()};" ::: "memory");')
        if self.min_arch < OVERLAPPING:
            out.line("#endif")
