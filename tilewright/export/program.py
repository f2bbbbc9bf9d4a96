"""A host function as JSON and back: its operations, and of each kernel what a launch has to know (the kernels
themselves are machine code by then)."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from tilewright.cuda.limits import shared_bytes
from tilewright.ir.core import Block, Constant, Function, Location, Op, Value
from tilewright.ir.tensormap import Leaf, ModePart, TensorMapTemplate
from tilewright.ir.types import SCALARS, MemSpace, PtrType, Type, VecType, element_of
from tilewright.ir.verify import verify

_TYPE = re.compile(r"(?:(\w+)$)|(?:vec<(\w+), (\d+)>)|(?:ptr<(\w+), (\w+), align (\d+)>)")


def read_type(text: str) -> Type:
    """The type that prints as ``text``.

    >>> read_type("i32"), read_type("vec<u64, 16>"), read_type("ptr<f16, gmem, align 16>")
    (i32, vec<u64, 16>, ptr<f16, gmem, align 16>)
    """
    match = _TYPE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a type")
    scalar, vector, count, elem, space, align = match.groups()
    if scalar:
        return SCALARS[scalar]
    return VecType(SCALARS[vector], int(count)) if vector else PtrType(SCALARS[elem], MemSpace(space), int(align))


class _Writer:
    def __init__(self, kernels: list[Function]) -> None:
        self.kernels = kernels
        self.numbers: dict[Value, int] = {}

    def value(self, value: Value) -> Any:
        """A result or an argument where it is made."""
        self.numbers[value] = len(self.numbers)
        return [self.numbers[value], str(value.type), value.hint]

    def operand(self, value: Value) -> Any:
        if isinstance(value, Constant):
            return {"type": str(value.type), "value": _number(value.value)}
        return self.numbers[value]

    def block(self, block: Block) -> Any:
        return {"args": [self.value(v) for v in block.args], "ops": [self.op(op) for op in block.ops]}

    def op(self, op: Op) -> Any:
        operands = [self.operand(v) for v in op.operands]
        regions = [self.block(region) for region in op.regions]
        attrs = {name: self.attr(name, value) for name, value in op.attrs.items()}
        results = [self.value(v) for v in op.results]
        return [op.opcode, operands, results, attrs, regions, list(op.loc) if op.loc else None]

    def attr(self, name: str, value: Any) -> Any:
        if isinstance(value, Function):
            return self.kernels.index(value)
        if isinstance(value, TensorMapTemplate):
            kept = (f.name for f in fields(value) if f.compare)
            made = {name: getattr(value, name) for name in kept}
            return {**made, "source": value.source.name, "element": value.element.name}
        return list(value) if isinstance(value, tuple) else value


def _number(value: Any) -> Any:
    return value.hex() if isinstance(value, float) else value


def write(host: Function, kernels: list[Function]) -> dict[str, Any]:
    """The result of :func:`read`: the host function as data."""
    return {
        "name": host.name,
        "body": _Writer(kernels).block(host.body),
        "kernels": [
            {
                "name": kernel.name,
                "params": [[str(v.type), v.hint] for v in kernel.params],
                "smem_bytes": shared_bytes(kernel),
                "max_threads": kernel.attrs.get("max_threads"),
                "cluster": kernel.attrs.get("cluster"),
            }
            for kernel in kernels
        ],
    }


class _Reader:
    def __init__(self, kernels: list[Function]) -> None:
        self.kernels = kernels
        self.values: dict[int, Value] = {}

    def value(self, item: Any, op: Op | None) -> Value:
        number, kind, hint = item
        value = self.values[number] = Value(read_type(kind), hint, op)
        return value

    def operand(self, item: Any) -> Value:
        if isinstance(item, int):
            return self.values[item]
        kind, number = read_type(item["type"]), item["value"]
        return Constant(kind, float.fromhex(number) if element_of(kind).is_float else number)

    def block(self, item: Any) -> Block:
        block = Block([self.value(v, None) for v in item["args"]])
        block.ops.extend(self.op(op) for op in item["ops"])
        return block

    def op(self, item: Any) -> Op:
        opcode, operands, results, attrs, regions, loc = item
        place = Location(*loc) if loc else None
        op = Op(opcode, [self.operand(v) for v in operands], [], {}, [], place)
        op.regions.extend(self.block(region) for region in regions)
        op.attrs.update((name, self.attr(name, value)) for name, value in attrs.items())
        op.results.extend(self.value(v, op) for v in results)
        return op

    def attr(self, name: str, value: Any) -> Any:
        if name == "kernel":
            return self.kernels[value]
        if name == "template":
            modes = tuple(tuple(_part(part) for part in mode) for mode in value["modes"])
            scales = tuple(_part(part) for part in value["scales"])
            kinds = {"source": SCALARS[value["source"]], "element": SCALARS[value["element"]]}
            return TensorMapTemplate(**{**value, **kinds, "box": tuple(value["box"]), "modes": modes, "scales": scales})
        return tuple(value) if isinstance(value, list) else value


def _part(item: Any) -> ModePart:
    mode, extent, stride, contiguous = item
    return ModePart(mode, Leaf(*extent), Leaf(*stride), contiguous)


def read(item: dict[str, Any]) -> tuple[Function, list[Function]]:
    """The host function, and its kernels without their bodies."""
    kernels = []
    for kernel in item["kernels"]:
        cluster = tuple(kernel["cluster"]) if kernel["cluster"] else None
        attrs = {"smem_bytes": kernel["smem_bytes"], "max_threads": kernel["max_threads"], "cluster": cluster}
        params = [Value(read_type(kind), hint) for kind, hint in kernel["params"]]
        kernels.append(Function(kernel["name"], "kernel", Block(params), attrs))
    host = Function(item["name"], "host", _Reader(kernels).block(item["body"]))
    verify(host)
    return host, kernels
