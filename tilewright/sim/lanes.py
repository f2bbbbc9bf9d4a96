"""The view that instructions have of a group: the simulator's side of :class:`tilewright.ir.instruction.Lanes`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.atoms.registers import registers_at_entry
from tilewright.ir.joint import disjoint
from tilewright.ir.types import I64
from tilewright.sim.access import access_of
from tilewright.sim.agents import Effect
from tilewright.sim.atomics import AtomicUpdate, atomic
from tilewright.sim.barriers import ENDS, BarrierWait, ConditionWait
from tilewright.sim.checks.residency import resident_blocks
from tilewright.sim.events import no_values
from tilewright.sim.faults import Fault
from tilewright.sim.held import FragmentRows, hold
from tilewright.sim.moves import move, publish_each
from tilewright.sim.shared import PieceReads
from tilewright.sim.values import Ptr, TypedPointer

if TYPE_CHECKING:
    from tilewright.sim.group import Group


def _nothing() -> None:
    pass


class GroupLanes:
    __slots__ = ("group", "warps", "mask", "op", "request")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.warps = group.warps.size
        self.mask: np.ndarray | None = None
        self.op: Any = None
        self.request: Any = None  # what the lanes wait for when the instruction has returned

    # -- memory --------------------------------------------------------------------------------------------------------

    def load(self, pointer: TypedPointer, count: int, mask: np.ndarray | None = None) -> np.ndarray:
        access = access_of(pointer.elem, count, pointer.align, False)
        both = self._both(mask)
        shape = (self.group.lanes_count, count)
        if both is not None and not both.any():
            return np.zeros(shape, access.dtype)
        items = pointer.buf.fetch(self.group, pointer.pointer, access, both)
        if items.ndim == 2:
            return items
        return np.broadcast_to(items, shape) if both is None else np.where(both[:, None], items, access.dtype.type(0))

    def load_each(
        self, pointers: Sequence[TypedPointer], count: int, mask: np.ndarray | None = None
    ) -> list[np.ndarray]:
        first = pointers[0]
        access = access_of(first.elem, count, first.align, False)
        if self._both(mask) is not None or not publish_each(self.group, pointers, access, "load", no_values):
            return [self.load(pointer, count, mask) for pointer in pointers]
        places = [p.buf.place(self.group, p.pointer.root, p.pointer.add, access, True) for p in pointers]
        return [access.decode(items.take(index)) for items, index in places]

    def store(self, pointer: TypedPointer, values: np.ndarray, mask: np.ndarray | None = None) -> None:
        access = access_of(pointer.elem, values.shape[-1], pointer.align, False)
        both = self._both(mask)
        if both is None or both.any():
            pointer.buf.put(self.group, pointer.pointer, values, access, both)

    def move(
        self,
        fragment: np.ndarray,
        registers: Sequence[tuple[int, ...]],
        pointers: Sequence[TypedPointer],
        masks: Sequence[np.ndarray | None],
        store: bool,
    ) -> None:
        move(self.group, fragment, registers, pointers, masks, store)

    def atomic(self, pointer: TypedPointer, kind: str, value: Any, compare: Any = None) -> np.ndarray:
        """The old values, ``[L]``, or ``[L, n]`` of a vector: PTX makes one atomic of each of its elements."""
        n = np.shape(value)[-1] if np.ndim(value) == 2 else 0
        value = self.spread(value)
        compare = None if compare is None else self.spread(compare)
        access = access_of(pointer.elem, 1, pointer.elem.bytes, True)
        off = np.broadcast_to(np.asarray(pointer.off, np.int64), (self.group.lanes_count,))
        want_old = self.op is None or bool(self.op.results)

        def one(off: np.ndarray, value: np.ndarray, compare: Any) -> np.ndarray:
            update = AtomicUpdate(kind, access, value, compare, want_old)
            old = atomic(pointer.buf, self.group, off, update, self.mask)
            return np.zeros(off.shape, access.dtype) if old is None else old

        if not n:
            return one(off, value, compare)
        parts = [
            one(off + k * pointer.elem.bytes, value[:, k], None if compare is None else compare[:, k]) for k in range(n)
        ]
        return np.stack(parts, 1)

    def read_shared(self, offsets: np.ndarray, warps: np.ndarray) -> np.ndarray:
        group = self.group
        shared = group.wave.shared
        return shared.pieces(group, offsets, (warps // group.wave.geometry.warps * shared.stride)[:, None])

    def reads_shared(self, offsets: np.ndarray, rows: np.ndarray, warps: np.ndarray | None = None) -> None:
        group = self.group
        if group.events is not None:
            blocks = (group.warps[rows] if warps is None else warps) // group.wave.geometry.warps
            group.events.pieces(group, PieceReads(offsets, blocks, group.wave.shared.stride), rows)

    def tensor_memory(self, row: int, memory: Any, writes: bool, where: list[Any]) -> None:
        if self.group.events is not None:
            self.group.events.tensor_memory(self.group, row, memory, writes, where)

    def unwritten(self, registers: np.ndarray) -> None:
        if self.group.events is not None:
            self.group.events.unwritten(self.group, registers)

    def _both(self, mask: np.ndarray | None) -> np.ndarray | None:
        if mask is None:
            return self.mask
        return mask if self.mask is None else mask & self.mask

    def shared_bytes(self, place: int, size: int, writes: bool) -> np.ndarray:
        group, shared = self.group, self.group.wave.shared
        stretch = shared.stretch(int(place), size)
        if group.events is not None:
            start = (int(place) >> 32) * shared.stride + (int(place) & 0xFFFFFFFF)
            group.events.stretch(group, "shared", start, (size,), (1,), writes)
        return stretch

    def addresses(self, pointer: TypedPointer) -> np.ndarray:
        return self.spread(np.asarray(pointer.off, np.int64) + pointer.buf.base)

    def global_bytes(self, address: int, shape: Sequence[int], strides: Sequence[int], writes: bool) -> np.ndarray:
        view = self.group.wave.launch.space.view(address, shape, strides, writes)
        if self.group.events is not None:
            self.group.events.stretch(self.group, "global", address, tuple(shape), tuple(strides), writes)
        return view

    # -- values and places ---------------------------------------------------------------------------------------------

    def spread(self, value: Any) -> np.ndarray:
        array = np.asarray(value)
        if array.ndim and array.shape[0] == self.group.lanes_count:  # operands are never uniform vectors
            return array
        return np.broadcast_to(array, (self.group.lanes_count, *array.shape))

    def touched(self, what: str, places: np.ndarray, lanes: np.ndarray, done: np.ndarray | None = None) -> None:
        if self.group.events is not None:
            self.group.events.mbarrier(self.group, what, places, lanes, done)

    def lane(self) -> np.ndarray:
        return self.spread(self.group.sreg("laneid"))

    def sreg(self, name: str) -> np.ndarray:
        return self.spread(self.group.sreg(name))

    def active(self) -> np.ndarray:
        return np.ones(self.group.lanes_count, bool) if self.mask is None else self.mask

    # -- barriers and waits --------------------------------------------------------------------------------------------

    def barrier(self, barrier: Any, count: Any = None) -> None:
        self.request = self._arrived(barrier, count, True)

    def meeting(self, barrier: Any, count: Any) -> np.ndarray:
        self.request = wait = self._arrived(barrier, count, True)
        return wait.meetings(self.warps)

    def arrive(self, barrier: Any, count: Any = None) -> None:
        self._arrived(barrier, count, False)

    def exit(self) -> None:
        self.group.wave.barriers.exit(self.group, self.mask)
        self.request = ENDS

    def _arrived(self, barrier: Any, count: Any, waits: bool) -> BarrierWait:
        group = self.group
        wait = group.wave.barriers.arrive(group, barrier, count, self.op, self.mask)
        if group.events is not None:
            group.events.barrier(group, wait.rows, wait.keys, wait.target, waits)
        return wait

    def cluster_arrive(self, aligned: bool = True) -> None:
        threads = self.group.wave.clusters.arrive(self.group, self.mask, aligned)
        if self.group.events is not None:
            self.group.events.cluster(self.group, threads, False)

    def cluster_wait(self, aligned: bool = True) -> None:
        clusters = self.group.wave.clusters
        self.request = clusters.wait(self.group, self.mask, aligned, self.op)
        if self.group.events is not None:
            self.group.events.cluster(self.group, clusters.threads(self.group, self.mask, False), True)

    def wait_until(
        self,
        ready: Callable[[], np.ndarray],
        reason: str | Callable[[int], str],
        missing: Callable[[int], list[tuple[int, int]]] | None = None,
        fix: str = "",
    ) -> None:
        self.request = ConditionWait(ready, reason, self.op, np.arange(self.warps), missing, fix)

    # -- asynchronous effects ------------------------------------------------------------------------------------------

    def defer(self, agent: str, effect: Callable[[], None]) -> None:
        self.group.queues.add(agent, self._issued(Effect(effect, self, self.op)))

    def effect(self, action: Callable[[], None], lane: int | None = None) -> Callable[[], None]:
        return self._issued(Effect(action, self, self.op, lane=lane)).land

    def effects(self, actions: Sequence[tuple[Callable[[], None], int]]) -> list[Callable[[], None]]:
        issued = self._issued_together([Effect(action, self, self.op, lane=lane) for action, lane in actions])
        return [effect.land for effect in issued]

    def issued(self) -> Callable[[Callable[[], None]], None]:
        return self._issued(Effect(_nothing, self, self.op)).act

    def hold(self, fragment: np.ndarray, rows: np.ndarray) -> list[FragmentRows]:
        return hold(self.group, fragment, rows)

    @property
    def observed(self) -> bool:
        return self.group.events is not None

    def _issued(self, effect: Effect) -> Effect:
        if self.group.events is not None:
            self.group.events.issue(self.group, effect)
        return effect

    def _issued_together(self, effects: list[Effect]) -> list[Effect]:
        if self.group.events is not None and effects:
            self.group.events.issued_together(self.group, effects)
        return effects

    def commit(self, agent: str) -> None:
        self.group.queues.commit(agent)

    def wait(self, agent: str, pending: int) -> None:
        self.group.queues.wait(agent, pending)

    def eventually(
        self,
        effect: Callable[[], None],
        after: str = "",
        lane: int | None = None,
        size: int = 0,
        places: np.ndarray | None = None,
    ) -> None:
        # A completion mechanism that stands for earlier effects (cp.async.mbarrier.arrive) lands them first.
        before = self.group.queues.issued(after) if after else []

        def land() -> None:
            for earlier in before:
                earlier.land()
            effect()

        issued = self._issued(Effect(land if before else effect, self, self.op, lane, size, places))
        self.group.wave.launch.later.append(issued)

    def all_eventually(self, copies: Sequence[tuple[Callable[[], None], int, int]]) -> None:
        effects = [Effect(action, self, self.op, lane, size) for action, lane, size in copies]
        if self.group.wave.geometry.cluster_size == 1 and effects and disjoint([action for action, *_ in copies]):
            for effect in effects:
                effect.together = effects
        self.group.wave.launch.later.extend(self._issued_together(effects))

    # -- state outside memory ------------------------------------------------------------------------------------------

    def places(self, pointer: TypedPointer, rank: Any = None) -> np.ndarray:
        return self.group.wave.shared.places(
            self.group, pointer.off, access_of(I64, 1, 8, True), self.mask, None if rank is None else self.spread(rank)
        )

    def further(self, pointer: TypedPointer, move: int) -> TypedPointer:
        return TypedPointer(pointer.pointer.plus(move), pointer.elem, gcd(pointer.align, move))

    def mapped(self, pointer: TypedPointer, rank: Any) -> TypedPointer:
        off = self.group.wave.shared.mapped(pointer.off, rank, self.mask)
        return TypedPointer(Ptr(pointer.buf, off), pointer.elem, pointer.align)

    def beside(self, make: Callable[[], Any]) -> Any:
        kept = self.group.wave.kept
        if make not in kept:
            kept[make] = make()
        return kept[make]

    def lets_pass(self, check: str) -> bool:
        return self.group.wave.launch.options.lets_pass(check)

    def is_thorough(self, check: str) -> bool:
        return self.group.wave.launch.options.is_thorough(check)

    def shared_name(self, offset: int) -> str:
        return self.group.wave.launch.program.shared_names.element(offset)

    def alone_on_multiprocessor(self) -> bool:
        launch = self.group.wave.launch
        return resident_blocks(launch.geometry.warps, launch.smem, 1) == 1

    def registers_at_entry(self) -> int:
        launch = self.group.wave.launch
        return registers_at_entry(launch.geometry.threads, launch.program.min_blocks)

    def cancel_cluster(self) -> tuple[int, int, int] | None:
        return self.group.wave.launch.waves.cancel()

    def warp_numbers(self) -> np.ndarray:
        return self.group.warps

    def fault(self, text: str, lanes: np.ndarray | None = None, fix: str = "") -> Exception:
        return Fault(text, lanes, fix=fix)
