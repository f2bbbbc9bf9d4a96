"""The threads that take part in a pipeline, and how they arrive."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.device.threads import WARP_SIZE, block_dim
from tilewright.lang.numbers.numeric import Integer


class Agent(Enum):
    """What the size of a group counts: threads, warps, blocks (with all their threads), clusters."""

    Thread = 1
    Warp = 2
    ThreadBlock = 3
    ThreadBlockCluster = 4


class MbarrierLayout(Enum):
    """The layouts of a pipeline's mbarriers in memory: the full ones of all stages, then the empty ones."""

    V0 = 1


class PipelineUserType(Enum):
    """The two sides of a pipeline, and who is both.

    >>> from tilewright import pipeline
    >>> def phases(t):
    ...     producer, consumer = pipeline.PipelineUserType.Producer, pipeline.PipelineUserType.Consumer
    ...     states = [pipeline.make_pipeline_state(side, 3) for side in (producer, consumer)]
    ...     return 10 * states[0].phase + states[1].phase  # a ring is empty at first: producers need not wait
    >>> per_thread(phases, 1)
    [10]
    """

    Producer = 1
    Consumer = 2
    ProducerConsumer = 3


class PipelineOp(Enum):
    """How a stage is signalled: by the threads themselves, by the bytes of TMA loads, by TMA stores that have read
    it, when the threads' ``cp.async`` copies have landed, or when ``tcgen05.mma`` are done (``TCGen05Mma``).
    ``ClcLoad``: by the answers of cluster launch control (:class:`~tilewright.pipeline.PipelineClcFetchAsync`).

    >>> PipelineOp.AsyncThread, PipelineOp.TmaLoad
    (<PipelineOp.AsyncThread: 1>, <PipelineOp.TmaLoad: 3>)
    """

    AsyncThread = 1
    TCGen05Mma = 2
    TmaLoad = 3
    ClcLoad = 4
    TmaStore = 5
    Composite = 6
    AsyncLoad = 7


class CooperativeGroup:
    """``size`` agents that act together: all of them commit, or all of them release.

    ``alignment``: ``size`` must be a multiple of it.

    >>> from tilewright import pipeline
    >>> pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)
    CooperativeGroup(Thread, 128)
    """

    __slots__ = ("agent", "alignment", "size")

    def __init__(self, agent: Agent, size: Any = 1, alignment: int | None = None) -> None:
        if not isinstance(agent, Agent):
            raise ConstraintError(f"CooperativeGroup: {agent!r} is not an Agent: {', '.join(Agent.__members__)}")
        if isinstance(size, float) and size.is_integer():  # 128 / 32
            size = int(size)
        whole = size if isinstance(size, int) else 1 if isinstance(size, Integer) else 0  # Integer: seen at run time
        if whole < 1:
            raise ConstraintError(f"CooperativeGroup: a size of {size!r}; it is a whole number of at least 1")
        if alignment is not None and isinstance(size, int) and size % alignment:
            raise ConstraintError(f"CooperativeGroup: {size} agents are not a multiple of the alignment {alignment}")
        self.agent, self.size, self.alignment = agent, size, alignment

    @property
    def arrivals(self) -> Any:
        """The threads of the group: how often a barrier that they all arrive at is arrived at."""
        if self.agent is Agent.Thread:
            return self.size
        if self.agent is Agent.Warp:
            return self.size * WARP_SIZE
        if self.agent is Agent.ThreadBlock:
            x, y, z = block_dim()
            return x * y * z * self.size
        raise ConstraintError(
            "CooperativeGroup: the barriers of a pipeline belong to one block; say how many threads of the cluster "
            "arrive there, as CooperativeGroup(Agent.Thread, size)"
        )

    def __repr__(self) -> str:
        return f"CooperativeGroup({self.agent.name}, {self.size})"
