"""Registers of fragments inside a stretch of straight code: what the stretch stored there is not loaded again.

The plain steps (:mod:`.memory_steps`) copy: ``frag.alloc`` fills registers with poison, ``frag.store`` copies values
into them, ``frag.load`` copies them out. For element-by-element programs that is most of the time. All lanes of a group
do a stretch under one mask, so inside it:

- a load of registers that the stretch has stored gives the value that was stored (what resting lanes hold is not used);
- registers that are only stored, and loaded in such a way, need no memory at all;
- a load from a fragment that nothing writes afterwards may be a view;
- a fragment whose first access writes all of its registers in all lanes needs no poison, and may *be* the vector that
  is stored, if nothing else holds that.

The ops of the stretch stay as they are, so observers are notified of each, and counts do not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilewright.atoms.copy import split_operands
from tilewright.ir.arithmetic import TABLE
from tilewright.ir.core import Function, Op, Value
from tilewright.ir.types import FragType, ScalarType, VecType, element_of
from tilewright.sim.columns import Columns, use_columns
from tilewright.sim.fusion import written_registers
from tilewright.sim.program import BasicBlock, Closure, nothing
from tilewright.sim.values import poisoned

Slot = Callable[[Value], int]


class Use(NamedTuple):
    """An op with a fragment among its operands: the one at ``at`` of a node's steps, or (-1) the node's control."""

    node: BasicBlock
    at: int
    op: Op


class Stored(NamedTuple):
    """What a register holds: element ``column`` of a vector, or (None) a scalar."""

    value: Value
    column: int | None


def forward(nodes: list[BasicBlock], function: Function, slot: Slot) -> None:
    """Replace the steps of the nodes. Every fragment is named by one value alone (``fusion.names_are_unique``)."""
    readers = Counter(value for op in function.walk() for value in op.operands)
    aliases: dict[Value, Value] = {}
    sources: set[Value] = set()
    uses_of = _uses(nodes, function)
    fragments = [Fragment(value, uses, slot, readers, aliases, sources) for value, uses in uses_of.items()]
    for fragment in fragments:
        fragment.forward_loads()
    remaining = [fragment for fragment in fragments if not fragment.drop()]
    for fragment in remaining:
        fragment.view_loads()
        fragment.make_at_first_use()
    use_columns(remaining, readers, slot)
    _shorten_predicates(nodes, function, slot, aliases)


def _shorten_predicates(nodes: list[BasicBlock], function: Function, slot: Slot, aliases: dict[Value, Value]) -> None:
    """Let comparisons whose results are predicates of copies give one True, where they hold in all lanes: a copy then
    has no mask to look at."""
    predicates = set()
    for op in function.walk():
        if op.opcode == "call" and op.attrs.get("predicated"):
            for value in split_operands(op, op.operands)[2]:
                predicates.add(stored_under(aliases, value))
    for node in nodes:
        assert isinstance(node.steps, list)
        for at, op in enumerate(node.ops):
            if op.opcode in TABLE and op.result in predicates:
                node.steps[at] = _one_if_true(node.steps[at], slot(op.result))


def _uses(nodes: list[BasicBlock], function: Function) -> dict[Value, list[Use]]:
    """The uses of each fragment, but of those that instructions work on at some later time (or do not say when)."""
    uses_of: dict[Value, list[Use]] = {}
    for node in nodes:
        own = [*enumerate(node.ops), *([(-1, node.op)] if node.op is not None else [])]
        for at, op in own:
            if op.opcode == "frag.alloc":
                uses_of.setdefault(op.result, []).append(Use(node, at, op))
            for value in dict.fromkeys(op.operands):
                if isinstance(value.type, FragType):
                    uses_of.setdefault(value, []).append(Use(node, at, op))
    for op in function.walk():
        atom = op.attrs["atom"] if op.opcode == "call" else None
        if atom is not None and (atom.in_flight or atom.agents or not atom.accesses):
            for value in op.operands:
                uses_of.pop(value, None)
    return {value: uses for value, uses in uses_of.items() if uses[0].op.opcode == "frag.alloc"}


def stored_under(aliases: dict[Value, Value], value: Value) -> Value:
    """The value that was stored, where ``value`` is a load of it."""
    while value in aliases:
        value = aliases[value]
    return value


class Fragment:
    """``uses``: first the op that makes it. ``readers``: how many operands of ops each value is. Of all fragments:
    ``aliases``, what results of loads were stored under, and ``sources``, the values that forwarded loads read."""

    def __init__(
        self,
        value: Value,
        uses: list[Use],
        slot: Slot,
        readers: Counter[Value],
        aliases: dict[Value, Value],
        sources: set[Value],
    ) -> None:
        kind = value.type
        assert isinstance(kind, FragType)
        self.value, self.uses, self.slot, self.readers = value, uses, slot, readers
        self.aliases, self.sources = aliases, sources
        self.elem: ScalarType = kind.elem
        self.n = kind.n
        self.forwarded: set[int] = set()  # the loads, by id, that no longer look at the registers
        self.viewed: set[int] = set()  # those that give a view of them
        self._plain = uses[1].node.steps[uses[1].at] if len(uses) > 1 else nothing  # the first use
        self.kind = ""  # how the first use makes it: "loaded" by a copy, or the vector that is "stored"

    @property
    def definition(self) -> Use:
        """Where the value is made."""
        return self.uses[0]

    @property
    def first(self) -> Use:
        return self.uses[1]

    @property
    def rest(self) -> list[Use]:
        """The uses behind the first."""
        return self.uses[2:]

    # -- loads of what was stored --------------------------------------------------------------------------------------

    def forward_loads(self) -> None:
        contents: dict[int, Stored] = {}
        node = None
        for use in self.uses:
            if use.node is not node:
                node = use.node
                contents = {}
            if _is_static(use.op, "frag.store"):
                self._note(use.op, contents)
            elif _is_static(use.op, "frag.load"):
                self._replace(use, contents)
            else:
                for register in _written(use.op, self.value):
                    contents.pop(register, None)

    def _note(self, op: Op, contents: dict[int, Stored]) -> None:
        value = op.operands[1]
        vector = isinstance(value.type, VecType)
        for column, register in enumerate(op.attrs["offsets"]):
            if element_of(value.type) == self.elem:
                contents[register] = Stored(value, column if vector else None)
            else:
                contents.pop(register, None)

    def _replace(self, use: Use, contents: dict[int, Stored]) -> None:
        sources = [contents.get(register) for register in use.op.attrs["offsets"]]
        first, result = sources[0], use.op.result
        if first is None or element_of(result.type) != self.elem:
            return
        if isinstance(result.type, VecType):
            kind = first.value.type
            if not isinstance(kind, VecType) or sources != [Stored(first.value, c) for c in range(kind.n)]:
                return
        if isinstance(result.type, VecType) or first.column is None:
            step = _same(self.slot(first.value), self.slot(result))
            self.aliases[result] = first.value
        else:
            step = _element(self.slot(first.value), first.column, self.slot(result))
        self.sources.add(first.value)
        _put(use, step)
        self.forwarded.add(id(use.op))

    # -- registers that are not needed ---------------------------------------------------------------------------------

    def drop(self) -> bool:
        """Remove the fragment, if only forwarded loads look at it."""
        for use in self.uses:
            kept = use.op.opcode == "frag.alloc" or _is_static(use.op, "frag.store") or id(use.op) in self.forwarded
            if not kept:
                return False
        for use in self.uses:
            if use.op.opcode != "frag.load":
                _put(use, nothing)
        return True

    def view_loads(self) -> None:
        """Loads of all registers behind the last write of a fragment that only this stretch uses give views of it."""
        if any(use.node is not self.definition.node for use in self.uses):
            return
        for use in reversed(self.uses):
            if _written(use.op, self.value):
                return
            if (
                _is_static(use.op, "frag.load")
                and id(use.op) not in self.forwarded
                and isinstance(use.op.result.type, VecType)
                and list(use.op.attrs["offsets"]) == list(range(self.n))
            ):
                _put(use, _same(self.slot(self.value), self.slot(use.op.result)))
                self.viewed.add(id(use.op))

    # -- registers that need no poison ---------------------------------------------------------------------------------

    def make_at_first_use(self) -> None:
        """Make the fragment where it is first used, if that writes all registers: then it depends on the masks there
        whether poison would be left."""
        if len(self.uses) < 2 or self.first.node is not self.definition.node or self.first.at < 0:
            return
        op = self.first.op
        if _is_static(op, "frag.store") and sorted(op.attrs["offsets"]) == list(range(self.n)):
            operands = self._only_here(op.operands[1])
            self.kind = "stored" if operands is not None else ""
            value = self.slot(op.operands[1])
            _put(self.first, _store_new(self._plain, self.slot(self.value), self.elem, self.n, value, operands))
        elif _loads_all(op, self.n):
            self.kind = "loaded"
            self._load(False)
        else:
            return
        _put(self.definition, nothing)

    def make_columns(self) -> None:
        """Let the copy that makes the fragment make columns."""
        self._load(True)

    def _load(self, columns: bool) -> None:
        predicates = [self.slot(p) for p in self._predicates()]
        _put(self.first, _load_new(self._plain, self.slot(self.value), self.elem, self.n, predicates, columns))

    def _predicates(self) -> list[Value]:
        """Those of the first use, each once, by what this stretch has stored them under."""
        predicates = [value for value in split_operands(self.first.op, self.first.op.operands)[2] if value is not None]
        here = {result for op in self.definition.node.ops for result in op.results}
        return list(dict.fromkeys(stored_under(self.aliases, v) if v in here else v for v in predicates))

    def _only_here(self, value: Value) -> list[int] | None:
        """The operands (slots) of the op that computes ``value`` again for the first store alone; None if there is no
        such op."""
        if list(self.first.op.attrs["offsets"]) != list(range(self.n)) or not isinstance(value.type, VecType):
            return None
        maker = next((op for op in self.definition.node.ops if value in op.results), None)
        # A forwarded load reads it, too: it would see what is written to the fragment later.
        alone = maker is not None and maker.opcode in TABLE and self.readers[value] == 1 and value not in self.sources
        return [self.slot(v) for v in maker.operands] if maker is not None and alone else None


def _is_static(op: Op, opcode: str) -> bool:
    return op.opcode == opcode and len(op.operands) == (2 if opcode == "frag.store" else 1)


def _written(op: Op, fragment: Value) -> set[int]:
    """The registers that ``op`` may write to."""
    kind = fragment.type
    assert isinstance(kind, FragType)
    accumulates = op.opcode == "call" and op.attrs["atom"].multiplies and op.operands[0] is fragment
    return set(range(kind.n)) if accumulates or op.opcode == "frag.alloc" else written_registers(op, fragment)


def _loads_all(op: Op, n: int) -> bool:
    """Whether ``op`` is a copy from memory to all registers of its fragment, one lane for itself."""
    if op.opcode != "call" or op.attrs["atom"].name != "copy" or op.attrs.get("store", True):
        return False
    return sorted(register for one in op.attrs.get("registers", ()) for register in one) == list(range(n))


def _put(use: Use, step: Closure) -> None:
    assert isinstance(use.node.steps, list)
    use.node.steps[use.at] = step


# -- steps -------------------------------------------------------------------------------------------------------------


def _same(a: int, d: int) -> Closure:
    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = slots[a]

    return run


def _one_if_true(plain: Closure, d: int) -> Closure:
    def run(group: Any, slots: list[Any]) -> None:
        plain(group, slots)
        if slots[d].ndim and slots[d].all():
            slots[d] = np.True_

    return run


def _element(a: int, column: int, d: int) -> Closure:
    def run(group: Any, slots: list[Any]) -> None:
        slots[d] = slots[a][..., column]

    return run


def _store_new(plain: Closure, f: int, elem: ScalarType, n: int, v: int, operands: list[int] | None) -> Closure:
    """A store to all registers of a new fragment. ``operands``: of the op that made the vector for it alone."""

    def run(group: Any, slots: list[Any]) -> None:
        value = slots[v]
        if group.mask is not None:
            slots[f] = poisoned(elem, (group.lanes_count, n))
            if type(value) is Columns:
                slots[v] = value.array()
        elif (
            operands is not None
            and _is_own(value, [slots[o] for o in operands])
            and value.shape == (group.lanes_count, n)
        ):
            slots[f] = value
            return
        else:
            slots[f] = np.empty((group.lanes_count, n), elem.dtype)
        plain(group, slots)

    return run


def _is_own(value: Any, operands: list[Any]) -> bool:
    """Whether the array is what an operation made, and not one of its operands or a view of one."""
    if type(value) is Columns:
        return True
    return (
        isinstance(value, np.ndarray)
        and value.base is None
        and value.flags.c_contiguous
        and not any(value is operand for operand in operands)
    )


def _load_new(plain: Closure, f: int, elem: ScalarType, n: int, predicates: list[int], columns: bool) -> Closure:
    """A load to all registers of a new fragment; ``columns``: those who read it take columns."""

    def run(group: Any, slots: list[Any]) -> None:
        shape = group.lanes_count, n
        if group.mask is not None or not all(slots[p] is np.True_ or slots[p].all() for p in predicates):
            slots[f] = poisoned(elem, shape)
            plain(group, slots)
            return
        slots[f] = made = Columns(*shape, elem.dtype) if columns else np.empty(shape, elem.dtype)
        plain(group, slots)
        if type(made) is Columns and not made.whole:  # the copy took the way that needs an array
            slots[f] = made.array()

    return run
