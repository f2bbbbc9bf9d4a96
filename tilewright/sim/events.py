"""The events of a simulated launch, for observers: profiles, checkers, traces.

An observer is a class with some of the methods of :class:`Observer`. A factory makes one for each launch::

    with observing(lambda name, config: MyObserver()):
        kernel(...)

Threads come as a *group* (``group.warps``: numbers of its warps in the wave; ``group.wave.coords``: the coordinates of
the wave's blocks) with a mask over its lanes (bool ``[L]``, None: all). The op that acts is ``group.lanes.op``; what it
is and orders, its class says (``ir/effects.py``). Without observers a launch makes no event, and pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import SimulationError
from tilewright.ir.core import Op
from tilewright.ir.runtime import LaunchConfig

if TYPE_CHECKING:
    from tilewright.sim.agents import Effect
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.program import ControlFlow
    from tilewright.sim.shared import PieceReads
    from tilewright.sim.wave import Wave

Mask = np.ndarray | None


class Observer:
    """The events. Those that a subclass does not define are not even looked up while the launch runs.
    ``follows_errors``: whether it is also notified of what a launch was about to do when an error ended it.
    ``each_effect``: whether it wants an asynchronous effect for each repetition of a call, or one may stand for all.
    ``each_landing``: whether effects of one instruction in several blocks are to land one by one.
    ``follows_issues``: whether it matters to it whether a load came before a ``cp.async`` of its stretch or after.
    ``asleep``: events that it defines and does not listen for yet (:meth:`Events.wake`)."""

    follows_errors = False
    each_effect = True
    each_landing = True
    follows_issues = True
    asleep: frozenset[str] = frozenset()

    def begin(self, launch: Launch) -> None:
        """A launch begins."""

    def end(self, launch: Launch) -> None:
        """A launch has come to its end without an error."""

    def error(self, launch: Launch, error: SimulationError) -> None:
        """A launch ends with an error (a fault, a hang), whose text an observer may add to."""

    def wave(self, wave: Wave) -> None:
        """Blocks become resident; their warps begin."""

    def left(self, group: Group) -> None:
        """The warps of a group have ended."""

    def executed(self, group: Group, op: Op) -> None:
        """``op`` has been executed (before the wait that it may begin). Costs a call for every op."""

    def entered(self, group: Group, node: int) -> None:
        """A stretch of straight code begins: ``group.program.nodes[node]``, all of whose ops the active lanes execute.
        Cheaper than ``executed`` for those who count."""

    def flow(self, group: Group, op: Op, flow: ControlFlow) -> None:
        """A branch or loop decides by registers, and moves values (only ``executed`` is not called for it)."""

    def fragment(self, group: Group, op: Op) -> None:
        """``op`` has read or written fragments that an instruction works on later (or it is such an instruction)."""

    def access(
        self, verb: str, buffer: Any, group: Group, off: np.ndarray, access: Any, mask: Mask, values: Any
    ) -> None:
        """Threads are about to access memory, each ``access.nbytes`` at its byte offset in ``buffer``.

        Args:
            verb: ``"load"``, ``"store"`` or ``"atomic"``.
            off: the offsets of the *active* lanes, in their order; in shared memory from the start of the lane's block,
                or with a rank of the cluster in the high bits (``shared.RANK_SHIFT``).
            access: what is accessed (:class:`tilewright.sim.access.VectorAccess`).
            values: what a store writes: one for each active lane, or one for all; None otherwise.
        """

    def pointed(self, verb: str, buffer: Any, group: Group, pointer: Any, access: Any, mask: Mask, values: Any) -> None:
        """An observer that defines this, too, gets it instead of ``access`` where all active lanes are known to be
        inside and aligned: the offsets of all lanes are those of ``pointer`` (:class:`tilewright.sim.values.Ptr`), and
        ``values`` has what a store writes for all of them. Accesses are faster when every observer of ``access``
        defines it."""

    def pointed_together(
        self,
        verb: str,
        buffer: Any,
        group: Group,
        pointer: Any,
        distances: Sequence[int],
        access: Any,
        values: Callable[[int], Any],
    ) -> None:
        """:meth:`pointed` of all lanes for each of ``distances`` in bytes from the pointer; ``values(k)``: what the
        k-th one stores. An observer may say once for all of them what it would say of each."""
        for k, at in enumerate(distances):
            self.pointed(verb, buffer, group, pointer.plus(at), access, None, values(k))

    def pointed_each(
        self,
        verb: str,
        buffer: Any,
        group: Group,
        pointers: Sequence[Any],
        access: Any,
        values: Callable[[int], Any],
    ) -> None:
        """The same through each of several pointers, whatever their offsets."""
        for k, pointer in enumerate(pointers):
            self.pointed(verb, buffer, group, pointer, access, None, values(k))

    def loaded(self, group: Group, pointer: Any, access: Any, copies: Sequence[tuple[Op, tuple[int, ...]]]) -> None:
        """Loads by all lanes that several ops of a stretch make through one pointer: each op with its distances, which
        are whole words. It is told at the first of them, and nothing between them writes or orders anything; nothing
        is issued between them, either, for an observer that follows issues (:attr:`follows_issues`)."""
        for op, distances in copies:
            group.lanes.op = op
            self.pointed_together("load", pointer.buf, group, pointer, distances, access, no_values)

    def stretch(
        self, group: Group, memory: str, start: int, shape: tuple[int, ...], strides: tuple[int, ...], writes: bool
    ) -> None:
        """An asynchronous unit is about to read bytes, or to write them (a reduction, too), whose last mode is
        contiguous. ``memory`` ``"shared"``: ``start`` counts from the first byte of the wave's shared memory;
        ``"global"``: an absolute address."""

    def pieces(self, group: Group, reads: PieceReads, rows: np.ndarray) -> None:
        """An asynchronous unit is about to read pieces of 16 bytes, on behalf of the group's warps ``rows [units]`` and
        those that follow."""

    def tensor_memory(self, group: Group, row: int, memory: Any, writes: bool, where: list[Any]) -> None:
        """Warp ``row`` of the group issues an asynchronous access to tensor memory (``memory``:
        :class:`tilewright.atoms.tensor_memory_state.TensorMemory`), at the cells of the indices (lanes, columns)
        ``where``. An MMA reads operand A and writes its accumulators."""

    def unwritten(self, group: Group, registers: np.ndarray) -> None:
        """The op that is executed loads from tensor memory what nothing has written since it was allocated: to
        ``registers [lanes, registers of its fragment]``, true where that is so of any."""

    def ordered(self, group: Group, op: Op) -> None:
        """A call whose class states ``orders`` beside barriers has been executed: a fence, a commit or wait of a group,
        ``bar.warp.sync``. The lanes are those of ``group.mask``."""

    def barrier(self, group: Group, rows: np.ndarray, keys: np.ndarray, target: np.ndarray, waits: bool) -> None:
        """Whole warps (``rows`` of the group) have arrived at barriers of their blocks: ``keys`` = block * 16 + id.
        What is complete is in ``group.wave.barriers``; a warp's phase is, when ``completed[key] >= target``."""

    def cluster(self, group: Group, threads: np.ndarray, waits: bool) -> None:
        """Threads (numbers in the wave) have arrived at the barrier of their cluster, or begin to wait there. The state
        is in ``group.wave.clusters``."""

    def mbarrier(self, group: Group, what: str, places: np.ndarray, lanes: np.ndarray, done: np.ndarray | None) -> None:
        """Lanes of the group touch the mbarriers at ``places`` (:meth:`Lanes.places`): ``lanes`` are their rows, empty
        for an asynchronous unit.

        Args:
            what: ``init``, ``inval``, ``arrive`` (what the phase waited for may now be there), ``complete`` (bytes have
                come), ``test`` or ``wait``.
            done: for ``arrive`` and ``complete`` whether the phase was completed by it, for ``test`` what it gave.
        """

    def waits(self, group: Group) -> None:
        """The warps of a group begin to wait: ``group.wait`` says for what."""

    def resumes(self, group: Group, wait: Any) -> None:
        """The wait of a group is over."""

    def issue(self, group: Group, effect: Effect) -> None:
        """An asynchronous effect has been issued (``effect.op``, ``effect.mask``)."""

    def issued_together(self, group: Group, effects: Sequence[Effect]) -> None:
        """:meth:`issue` of several effects of one op, such as the boxes that its warps' elected threads have copied.
        An observer may note at once what it would note of each."""
        for effect in effects:
            self.issue(group, effect)

    def land(self, effect: Effect, begins: bool) -> None:
        """An asynchronous effect takes place: before it, and after. Accesses between are those of its agent."""


def no_values(k: int) -> None:
    """The values of loads."""


# Several events of one kind at once: any observer of that event is notified of them.
TOGETHER = ("pointed_together", "pointed_each", "loaded", "issued_together")
NAMES = tuple(
    name
    for name, value in vars(Observer).items()
    if not name.startswith("_") and callable(value) and name not in TOGETHER
)


class RunAgain(Exception):
    """Raised by an observer in the middle of an op that only reads: the op is executed again from its start, and from
    there on the observers are notified of every op."""


class Events:
    """Hands each event to the observers that listen for it."""

    def __init__(self, observers: list[Observer]) -> None:
        self.listened: set[str] = set()
        self.quick: Callable[..., None] | None = None
        # ``pointed_together`` and ``pointed_each``, where there is ``quick``.
        self.together: Callable[..., None] | None = None
        self.each: Callable[..., None] | None = None
        self.each_effect = False  # whether an observer follows each asynchronous effect
        self.each_landing = False  # whether one has those of an instruction land one by one
        self._set_observers(observers)

    def dismiss(self, observers: list[Observer]) -> None:
        """These want no more events of the launch."""
        self._set_observers([o for o in self.observers if o not in observers])

    def wake(self, observer: Observer) -> None:
        """The observer listens for all events that it defines, from now on."""
        observer.asleep = frozenset()
        self._set_observers(self.observers)

    @property
    def sleeps(self) -> bool:
        return any(o.asleep for o in self.observers)

    @contextmanager
    def following_errors(self) -> Iterator[None]:
        """Inside, only the observers that follow errors are notified."""
        observers = self.observers
        self._set_observers([observer for observer in observers if observer.follows_errors])
        try:
            yield
        finally:
            self._set_observers(observers)

    def _set_observers(self, observers: list[Observer]) -> None:
        """Make a method for each event, which calls those of the observers that define it and are not asleep."""
        self.observers = observers
        # Those that sleep are the first: RunAgain comes before others get the access.
        defining = [(o, _defined_by(o)) for o in sorted(observers, key=lambda o: not o.asleep)]

        def of(event: str) -> list[Observer]:
            return [o for o, defined in defining if event in defined]

        self.listened.clear()
        for name in NAMES:
            methods = [getattr(o, name) for o in of(name) if name not in o.asleep]
            if methods:
                self.listened.add(name)
            setattr(self, name, _calling_all(methods))
        self.issued_together = _calling_all([o.issued_together for o in of("issue") if "issue" not in o.asleep])
        self.each_effect = any(o.each_effect for o in [*of("issue"), *of("land")])
        self.each_landing = any(o.each_landing for o in [*of("land"), *of("mbarrier")])
        # An access that is known to be inside and aligned need not be spelled out offset by offset, unless an observer
        # of accesses asks for that.
        pointed = of("pointed")
        by_pointer = all(o in pointed for o in of("access"))
        self.quick = self.pointed if by_pointer else None
        self.together = _calling_all([o.pointed_together for o in pointed]) if by_pointer else None
        self.each = _calling_all([o.pointed_each for o in pointed]) if by_pointer else None
        self.loaded = _calling_all([o.loaded for o in pointed if not o.follows_issues])
        self.loaded_in_order = _calling_all([o.loaded for o in pointed if o.follows_issues])

    def __getattr__(self, name: str) -> Any:  # the methods set above
        raise AttributeError(name)


def _defined_by(observer: Observer) -> frozenset[str]:
    """The events that an observer's class defines; found once for each class."""
    kind: Any = type(observer)
    return _events_of(kind)


@lru_cache(maxsize=64)
def _events_of(kind: Any) -> frozenset[str]:
    return frozenset(name for name in NAMES if getattr(kind, name) is not getattr(Observer, name))


def _calling_all(methods: list[Callable[..., None]]) -> Callable[..., None]:
    """A function that calls all methods; the method itself where it is the only one."""
    if len(methods) == 1:
        return methods[0]

    def call_all(*arguments: Any) -> None:
        for method in methods:
            method(*arguments)

    return call_all


Factory = Callable[[str, LaunchConfig], Observer | None]
_factories: list[Factory] = []


@contextmanager
def observing(factory: Factory) -> Iterator[None]:
    """Call ``factory(kernel's name, configuration)``, which makes an observer or None, at each launch inside the block.

    >>> class Count(Observer):
    ...     def executed(self, group, op): ...
    >>> with observing(lambda name, config: Count()):
    ...     pass
    """
    _factories.append(factory)
    try:
        yield
    finally:
        _factories.remove(factory)


def events(name: str, config: LaunchConfig, more: list[Observer]) -> Events | None:
    """The events of a launch that begins; None without observers."""
    candidates = [factory(name, config) for factory in _factories]
    observers = [o for o in candidates if o is not None] + more
    return Events(observers) if observers else None
