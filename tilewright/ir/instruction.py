"""The base class of instructions: what the ``call`` op carries and both machines ask.

An instruction is defined in one place, a subclass in ``tilewright/atoms``. It holds its facts (``accesses``,
``orders``, ``quiet``: what tools ask), what it needs (``verify``), what it does (``simulate``, on NumPy lanes) and how
it is written (``emit``, CUDA C++ or inline PTX). ``docs/instructions.md`` shows how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from tilewright.errors import ConstraintError
from tilewright.ir.core import Function, Op, Value
from tilewright.ir.effects import Access, Ordering
from tilewright.ir.target import LEAST_CAPABILITY, Architecture

if TYPE_CHECKING:
    import numpy as np

State = TypeVar("State")


class HeldRegisters(Protocol):
    """One warp's registers of a fragment, wherever the simulator has moved them."""

    warp: int
    array: np.ndarray[Any, Any]
    lane: int

    @property
    def values(self) -> np.ndarray[Any, Any]:
        """``[32, n]``, live."""
        ...

    def release(self) -> None:
        """They are not needed any more."""
        ...


class Lanes(Protocol):
    """The simulator's interface for an instruction: a group of whole warps that execute one ``call`` together.

    ``L = 32 * warps`` lanes. A scalar operand arrives as a NumPy scalar (same for every lane) or an array ``[L]``; a
    vector as ``[n]`` or ``[L, n]``; a fragment as the live array ``[L, n]`` (write to it in place, under the mask);
    a pointer as an opaque handle for the methods below. ``mask`` is ``None`` (all lanes active) or bool ``[L]``.
    Wherever a method takes a ``mask``, ``None`` means the lanes' own mask. Operands are shared with the rest of the
    program: write to fragments only, and give results as new arrays.
    """

    warps: int
    mask: np.ndarray[Any, Any] | None

    @property
    def observed(self) -> bool:
        """Whether an observer listens to the events of this launch."""
        ...

    def load(self, pointer: Any, count: int, mask: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """``[L, count]`` contiguous elements at each lane's pointer; masked-off lanes give zero."""
        ...

    def load_each(
        self, pointers: Sequence[Any], count: int, mask: np.ndarray[Any, Any] | None = None
    ) -> list[np.ndarray[Any, Any]]:
        """:meth:`load` of each pointer, which the instruction executes in this order."""
        ...

    def store(self, pointer: Any, values: np.ndarray[Any, Any], mask: np.ndarray[Any, Any] | None = None) -> None:
        """Write ``values`` ``[L, count]`` at each lane's pointer."""
        ...

    def move(
        self,
        fragment: Any,
        registers: Sequence[tuple[int, ...]],
        pointers: Sequence[Any],
        masks: Sequence[np.ndarray[Any, Any] | None],
        store: bool,
    ) -> None:
        """Repetitions of a load (or store) of one thread: ``registers[r]`` of the fragment at ``pointers[r]`` by the
        lanes of ``masks[r]``."""
        ...

    def read_shared(self, offsets: np.ndarray[Any, Any], warps: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """``[units, n, 16]`` bytes at ``offsets [units, n]`` (multiples of 16) in the shared memory of each unit's
        block: that of ``warps [units]`` (:meth:`warp_numbers`). Observers are notified by :meth:`reads_shared`."""
        ...

    def reads_shared(
        self, offsets: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], warps: np.ndarray[Any, Any] | None = None
    ) -> None:
        """Tell observers that 16 bytes at each of ``offsets [units, n]`` are read on behalf of the warps in ``rows
        [units]`` of these lanes, in their own blocks' memory or that of the blocks of ``warps``."""
        ...

    def tensor_memory(self, row: int, memory: Any, writes: bool, where: list[Any]) -> None:
        """Tell observers that warp ``row`` of these issues an asynchronous access to a block's tensor memory, at the
        cells of the indices ``where``."""
        ...

    def unwritten(self, registers: np.ndarray[Any, Any]) -> None:
        """Tell observers which ``registers [L, n]`` of its fragment a load fills from tensor memory that nothing has
        written, before it changes anything."""
        ...

    def spread(self, value: Any) -> np.ndarray[Any, Any]:
        """A scalar or vector operand as a full ``[L]`` or ``[L, n]`` array (read-only)."""
        ...

    def lane(self) -> np.ndarray[Any, Any]:
        """``[L]`` lane index inside the warp, 0..31."""
        ...

    def active(self) -> np.ndarray[Any, Any]:
        """bool ``[L]``: the lanes that execute the instruction (``mask``, spread out)."""
        ...

    def atomic(self, pointer: Any, kind: str, value: Any, compare: Any = None) -> np.ndarray[Any, Any]:
        """Read-modify-write lane by lane (``kind``: add sub min max and or xor exch cas inc dec); old values ``[L]``,
        or ``[L, n]`` when ``value`` is a vector (element by element)."""
        ...

    # -- barriers and waits: the lanes go on when the instruction's simulate has returned and the wait is over ---------

    def barrier(self, barrier: Any, count: Any = None) -> None:
        """Arrive at the block's barrier (0..15) and wait for ``count`` threads (None: the whole block). Blocking
        instructions only; at most one wait per simulate."""
        ...

    def meeting(self, barrier: Any, count: Any) -> np.ndarray[Any, Any]:
        """``barrier``, which gives for each warp a number that the warps that meet share, and no others."""
        ...

    def arrive(self, barrier: Any, count: Any = None) -> None:
        """Arrive at the block's barrier without waiting."""
        ...

    def exit(self) -> None:
        """The warps that are here end: nothing follows. Blocking instructions only."""
        ...

    def cluster_arrive(self, aligned: bool = True) -> None:
        """Arrive at the barrier of the cluster; ``aligned``: whole warps only."""
        ...

    def cluster_wait(self, aligned: bool = True) -> None:
        """Wait until the phase of the cluster's barrier that these lanes arrived at is complete. Blocking instructions
        only."""
        ...

    def wait_until(
        self,
        ready: Callable[[], np.ndarray[Any, Any]],
        reason: str | Callable[[int], str],
        missing: Callable[[int], list[tuple[int, int]]] | None = None,
        fix: str = "",
    ) -> None:
        """Wait until ``ready()`` (bool ``[warps]``, asked again whenever something has happened) is true for a warp.
        ``reason`` (or what it gives for a warp) completes the words "waiting for ..." in a deadlock report;
        ``missing`` gives (rank in the cluster, warp) of those whose action a warp waits for, ``fix`` the repair of
        a wait that never ends. Blocking instructions only."""
        ...

    # -- asynchronous effects ------------------------------------------------------------------------------------------

    def defer(self, agent: str, effect: Callable[[], None]) -> None:
        """Hand an asynchronous effect to an async agent (``"cp.async"``...). It runs once, with these lanes and the
        mask of now, at the latest moment that the program's waits allow; it must hold copies of the registers it
        reads. What reads or writes registers then must :meth:`hold` them."""
        ...

    def hold(self, fragment: Any, rows: np.ndarray[Any, Any]) -> list[HeldRegisters]:
        """The registers of a fragment, for each of the warps in ``rows`` of these lanes, for a later moment: lanes may
        part and join others before."""
        ...

    def commit(self, agent: str) -> None:
        """Close the group of effects that these lanes deferred to ``agent``."""
        ...

    def wait(self, agent: str, pending: int) -> None:
        """Apply all but the newest ``pending`` committed groups of these lanes."""
        ...

    def effect(self, action: Callable[[], None], lane: int | None = None) -> Callable[[], None]:
        """``action`` as something that these lanes (or only ``lane``) do later, with the mask of now, and once."""
        ...

    def effects(self, actions: Sequence[tuple[Callable[[], None], int]]) -> list[Callable[[], None]]:
        """:meth:`effect` of each (action, lane), which the instruction issues in this order."""
        ...

    def issued(self) -> Callable[[Callable[[], None]], None]:
        """Begin something asynchronous that the instruction itself keeps until it takes place. The result does an
        action, now or later and any number of times, with these lanes and the mask of now."""
        ...

    def eventually(
        self,
        effect: Callable[[], None],
        after: str = "",
        lane: int | None = None,
        size: int = 0,
        places: np.ndarray[Any, Any] | None = None,
    ) -> None:
        """An asynchronous effect that no wait of these lanes forces (TMA and its mbarrier): it runs, in issue order,
        when no warp can go on without it. What these lanes deferred to the agent ``after`` so far lands before.
        Observers get the ``lane`` that issued it (None: all), how many bytes it moves, and the ``places`` of the
        mbarriers at which the active lanes arrive by it."""
        ...

    def all_eventually(self, copies: Sequence[tuple[Callable[[], None], int, int]]) -> None:
        """:meth:`eventually` of each (effect, lane, size), which the instruction issues in this order."""
        ...

    # -- blocks of memory, for asynchronous units ------------------------------------------------------------------

    def shared_bytes(self, place: int, size: int, writes: bool) -> np.ndarray[Any, Any]:
        """The live ``size`` bytes of shared memory from a place on (:meth:`places`), across lanes and blocks."""
        ...

    def global_bytes(
        self, address: int, shape: Sequence[int], strides: Sequence[int], writes: bool
    ) -> np.ndarray[Any, Any]:
        """A live view of bytes of global memory; the last mode is contiguous. All must be in one array."""
        ...

    # -- state beside memory -------------------------------------------------------------------------------------------

    def places(self, pointer: Any, rank: Any = None) -> np.ndarray[Any, Any]:
        """``[L]`` where each lane's pointer into shared memory leads: the block's number among the resident ones times
        2^32, plus the offset. ``rank``: the same offset in the block of this rank in the cluster."""
        ...

    def addresses(self, pointer: Any) -> np.ndarray[Any, Any]:
        """``[L]`` absolute address of each lane's pointer into global memory."""
        ...

    def further(self, pointer: Any, move: int) -> Any:
        """The pointer ``move`` bytes further in the same memory."""
        ...

    def mapped(self, pointer: Any, rank: Any) -> Any:
        """The pointer to the same place in the shared memory of the block of this rank in the cluster."""
        ...

    def beside(self, make: Callable[[], State]) -> State:
        """The state that a family of instructions keeps for all resident blocks: ``make()`` at the first call. If it
        has a method ``finish``, that is called when all their warps have ended."""
        ...

    def lets_pass(self, check: str) -> bool:
        """Whether the launch leaves out this check by its name."""
        ...

    def is_thorough(self, check: str) -> bool:
        """Whether the launch asks for all that this check knows."""
        ...

    def shared_name(self, offset: int) -> str:
        """What the program calls the element at this offset of shared memory (``empty[0]``); empty where it has
        no name."""
        ...

    def cancel_cluster(self) -> tuple[int, int, int] | None:
        """Take a cluster that has not begun out of the launch: the coordinates of its first block; None: none is
        left."""
        ...

    def warp_numbers(self) -> np.ndarray[Any, Any]:
        """``[warps]`` a number of each of these warps that no other of the resident blocks' warps has."""
        ...

    def fault(self, text: str, lanes: np.ndarray[Any, Any] | None = None, fix: str = "") -> Exception:
        """The exception to raise when the program does what it must not: what, which lanes (bool ``[L]``), and how
        to fix it."""
        ...

    def alone_on_multiprocessor(self) -> bool:
        """Whether a multiprocessor holds one block of this launch at a time, by its threads and shared memory."""
        ...

    def registers_at_entry(self) -> int:
        """Registers of each thread when its block begins, as the launch bounds allow."""
        ...

    def touched(
        self,
        what: str,
        places: np.ndarray[Any, Any],
        lanes: np.ndarray[Any, Any],
        done: np.ndarray[Any, Any] | None = None,
    ) -> None:
        """Tell observers what was done to the mbarriers at ``places`` by the lanes with these numbers (empty: by an
        asynchronous unit): ``init inval arrive complete test wait``; ``done``: whether the phase is complete."""
        ...

    # -- who -----------------------------------------------------------------------------------------------------------

    def sreg(self, name: str) -> np.ndarray[Any, Any]:
        """``[L]`` special register (the names of the ``sreg`` op)."""
        ...


class Emitter(Protocol):
    """The CUDA emitter's interface for an instruction while it prints one ``call``."""

    def value(self, value: Value) -> str:
        """The C++ expression of a value (scalar, pointer, vector array name or fragment array name)."""
        ...

    def declare(self, value: Value) -> str:
        """Declare the variable of a result of this op and give its name."""
        ...

    def line(self, text: str) -> None:
        """One statement line at the current indentation."""
        ...

    def helper(self, name: str, source: str) -> str:
        """Print the device function ``name`` (full C++ text in ``source``) above the kernel; gives ``name``."""
        ...

    def block(self, head: str = "") -> AbstractContextManager[None]:
        """``with out.block("if (p)"):`` prints ``head {``, indents what is printed inside, and closes the brace."""
        ...

    def name(self, hint: str) -> str:
        """A fresh C++ identifier like ``hint``."""
        ...

    def register(self, fragment: Value, offset: int | str, bits: int = 32) -> str:
        """The lvalue of the ``bits``-wide register that begins at element ``offset`` of a fragment.

        ``uint32_t`` for 32 bits, ``uint16_t``, ``uint64_t``: what asm constraints ``"r"``, ``"h"`` and ``"l"`` take.
        ``offset`` may be C++ text.
        """
        ...

    def shared_address(self, pointer: Value | str) -> str:
        """The 32-bit shared-memory address of a pointer (a value or C++ text): what ``ldmatrix`` and mbarriers take."""
        ...

    @property
    def function(self) -> Function:
        """The kernel that is printed."""
        ...

    @property
    def arch(self) -> int:
        """The compute capability that is printed for: 80, 89, 90, 120."""
        ...


def need(op: Op, condition: bool, text: str) -> None:
    """ConstraintError with ``text`` and the line of ``op`` unless ``condition`` holds: for ``verify``."""
    if not condition:
        raise ConstraintError(f"{text}{f' at {op.loc}' if op.loc else ''}")


def lacking_features(features: tuple[int, ...], arch: Architecture) -> str:
    """What ``arch`` lacks where only the targets of these chips alone have it; empty where it is one of them."""
    if arch.suffix and arch.capability in features:
        return ""
    names = [f"sm_{n}a" for n in features]
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else f"{names[0]} (no other GPU has it)"


class Instruction:
    """One instruction. Subclasses are immutable and hashable; operands and per-use data are in the ``call`` op.

    ``name`` is its mnemonic (printed in the IR, counted by the simulator); ``blocking`` instructions order warps
    (barriers, waits) and are executed warp by warp, never under a partial warp mask unless they allow it; ``min_arch``
    is the least compute capability (80 for sm_80), ``features`` those whose architecture-specific targets alone have it
    (90 for sm_90a). ``pure`` ones have no effect but their results; where ``results_optional``, results that are never
    read are dropped from the op. ``wide`` ones take numbers of 128 bits.

    ``accesses`` says what it reads and writes, operand by operand, and ``orders`` what it orders besides; every
    subclass states both (they may be properties, where they depend on its parameters). ``quiet`` ones, executed once
    more while nothing else has changed, change nothing: a loop of them without progress waits for another
    thread. An atomic is quiet, because the simulator sees whether it has changed its place. ``caps_registers``: kernels
    with it state how many blocks share a multiprocessor, as the compiler wants it.

    What kind of work it does, for machines and checks, which do not know the classes: ``multiplies`` (a matrix
    instruction), ``cancels`` (clusters that have not begun), ``copies``, ``shuffles`` (lanes read each other's
    registers), ``in_flight`` (it works on its registers until a wait for its group), ``whole_block`` (a barrier of all
    threads of the block), ``expects_bytes`` and ``publishes_init`` (of mbarriers); ``atomic`` is the kind of an atomic
    update, ``grid_dependency`` the action of ``griddepcontrol``.
    """

    name: ClassVar[str] = "?"
    blocking: ClassVar[bool] = False
    caps_registers: ClassVar[bool] = False
    pure: ClassVar[bool] = False
    quiet: ClassVar[bool] = False
    accesses: tuple[Access, ...] = ()
    orders: tuple[Ordering, ...] = ()
    multiplies: ClassVar[bool] = False
    cancels: ClassVar[bool] = False
    copies: ClassVar[bool] = False
    shuffles: ClassVar[bool] = False
    in_flight: ClassVar[bool] = False
    whole_block: ClassVar[bool] = False
    expects_bytes: ClassVar[bool] = False
    publishes_init: bool = False
    atomic: str = ""
    grid_dependency: str = ""
    results_optional: bool = False
    wide: ClassVar[bool] = False
    min_arch: int = LEAST_CAPABILITY
    features: ClassVar[tuple[int, ...]] = ()

    def mnemonic(self) -> str:
        """The text that the IR prints for this instruction with its parameters."""
        return self.name

    @property
    def agents(self) -> set[str]:
        """The asynchronous agents that make its accesses."""
        return {access.agent for access in self.accesses if access.agent}

    def orders_through(self, place: str, agent: str = "") -> Ordering | None:
        """The order that it gives at this meeting place of :class:`Ordering` (of the accesses of ``agent``); None:
        nothing."""
        return next((o for o in self.orders if o.through == place and o.agent == agent), None)

    def settled_by(self) -> Instruction | None:
        """The instruction that waits until the registers, operand 0, which it fills later, have arrived; None: they are
        there at once, or the program waits for them by itself."""
        return None

    def implied(self) -> Instruction:
        """The same, as one that the program has not written."""
        return self

    def fences_async_proxy(self, memory: str) -> bool:
        """Whether it orders the threads' accesses to ``memory`` (``shared``, ``global``) with the async proxy's."""
        return False

    def accessed(self, op: Op) -> list[tuple[Value, Access]]:
        """The operands of ``op`` through which it reads and writes, each with how."""
        return [(op.operands[access.operand], access) for access in self.accesses]

    def count(self, op: Op) -> int:
        """How many machine instructions (per warp) one execution of ``op`` stands for."""
        return 1

    def lacking(self, arch: Architecture, op: Op | None = None) -> str:
        """What a GPU of ``arch`` lacks to execute it, ``"sm_90 or later"``; empty where it lacks nothing. ``op``: the
        use that is asked about, where types of operands matter."""
        if self.features:
            return lacking_features(self.features, arch)
        return "" if arch.capability >= self.min_arch else f"sm_{self.min_arch} or later"

    def verify(self, op: Op) -> None:
        """Raise ConstraintError when ``op``'s operands do not meet the instruction's needs."""

    @classmethod
    def doubts(cls, function: Function) -> list[str]:
        """Warnings about how a kernel uses instructions of this class, though a GPU runs it."""
        return []

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        """Act on NumPy lanes; gives one array for each result of ``op``."""
        raise NotImplementedError(f"{type(self).__name__}.simulate")

    def emit(self, out: Emitter, op: Op) -> None:
        """Print the CUDA C++ statements of ``op``."""
        raise NotImplementedError(f"{type(self).__name__}.emit")

    predicable: ClassVar[bool] = False
    """Whether :meth:`emit_if` prints ``op`` under a condition without a branch: it is then printed so where it is all
    that a branch does."""

    def emit_if(self, out: Emitter, op: Op, condition: str) -> None:
        """Print ``op`` as predicated instructions; ``condition`` is a C++ expression."""
        raise NotImplementedError(f"{type(self).__name__}.emit_if")
