"""The position of one side of a pipeline: the stage, the parity of its phase, and how many stages have gone by."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import Int32, wrap
from tilewright.lang.tensors.tensor_ssa import where
from tilewright.pipeline.agents import PipelineUserType


class PipelineState:
    """``index``: the stage, 0 to ``stages - 1``. ``phase``: the parity to wait for, flipped each time round.
    ``count``: calls of ``advance``. ``stages`` is 0 for a state that only names an index and a phase.

    >>> from tilewright import pipeline
    >>> pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 3)
    PipelineState(3 stages, count 0, index 0, phase 0)
    """

    __slots__ = ("_count", "_index", "_phase", "_stages")

    def __init__(self, stages: int, count: Any, index: Any, phase: Any) -> None:
        if not isinstance(stages, int) or stages < 0:
            raise ConstraintError(f"PipelineState: {stages!r} stages; their number is a Python int of at least 0")
        self._stages = stages
        self._count: Any = Int32(count)
        self._index: Any = Int32(index)
        self._phase: Any = Int32(phase)

    stages = property(lambda self: self._stages)
    count = property(lambda self: self._count)
    index = property(lambda self: self._index)
    phase = property(lambda self: self._phase)

    def advance(self, *, loc: Any = None, ip: Any = None) -> None:
        """Go to the next stage."""
        self._check_stages()
        self._count = self._count + 1
        if self._stages == 1:
            self._phase = self._phase ^ 1
            return
        following = self._index + 1
        around = following == self._stages
        self._index = where(around, Int32(0), following)
        self._phase = where(around, self._phase ^ 1, self._phase)

    def reverse(self, *, loc: Any = None, ip: Any = None) -> None:
        """Go back to the stage before."""
        self._check_stages()
        self._count = self._count - 1
        if self._stages == 1:
            self._phase = self._phase ^ 1
            return
        around = self._index == 0
        self._index = where(around, Int32(self._stages - 1), self._index - 1)
        self._phase = where(around, self._phase ^ 1, self._phase)

    def _check_stages(self) -> None:
        if not self._stages:
            raise ConstraintError(
                "PipelineState(stages=0) names one index and phase and has no next stage: make the state with the "
                "number of stages of its pipeline, or make another one for the next index"
            )

    def clone(self, *, loc: Any = None, ip: Any = None) -> PipelineState:
        """A state of its own at the same stage."""
        return PipelineState(self._stages, self._count, self._index, self._phase)

    def reset_count(self, *, loc: Any = None, ip: Any = None) -> None:
        """Count from 0 again."""
        self._count = Int32(0)

    def __extract_mlir_values__(self) -> list[Value]:
        return [x.ir_value() for x in (self._count, self._index, self._phase)]

    def __new_from_mlir_values__(self, values: list[Value]) -> PipelineState:
        facts = (Facts(True), Facts(True, 1, self._stages), Facts(True, 1, 2))
        return PipelineState(self._stages, *(wrap(v, f) for v, f in zip(values, facts, strict=True)))

    def __carry_key__(self) -> int:
        return self._stages

    def __repr__(self) -> str:
        return f"PipelineState({self._stages} stages, count {self._count}, index {self._index}, phase {self._phase})"


def make_pipeline_state(type: PipelineUserType, stages: int, *, loc: Any = None, ip: Any = None) -> PipelineState:
    """The first state of one side. A producer's first acquisitions are over at once, because all stages are empty. A
    state of 0 stages, of a pipeline that is not there, cannot advance.

    >>> make_pipeline_state(PipelineUserType.Producer, 3).phase, make_pipeline_state(PipelineUserType.Consumer, 3).phase
    (Int32(1), Int32(0))
    """
    return PipelineState(stages, 0, 0, 1 if type is PipelineUserType.Producer else 0)
