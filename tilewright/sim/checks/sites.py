"""Where a kernel touches memory: each op with what its class says of the access (``ir/effects.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tilewright.ir.core import Constant, Function, Op, Value
from tilewright.ir.effects import SCOPES, Access, Ordering
from tilewright.ir.lanes import Array
from tilewright.ir.passes.written import SHARED_SPACES as SHARED_SPACES
from tilewright.ir.passes.written import origin as origin
from tilewright.ir.passes.written import writes
from tilewright.ir.types import MemSpace, PtrType, VecType
from tilewright.sim.access import WIDEST
from tilewright.sim.access import VectorAccess as Width
from tilewright.sim.checks.guarded_waits import guarded_waits
from tilewright.sim.checks.initialised import maybe_unwritten, never_written
from tilewright.sim.checks.kinds import SIGNED, PollingLoop, may_overflow, polling_loops, polling_reads
from tilewright.sim.checks.provenance import derived_from, makes_address
from tilewright.sim.checks.shadow import site_of
from tilewright.sim.checks.unguarded import unguarded
from tilewright.sim.program import Program
from tilewright.sim.shared_names import SharedNames

MOST_SITES = 1023  # what an epoch has bits for; further ones share the last number
THREAD = SCOPES.index("thread")


@dataclass(frozen=True)
class Site:
    """One op that reads or writes memory, and its access of one kind. ``scope``: how far the access is *strong* (its
    index in ``SCOPES``), 0 for a weak one."""

    op: Op | None
    verb: str
    access: Access | None = None

    @property
    def scope(self) -> int:
        if self.access is None or self.access.order == "weak":
            return THREAD
        return SCOPES.index(self.access.scope)

    @property
    def place(self) -> Any:
        """The Python line, where it is known: unrolled loops repeat an op."""
        return self.op.loc if self.op is not None and self.op.loc is not None else id(self.op)

    @property
    def agent(self) -> str:
        return self.access.agent if self.access is not None else ""

    @property
    def proxy(self) -> str:
        return self.access.proxy if self.access is not None else "generic"

    @property
    def order(self) -> str:
        return self.access.order if self.access is not None else "weak"


class Sites:
    """The sites of a launch, by number."""

    def __init__(self) -> None:
        self.found: list[Site] = [Site(None, "load")]
        self.scopes = np.full(MOST_SITES + 1, THREAD, np.int8)  # by number
        self.numbers: dict[tuple[int, str, bool], int] = {}

    def number(self, op: Op | None, verb: str, shared: bool) -> int:
        """The number of what ``op`` does to memory: ``verb`` load, store or atomic."""
        key = (id(op), verb, shared)
        number = self.numbers.get(key)
        if number is None:
            self.found.append(Site(op, verb, _access(op, verb, shared)))
            number = self.numbers[key] = min(len(self.found) - 1, MOST_SITES)
            self.scopes[number] = self.found[number].scope
        return number

    def strong(self, entries: Array) -> Array:
        """bool: which entries of shadow memory are strong accesses."""
        strong: Array = self.scopes[site_of(entries)] != THREAD
        return strong

    def __getitem__(self, number: int) -> Site:
        return self.found[number]


def _access(op: Op | None, verb: str, shared: bool) -> Access | None:
    """The declared access of this kind in the class of a call; None for the ops ``load`` and ``store``."""
    if op is None or op.opcode != "call":
        return None
    kinds = {"load": ("read", "update"), "store": ("write", "update"), "atomic": ("update",)}[verb]
    accesses = [a for a in op.attrs["atom"].accesses if a.role != "mbarrier" and a.does in kinds and a.memories]
    mine = [a for a in accesses if any(space in SHARED_SPACES for space in a.memories) == shared]
    return next(iter(mine or accesses), None)


def granule(function: Function, shared: bool) -> int:
    """The bytes that a kernel's accesses to shared (or other) memory never divide: a power of two up to 16."""
    least = WIDEST
    for op in function.walk():
        for pointer, width in _widths(op):
            kind = pointer.type
            if isinstance(kind, PtrType) and (
                kind.space is MemSpace.GENERIC or (kind.space in SHARED_SPACES) == shared
            ):
                least = min(least, width)
    return least


def _widths(op: Op) -> list[tuple[Value, int]]:
    """The pointers that an op accesses, each with the widest piece of memory, in bytes, that one thread touches at
    once."""
    if op.opcode in ("load", "store"):
        pointer = op.operands[0]
        value = op.result.type if op.opcode == "load" else op.operands[1].type
        assert isinstance(pointer.type, PtrType)
        n = value.n if isinstance(value, VecType) else 1
        return [(pointer, Width(pointer.type.elem, n, pointer.type.align, False).width)]
    if op.opcode != "call":
        return []
    widths = []
    for pointer, access in op.attrs["atom"].accessed(op):
        if isinstance(pointer.type, PtrType) and access.role != "mbarrier":
            bits = access.bits // 8
            free = WIDEST if access.agent else pointer.type.elem.bytes
            widths.append((pointer, min(WIDEST, bits & -bits, max(pointer.type.align, 1)) if bits else free))
    return widths


def written(function: Function) -> set[int] | None:
    """The parameters (numbers) through which a kernel writes to global memory; None where that is not known."""
    slots: set[int] = set()
    for root, _ in writes(function):
        if root not in function.params:
            return None
        slots.add(function.params.index(root))
    return slots


def of_async_proxy(function: Function) -> set[int]:
    """The parameters through which a kernel reaches global memory by the async proxy, as far as they are known."""
    ops = set()
    for op in function.walk():
        for value, access in op.attrs["atom"].accessed(op) if op.opcode == "call" else ():
            root = origin(value)
            if access.proxy == "async" and MemSpace.GMEM in access.memories and root in function.params:
                ops.add(function.params.index(root))
    return ops


def written_by_threads(function: Function) -> set[int]:
    """The parameters through which a kernel writes to global memory by the generic proxy, as far as they are known."""
    return {
        function.params.index(root)
        for root, op in writes(function)
        if root in function.params
        and not (op.opcode == "call" and any(a.proxy == "async" for a in op.attrs["atom"].accesses))
    }


class Within(NamedTuple):
    """A coordinate and the extent, numbers or values, that the coordinate times ``step`` has to stay below, and the op
    that notes them: an access, or the one that made the address of a slice."""

    coord: Any
    extent: Any
    step: int
    op: Op


class KernelFacts:
    """What the checks ask of a kernel, whatever it is launched with; each fact is found when it is first asked for."""

    def __init__(self, function: Function, shared_names: SharedNames) -> None:
        self.function, self.shared_names = function, shared_names
        self.ops = list(function.walk())
        self.calls = [op for op in self.ops if op.opcode == "call"]
        self.atoms = [op.attrs["atom"] for op in self.calls]
        self.sites = Sites()
        self.missing_fences: dict[Op, Op] | None = None  # of wgmma; found when it is first checked

    # -- what orders its accesses --------------------------------------------------------------------------------------

    @cached_property
    def orders(self) -> list[Ordering]:
        return [order for atom in self.atoms for order in atom.orders]

    @cached_property
    def agents(self) -> dict[str, bool]:
        """The asynchronous units whose work is waited for; of each whether it works for whole warps."""
        return {o.agent: o.scope == "warp" for o in self.orders if o.agent and o.through in ("group", "mbarrier")}

    @cached_property
    def without_groups(self) -> set[str]:
        """Agents that only mbarriers tell of: no wait counts their groups, so each arrival may close one."""
        return set(self.agents) - {o.agent for o in self.orders if o.through == "group"}

    @cached_property
    def mbarriers(self) -> bool:
        return any(o.through == "mbarrier" for o in self.orders)

    @cached_property
    def staged(self) -> bool:
        """Whether asynchronous copies count their bytes at mbarriers, which hand stages of memory on."""
        arrive = any(o.through == "mbarrier" and o.agent for o in self.orders)
        return arrive or any(a.role == "mbarrier" and a.agent for atom in self.atoms for a in atom.accesses)

    @cached_property
    def results_unused(self) -> set[Op]:
        """Calls of mbarrier.try_wait whose result is unused: what follows is not ordered by it."""
        tests = [op for op in self.calls if any(order.where_true for order in op.attrs["atom"].orders)]
        return {op for op in tests if op.result not in self._used}

    @cached_property
    def results_used(self) -> set[Op]:
        """Calls whose first result is used."""
        return {op for op in self.calls if op.results and op.result in self._used}

    @cached_property
    def _used(self) -> set[Value]:
        return {operand for op in self.ops for operand in op.operands}

    @cached_property
    def polling_reads(self) -> set[Op]:
        """What a block waits for others with."""
        return polling_reads(self.ops)

    @cached_property
    def polling_loops(self) -> dict[Op, PollingLoop]:
        """Loops of which it is known what they wait for."""
        return polling_loops(self.ops)

    @cached_property
    def guarded_waits(self) -> dict[Op, frozenset[Op]]:
        """The waits that are decided by the answers of try_wait, each with those."""
        return guarded_waits(self.function)

    @cached_property
    def early_launches(self) -> list[Op]:
        """Where it lets the next kernel of its stream begin."""
        return [op for op in self.calls if op.attrs["atom"].grid_dependency == "launch_dependents"]

    # -- memory --------------------------------------------------------------------------------------------------------

    @cached_property
    def granules(self) -> dict[bool, int]:
        """The bytes that accesses to shared memory (True), and to global memory (False), never divide."""
        return {shared: granule(self.function, shared) for shared in (True, False)}

    @cached_property
    def least_shared_element(self) -> int:
        """The bytes of the smallest element in shared memory that the program names."""
        types = [v.type for op in self.ops for v in (*op.operands, *op.results)]
        shared = [t.elem.bytes for t in types if isinstance(t, PtrType) and t.space in SHARED_SPACES]
        return min([self.granules[True], *shared])

    @cached_property
    def remote(self) -> bool:
        """Whether blocks reach into each other's shared memory."""
        return any(atom.name in ("mapa", "st.async") or getattr(atom, "remote", False) for atom in self.atoms)

    @cached_property
    def written(self) -> set[int] | None:
        return written(self.function)

    @cached_property
    def by_threads(self) -> set[int]:
        return written_by_threads(self.function)

    @cached_property
    def by_async_proxy(self) -> set[int]:
        return of_async_proxy(self.function)

    @cached_property
    def tensor_memory(self) -> bool:
        return any(MemSpace.TMEM in a.spaces for atom in self.atoms for a in atom.accesses)

    @cached_property
    def columns(self) -> int:
        """The columns of tensor memory that a block has at once, as far as numbers in the program say: the least of
        it."""
        counts = [op.operands[1] for op in self.calls if op.attrs["atom"].name == "tcgen05.alloc"]
        return max([int(n.value) for n in counts if isinstance(n, Constant)], default=0)

    # -- values --------------------------------------------------------------------------------------------------------

    @cached_property
    def allocations(self) -> list[Op]:
        return [op for op in self.ops if op.opcode == "smem.alloc"]

    @cached_property
    def maybe_unwritten(self) -> set[Op]:
        """Fragments that may be read before they are written."""
        return maybe_unwritten(self.function)

    @cached_property
    def likely_unwritten(self) -> set[Op]:
        """Those of ``maybe_unwritten`` of which a register is read that no op above writes, on any path, or that are
        written under a condition and used without one."""
        if not self.maybe_unwritten:
            return set()
        return never_written(self.function) | (unguarded(self.function) & self.maybe_unwritten)

    @cached_property
    def may_read_unwritten(self) -> bool:
        """Whether it has shared memory or registers that may be read before they are written."""
        return bool(self.allocations or self.maybe_unwritten or any(atom.shuffles for atom in self.atoms))

    @cached_property
    def derived_from(self) -> dict[Value, frozenset[Op]]:
        """The allocations of shared memory that each address was derived from."""
        return derived_from(self.function)

    @cached_property
    def descriptors(self) -> dict[Op, list[Value]]:
        """The words of matrix descriptors through which each op reads shared memory."""
        descriptors: dict[Op, list[Value]] = {}
        for op in self.calls:
            for value, access in op.attrs["atom"].accessed(op):
                if access.agent and MemSpace.SMEM in access.memories and not isinstance(value.type, PtrType):
                    descriptors.setdefault(op, []).append(value)
        return descriptors

    @cached_property
    def within(self) -> dict[Op, tuple[Within, ...]]:
        """Coordinates that have to stay within extents where an op accesses memory: its own, and those of the slices
        that its addresses and descriptors were made of."""
        noted: dict[Value, tuple[Within, ...]] = {}
        within: dict[Op, tuple[Within, ...]] = {}
        for op in self.ops:
            own = [Within(coord, extent, step, op) for coord, extent, step in op.attrs.get("within", ())]
            # What a store writes is a number, whatever it was made of.
            taken = op.operands[:1] if op.opcode == "store" else op.operands
            pairs = tuple(dict.fromkeys([*own, *[w for v in taken for w in noted.get(v, ())]]))
            if not pairs:
                continue
            if makes_address(op):
                noted.update(dict.fromkeys(op.results, pairs))
            elif op.opcode in ("load", "store", "call"):
                within[op] = pairs
        return within

    @cached_property
    def arithmetic(self) -> set[Op]:
        """Arithmetic that may overflow."""
        return {op for op in self.ops if op.opcode in ("cast", "shl", "shr", *SIGNED) and may_overflow(op)}


def kernel_facts(program: Program) -> KernelFacts:
    """The facts of a program's kernel, found once for all its launches."""
    if program.facts is None:
        program.facts = KernelFacts(program.function, program.shared_names)
    facts: KernelFacts = program.facts
    return facts
