"""Host functions of every form, and the Python that is written for them as ``tests/data/host_code.txt`` keeps it.

``python -m tests.lang.host.generated`` writes that file after a change that is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests import kept
from tests.cuda.build import Kernel, pointer
from tests.cuda.test_semantics import branch, loop
from tilewright.errors import StagingError
from tilewright.ir.arithmetic import TABLE
from tilewright.ir.core import Block, Constant, Function, Value
from tilewright.ir.types import BOOL, F16, F32, F64, I32, I64, NUMBERS, U32, U64, WIDE, ScalarType, Type, VecType
from tilewright.lang.launch.host import _SCOPE, HostWriter, is_positive

FILE, COMMAND = "host_code.txt", "python -m tests.lang.host.generated"
DIVISIONS = ("div", "rem", "floordiv", "floormod")


class Host(Kernel):
    """A host function: ``h = Host("name", x=pointer(F32), n=I32)``."""

    def __init__(self, name: str, **params: Type) -> None:
        super().__init__(name, **params)
        self.top = Function(name, "host", self.block, {})

    def written(self) -> str:
        if not self.block.ops or self.block.ops[-1].opcode != "yield":
            self.end()
        writer = HostWriter(self.top)
        try:
            text = writer.write()
        except StagingError as refused:
            return f"{self.top.name}: {refused}"
        named = [f"{name}: {what(found)}" for name, found in writer.scope.items() if name not in _SCOPE]
        kernels = [f"kernel {kernel.name}" for kernel in writer.kernels]
        return "\n".join([self.top.name, text.rstrip("\n"), *named, *kernels])


def what(found: Any) -> str:
    """A name of the generated code's scope: a function with the arguments that are bound, or a segment."""
    if hasattr(found, "func"):
        return f"{found.func.__name__}{tuple(map(str, found.args))}"
    return (
        f"{type(found).__name__} {len(found.inputs)} {len(found.outputs)}" if hasattr(found, "inputs") else "a template"
    )


def launch(h: Host, kernel: Function, *args: Value, stream: Value | None = None, smem: int = -1, **sizes: Any) -> None:
    numbers = [*sizes.get("grid", (1, 1, 1)), *sizes.get("block", (32, 1, 1)), 1, 1, 1, smem]
    operands = [x if isinstance(x, Value) else h.number(x) for x in numbers]
    attrs = {"kernel": kernel, "has_stream": stream is not None}
    if "attributes" in sizes:
        attrs["attributes"] = sizes["attributes"]
    h.emit("launch", (*operands, *([stream] if stream else []), *args), (), attrs)


def kernel(name: str, *params: Value) -> Function:
    return Function(name, "kernel", Block(list(params)))


def operations() -> Iterator[Host]:
    for elem in (*NUMBERS, *WIDE):
        h = Host(f"operations of {elem}", a=elem, b=elem, c=elem, p=BOOL)
        for opcode, row in TABLE.items():
            if row.on(elem) is None:
                continue
            operands = (h.a, h.b, h.c)[: row.operands]
            result = BOOL if row.predicate else elem
            h.emit(opcode, operands, (result,))
            if row.operands == 2:
                for number in (1, 2, -1, 0):
                    if elem == BOOL or (number == 0 and opcode in DIVISIONS) or (number < 0 and elem.kind == "uint"):
                        continue
                    h.emit(opcode, (h.a, h.constant(elem, number)), (result,))
        h.emit("select", (h.p, h.a, h.b), (elem,))
        for to in (*NUMBERS, *WIDE):
            if to != elem:
                h.emit("cast", (h.a,), (to,))
        yield h
    h = Host("numbers", a=F64, n=I32)
    for number in (0.5, -0.5, float("inf"), float("-inf"), float("nan")):
        h.emit("add", (h.a, Constant(F64, number)), (F64,))
    yield h


def parameters() -> Iterator[Host]:
    """Floats that the host computes with are rounded; those of launches alone are not."""
    kinds = {f"p{i}": kind for i, kind in enumerate((*NUMBERS, *WIDE, pointer(F16), VecType(I32, 3)))}
    for uses in (False, True):
        h = Host(f"parameters {uses}", **kinds)
        launch(h, kernel("k", *h.args.values()), *h.args.values())
        for value in h.args.values() if uses else ():
            if isinstance(value.type, ScalarType):
                h.emit("eq", (value, value), (BOOL,))
        yield h
    h = Host("names", n=I32)
    for hint in (None, "row", "row", "row 2", "größe", "n", "", "if", "v"):
        h.emit("add", (h.n, h.n), (I32,), hint=hint)
    h.end(h.block.ops[0].result, h.n, h.number(-3))
    yield h


def control() -> Iterator[Host]:
    h = Host("branches", n=I32, m=I32)
    small = h.compare("lt", h.n, h.m)

    def number() -> Any:
        return (h.binary("add", h.n, h.m),)

    for then, other in ((number, number), (number, lambda: (h.n,)), (lambda: None, lambda: None)):
        branch(h, small, then, other)
    branch(h, small, lambda: number() and None)
    branch(h, small, lambda: None, lambda: number() and None)
    yield h
    h = Host("loops", n=I32, m=I32)
    loop(h, h.number(0), h.n, h.number(2), [], lambda i: ())
    found = loop(h, h.n, h.m, h.number(-1), [h.n, h.m], lambda i, x, y: (y, h.binary("add", x, i)))
    loop(h, h.number(0), h.n, h.number(1), [], lambda i: branch(h, h.compare("lt", i, h.m), number, number) and ())
    h.end(*found)
    yield h
    h = Host("checks", n=I32)
    for loc in (h.loc, None):
        h.loc = loc
        h.emit("assert", (h.compare("lt", h.n, h.number(3)),), (), {"message": "n 'is' large"})
    yield h
    h = Host("pointers", x=pointer(F32), n=I64, i=I32)
    p = h.at(h.x, h.i)
    h.emit("ptr.cast", (p,), (pointer(I32, 4),))
    h.emit("ptr.toint", (p,), (U64,))
    h.emit("ptr.fromint", (h.n,), (pointer(F32, 4),))
    yield h


def launches() -> Iterator[Host]:
    first, second = kernel("first", Value(pointer(F32), "x")), kernel("second", Value(pointer(F32), "x"))
    h = Host("launches", x=pointer(F32), n=I32, m=I32, s=I64)
    launch(h, first, h.x)
    launch(h, second, h.x, smem=64)
    launch(h, first, h.x, grid=(h.n, 1, h.m), attributes=("use_pdl",))
    launch(h, first, h.x, block=(h.n, 1, 1))
    launch(h, first, h.x, stream=h.s)
    launch(h, first, h.x, grid=(2, 0, 1))
    launch(h, first, h.x, grid=(h.n, 0, 1))
    launch(h, first, h.x, grid=(h.m, 2, 3), stream=h.s, smem=128)
    branch(h, h.compare("lt", h.n, h.m), lambda: launch(h, first, h.x), lambda: launch(h, second, h.x))
    loop(h, h.number(0), h.n, h.number(1), [], lambda i: launch(h, second, h.at(h.x, i)) or ())
    yield h
    h = Host("a launch in a while loop", x=pointer(F32), n=I32)
    before, after = Block([Value(I32)]), Block([Value(I32)])
    with h.inside(before):
        h.emit("condition", (h.compare("lt", before.args[0], h.n), before.args[0]))
    with h.inside(after):
        launch(h, first, h.x)
        h.end(after.args[0])
    h.emit("while", (h.n,), (I32,), {}, [before, after])
    yield h


def segments() -> Iterator[Host]:
    """What touches memory is gathered between launches; what does not depend on it is not."""
    made = kernel("k", Value(I32, "n"))
    steps: dict[str, Callable[[Host], Any]] = {
        "load": lambda h: h.load(h.x),
        "store": lambda h: h.store(h.x, h.f),
        "add": lambda h: h.binary("add", h.n, h.number(1)),
        "of the load": lambda h: h.binary("add", h.load(h.y), h.n),
        "at the load": lambda h: h.at(h.x, h.load(h.y)),
        "vector": lambda h: h.splat(h.n, 4),
        "a sum of vectors": lambda h: h.binary("add", h.v, h.v),
        "check": lambda h: h.emit("assert", (h.p,), (), {"message": "p"}),
        "launch": lambda h: launch(h, made, h.n),
        "branch": lambda h: branch(h, h.p, lambda: (h.load(h.y),), lambda: (h.n,)),
        "loop": lambda h: loop(h, h.number(0), h.n, h.number(1), [], lambda i: h.store(h.y, i) or ()),
        "plain branch": lambda h: branch(h, h.p, lambda: (h.n,), lambda: (h.binary("add", h.n, h.n),)),
        "launch of the load": lambda h: launch(h, made, h.load(h.y)),
        "bits": lambda h: h.bitcast(h.n, U32),
    }
    for first in steps:
        h = Host(f"{first}, and then", x=pointer(F32), y=pointer(I32), n=I32, f=F32, p=BOOL, v=VecType(I32, 4))
        for second in steps:
            steps[first](h)
            steps[second](h)
        yield h
    h = Host("the result of a load", y=pointer(I32), n=I32)
    value = h.load(h.y)
    h.end(value, h.binary("add", value, h.n))
    yield h


def texts() -> dict[str, str]:
    made = [h for part in (operations, parameters, control, launches, segments) for h in part()]
    found = {h.top.name: h.written() for h in made}
    found["positive"] = str(
        [is_positive(v) for v in (Constant(I32, 1), Constant(I32, 0), Constant(I32, -1), Value(I32))]
    )
    return found


if __name__ == "__main__":
    kept.write(FILE, texts())
