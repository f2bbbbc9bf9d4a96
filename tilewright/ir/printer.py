"""The text form of functions: what ``--ir`` shows and tests compare."""

from __future__ import annotations

import re
from typing import Any

from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.types import BOOL

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
