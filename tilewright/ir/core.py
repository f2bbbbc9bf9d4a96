"""Values, operations, blocks and functions: the data that a kernel is, and its text form, which ``--ir`` shows and
tests compare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tilewright.ir.types import BOOL, Type
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
    ``variables`` are the kernel's variables in the order of assignment; ``replaced`` maps values to those that took
    their place. ``extents``: parameters that are extents of an array, but are not passed as no op reads them; each with
    the number of the parameter that points to the array, and the mode. ``digest``: identifies a kernel that is kept on
    the disk; kernels with the same digest have the same text. ``known``: the kernel was read from the disk; its
    warnings were given when it was staged.
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
        return print_function(self)


# -- the text form ----------------------------------------------------------------------------------------------------

HIDDEN_ATTRS = frozenset(("kernel", "has_stream", "within"))


def print_function(function: Function, locations: bool = False) -> str:
    """The text of ``function``; with ``locations`` every op ends in ``// file:line``."""
    return _Printer(locations).function(function)


class _Printer:
    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.counter = 0

    def function(self, function: Function) -> str:
        params = ", ".join(f"{self.name(p)}: {p.type}" for p in function.params)
        attrs = {k: v for k, v in function.attrs.items() if k != "source" and v is not None}
        shown = f" {{{', '.join(f'{k} = {v}' for k, v in sorted(attrs.items()))}}}" if attrs else ""
        lines = [f"{function.kind} @{function.name}({params}){shown} {{", *self.block(function.body, "  "), "}"]
        return "\n".join(lines) + "\n"

    def block(self, block: Block, indent: str) -> list[str]:
        lines: list[str] = []
        for op in block.ops:
            lines += self.op(op, indent)
        return lines

    def op(self, op: Op, indent: str) -> list[str]:
        head = f"{', '.join(self.name(r) for r in op.results)} = " if op.results else ""
        where = f"  // {op.loc}" if self.locations and op.loc else ""
        if op.opcode == "for":
            return self._for(op, head, indent, where)
        if op.opcode == "if":
            lines = [
                f"{indent}{head}if {self.use(op.operands[0])}{self.types(op)} {{{where}",
                *self.block(op.regions[0], indent + "  "),
            ]
            if op.results or len(op.regions[1].ops) > 1:
                lines += [f"{indent}}} else {{", *self.block(op.regions[1], indent + "  ")]
            return [*lines, f"{indent}}}"]
        if op.opcode == "while":
            carried = self.carried(op.regions[0].args, op.operands)
            after = ", ".join(self.name(a) for a in op.regions[1].args)
            return [
                f"{indent}{head}while ({carried}){self.types(op)} {{{where}",
                *self.block(op.regions[0], indent + "  "),
                f"{indent}}} do ({after}) {{",
                *self.block(op.regions[1], indent + "  "),
                f"{indent}}}",
            ]
        operands = ", ".join(self.use(v) for v in op.operands)
        name = op.attrs["atom"].mnemonic() if op.opcode == "call" else op.opcode
        attrs = ", ".join(
            f"{k}={_attr(v)}"
            for k, v in sorted(op.attrs.items())
            if k != "atom" and k not in HIDDEN_ATTRS and v is not None
        )
        text = " ".join(part for part in (name, operands, f"{{{attrs}}}" if attrs else "") if part)
        return [f"{indent}{head}{text}{self.types(op, ' : ')}{where}"]

    def _for(self, op: Op, head: str, indent: str, where: str) -> list[str]:
        lo, hi, step, *init = op.operands
        body = op.regions[0]
        unroll = op.attrs.get("unroll")
        carried = f" carry ({self.carried(body.args[1:], init)}){self.types(op)}" if init else ""
        return [
            f"{indent}{head}for {self.name(body.args[0])} = {self.use(lo)} to {self.use(hi)} step {self.use(step)}"
            f"{f' unroll {unroll}' if unroll is not None else ''}{carried} {{{where}",
            *self.block(body, indent + "  "),
            f"{indent}}}",
        ]

    def carried(self, args: list[Value], init: list[Value]) -> str:
        return ", ".join(f"{self.name(a)} = {self.use(v)}" for a, v in zip(args, init, strict=True))

    def types(self, op: Op, lead: str = " -> ") -> str:
        return f"{lead}{', '.join(str(r.type) for r in op.results)}" if op.results else ""

    def use(self, value: Value) -> str:
        if isinstance(value, Constant):
            literal = str(bool(value.value)).lower() if value.type == BOOL else repr(value.value)
            return f"{literal}:{value.type}"
        return self.name(value)

    def name(self, value: Value) -> str:
        if value not in self.names:
            self.names[value] = self._fresh(value.hint)
        return self.names[value]

    def _fresh(self, hint: str | None) -> str:
        base = re.sub(r"\W", "_", hint) if hint else ""
        if base and base not in self.taken:
            self.taken.add(base)
            return f"%{base}"
        self.counter += 1
        return f"%{base}_{self.counter}" if base else f"%{self.counter}"


def _attr(value: Any) -> str:
    if isinstance(value, (tuple, list)) and all(isinstance(v, int) for v in value):
        return _offsets(list(value))
    return repr(value) if isinstance(value, str) else str(value)


def _offsets(values: list[int]) -> str:
    """A list of offsets; runs of consecutive numbers print as ``first..last``."""
    parts, start = [], 0
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[i - 1] + 1:
            run = values[start:i]
            parts += [f"{run[0]}..{run[-1]}"] if len(run) > 2 else [str(v) for v in run]
            start = i
    return f"[{', '.join(parts)}]"
