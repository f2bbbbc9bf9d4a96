"""The two sides of a pipeline with their states: what a warp that produces or consumes holds.

A side hands out a *handle* for each stage it has waited for; the handle stays with that stage when the side goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.ir.core import Value
from tilewright.pipeline.state import PipelineState

if TYPE_CHECKING:
    from tilewright.pipeline.threads import PipelineAsync


@dataclass(frozen=True)
class _Handle:
    """One stage that was waited for. A variable that holds one passes through run-time loops and branches."""

    pipeline: PipelineAsync
    state: PipelineState

    __carry_immutable__ = True

    @property
    def index(self) -> Any:
        """The stage: the last coordinate of a tensor of stages."""
        return self.state.index

    @property
    def count(self) -> Any:
        """How many stages this side had gone through before."""
        return self.state.count

    def __extract_mlir_values__(self) -> list[Value]:
        return self.state.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values: list[Value]) -> Any:
        return type(self)(self.pipeline, self.state.__new_from_mlir_values__(values))

    def __carry_key__(self) -> Any:
        return self.pipeline


@dataclass(frozen=True)
class ProducerHandle(_Handle):
    """A stage to write: every thread of the producers' group commits it once."""

    @property
    def barrier(self) -> Any:
        """The mbarrier that says that the stage is full."""
        return self.pipeline.producer_get_barrier(self.state)

    def commit(self, *, loc: Any = None, ip: Any = None) -> None:
        self.pipeline.producer_commit(self.state)


@dataclass(frozen=True)
class ConsumerHandle(_Handle):
    """A stage to read: every thread of the consumers' group releases it once."""

    @property
    def barrier(self) -> Any:
        """The mbarrier that says that the stage is empty."""
        return self.pipeline.consumer_get_barrier(self.state)

    def release(self, *, loc: Any = None, ip: Any = None) -> None:
        self.pipeline.consumer_release(self.state)


class _Side:
    """A pipeline and a state; passes through run-time loops and branches.

    The state object itself never changes: a side takes another one. So handles may keep it, and a loop that is traced
    again finds the first one.
    """

    __slots__ = ("_state", "pipeline")

    def __init__(self, pipeline: PipelineAsync, state: PipelineState) -> None:
        self.pipeline, self._state = pipeline, state

    def advance(self, *, loc: Any = None, ip: Any = None) -> None:
        """Go to the next stage."""
        self._state = self._state.clone()
        self._state.advance()

    def reset(self, *, loc: Any = None, ip: Any = None) -> None:
        """Count the stages from 0 again."""
        self._state = self._state.clone()
        self._state.reset_count()

    def clone(self, *, loc: Any = None, ip: Any = None) -> Any:
        """A side of its own at the same stage."""
        return type(self)(self.pipeline, self._state.clone())

    def __extract_mlir_values__(self) -> list[Value]:
        return self._state.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values: list[Value]) -> Any:
        return type(self)(self.pipeline, self._state.__new_from_mlir_values__(values))

    def __carry_key__(self) -> Any:
        return self.pipeline


class PipelineProducer(_Side):
    """The side that writes stages.

    >>> import tilewright as cutlass
    >>> from tilewright import pipeline, utils
    >>> @cute.jit
    ... def countdown(t):
    ...     result = cutlass.Int32(0)
    ...     ring = utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout((32, 2)))
    ...     one_warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     pipe = pipeline.PipelineAsync.create(num_stages=2, producer_group=one_warp, consumer_group=one_warp)
    ...     producer, consumer = pipe.make_participants()
    ...     if cute.arch.warp_idx() == 0:
    ...         for i in cutlass.range(4):
    ...             empty = producer.acquire_and_advance()  # a handle of one stage
    ...             ring[t, empty.index] = 4 - i
    ...             empty.commit()
    ...         producer.tail()
    ...     else:
    ...         for i in cutlass.range(4):
    ...             full = consumer.wait_and_advance()
    ...             result = 10 * result + ring[t - 32, full.index]
    ...             full.release()
    ...     return result
    >>> per_thread(countdown, 64)[32]
    4321
    """

    __slots__ = ()
    ImmutableResourceHandle = ProducerHandle
    __state = property(lambda self: self._state)  # published kernels read it by its mangled name

    def current_handle(self) -> ProducerHandle:
        """The current stage, without waiting."""
        return ProducerHandle(self.pipeline, self._state)

    def acquire(
        self, try_acquire_token: Any = None, *, expected_tx: Any = None, loc: Any = None, ip: Any = None
    ) -> ProducerHandle:
        """Wait until the current stage is empty. ``expected_tx``: bytes of this round, of a pipeline of TMA loads."""
        bytes_ = {} if expected_tx is None else {"expected_tx": expected_tx}
        self.pipeline.producer_acquire(self._state, try_acquire_token, **bytes_)
        return self.current_handle()

    def acquire_and_advance(
        self, try_acquire_token: Any = None, *, expected_tx: Any = None, loc: Any = None, ip: Any = None
    ) -> ProducerHandle:
        """Wait until the current stage is empty, and go to the next one."""
        handle = self.acquire(try_acquire_token, expected_tx=expected_tx)
        self.advance()
        return handle

    def try_acquire(self, *, loc: Any = None, ip: Any = None) -> Any:
        """Whether the current stage is empty: a token for :meth:`acquire`."""
        return self.pipeline.producer_try_acquire(self._state)

    def commit(self, handle: ProducerHandle | None = None, *, loc: Any = None, ip: Any = None) -> None:
        """This thread has written its part of ``handle``'s stage, or of the current one."""
        self.pipeline.producer_commit(self._state if handle is None else handle.state)

    def tail(self, *, loc: Any = None, ip: Any = None) -> None:
        """Wait until all stages have been released."""
        self.pipeline.producer_tail(self._state)


class PipelineConsumer(_Side):
    """The side that reads stages.

    >>> import tilewright as cutlass
    >>> from tilewright import pipeline, utils
    >>> @cute.jit
    ... def first(t):
    ...     result = cutlass.Int32(0)
    ...     word = utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(32))
    ...     one_warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     pipe = pipeline.PipelineAsync.create(num_stages=1, producer_group=one_warp, consumer_group=one_warp)
    ...     if t < 32:
    ...         empty = pipe.make_producer().acquire_and_advance()
    ...         word[t] = 7 * t
    ...         empty.commit()
    ...     else:
    ...         consumer = pipe.make_consumer()
    ...         token = consumer.try_wait()  # asks without waiting
    ...         full = consumer.wait_and_advance(token)
    ...         result = word[t - 32]
    ...         full.release()
    ...     return result
    >>> per_thread(first, 64)[32:35]
    [0, 7, 14]
    """

    __slots__ = ()
    ImmutableResourceHandle = ConsumerHandle
    __state = property(lambda self: self._state)  # as above

    def current_handle(self) -> ConsumerHandle:
        """The current stage, without waiting."""
        return ConsumerHandle(self.pipeline, self._state)

    def wait(self, try_wait_token: Any = None, *, loc: Any = None, ip: Any = None) -> ConsumerHandle:
        """Wait until the current stage is full."""
        self.pipeline.consumer_wait(self._state, try_wait_token)
        return self.current_handle()

    def wait_and_advance(self, try_wait_token: Any = None, *, loc: Any = None, ip: Any = None) -> ConsumerHandle:
        """Wait until the current stage is full, and go to the next one."""
        handle = self.wait(try_wait_token)
        self.advance()
        return handle

    def try_wait(self, *, loc: Any = None, ip: Any = None) -> Any:
        """Whether the current stage is full: a token for :meth:`wait`."""
        return self.pipeline.consumer_try_wait(self._state)

    def release(self, handle: ConsumerHandle | None = None, *, loc: Any = None, ip: Any = None) -> None:
        """This thread has read its part of ``handle``'s stage, or of the current one."""
        self.pipeline.consumer_release(self._state if handle is None else handle.state)
