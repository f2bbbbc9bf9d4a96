"""Values, operations, blocks and functions: the data that a kernel is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tilewright.ir.types import Type
from tilewright.reports import Shown


class Location(NamedTuple):
    """A place in the user's Python."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Value:
    """An SSA value. ``hint`` is the user's variable name when one is known; ``op`` is None for block arguments."""

    __slots__ = ("type", "hint", "op")

    def __init__(self, type: Type, hint: str | None = None, op: Op | None = None) -> None:
        self.type = type
        self.hint = hint
        self.op = op

    def __deepcopy__(self, _: Any) -> Value:
        return self

    def __repr__(self) -> str:
        return f"%{self.hint or '_'}: {self.type}"


class Constant(Value):
    """A literal. It belongs to no block; ``value`` is a Python int, float or bool (vectors: of all elements)."""

    __slots__ = ("value",)

    def __init__(self, type: Type, value: int | float | bool) -> None:
        super().__init__(type)
        self.value = value

    def __repr__(self) -> str:
        return f"{self.value}: {self.type}"


@dataclass(eq=False, slots=True)
class Op:
    """One operation of a machine. ``opcode`` names its definition in :mod:`tilewright.ir.ops`."""

    opcode: str
    operands: list[Value]
    results: list[Value]
    attrs: dict[str, Any]
    regions: list[Block]
    loc: Location | None

    @property
    def result(self) -> Value:
        return self.results[0]

    def walk(self) -> Iterator[Op]:
        """This op and every op inside its regions, in program order."""
        yield self
        for region in self.regions:
            yield from region.walk()


@dataclass(eq=False, slots=True)
class Block:
    """A straight list of ops with arguments; the body of a function or one region of a structured op."""

    args: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    def walk(self) -> Iterator[Op]:
        """Every op, and every op inside the regions of each, in program order."""
        open_blocks = [iter(self.ops)]  # a stack, not a generator for each region, which took twice as long
        while open_blocks:
            for op in open_blocks[-1]:
                yield op
                if op.regions:
                    open_blocks.extend([iter(region.ops) for region in reversed(op.regions)])
                    break
            else:
                open_blocks.pop()


class Variable(NamedTuple):
    """A variable of the user's and what was assigned to it at ``loc``: a number or tensor of the language front (it has
    ``value``, or ``engine`` and ``linear``), or a Python number. ``after``: the op staged last before."""

    name: str
    value: Any
    loc: Location
    after: Op | None = None


@dataclass(eq=False, slots=True)
class Function(Shown):
    """A kernel (``kind == "kernel"``) or a host function (``kind == "host"``).

    Kernel attributes: ``smem_bytes`` (dynamic shared memory that the body's allocations need), ``max_threads`` and
    ``min_blocks`` (launch bounds), ``cluster`` (static cluster shape or None), ``source`` (file of the user's kernel).
    ``variables`` are a kernel's in the order of assignment, ``replaced`` the values that others stand for. ``extents``:
    parameters that no op reads, and so are not passed, though they are extents of an array: the number of the parameter
    that points to the array, and the mode. ``digest``: of what decided a kernel that is kept on the disk; two kernels
    of one digest are one text. ``known``: it was read there, and its warnings were given when it was staged.
    """

    name: str
    kind: str
    body: Block
    attrs: dict[str, Any] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list, repr=False)
    replaced: dict[Value, Value] = field(default_factory=dict, repr=False)
    extents: dict[Value, tuple[int, int]] = field(default_factory=dict, repr=False)
    digest: str = field(default="", repr=False)
    known: bool = field(default=False, repr=False)

    @property
    def params(self) -> list[Value]:
        return self.body.args

    def walk(self) -> Iterator[Op]:
        return self.body.walk()

    def __str__(self) -> str:
        from tilewright.ir.printer import print_function

        return print_function(self)
