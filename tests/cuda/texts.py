"""Small kernels for every branch of the emitter, and their CUDA C++ as it is kept in ``tests/data/cuda_text.txt``.

``python -m tests.cuda.texts`` writes that file after a change that is meant.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests import kept
from tests.cuda.build import Kernel, pointer
from tests.cuda.test_semantics import branch, loop
from tilewright.errors import CompileError
from tilewright.ir.arithmetic import TABLE
from tilewright.ir.core import Block, Value
from tilewright.ir.ops import SREGS
from tilewright.ir.types import (
    BF16,
    BOOL,
    E4M3,
    F16,
    F32,
    F64,
    I32,
    I64,
    NUMBERS,
    U8,
    U16,
    U32,
    U64,
    WIDE,
    MemSpace,
    PtrType,
    ScalarType,
    VecType,
    element_of,
    with_element,
)

FILE, COMMAND = "cuda_text.txt", "python -m tests.cuda.texts"
TYPES = (*NUMBERS, *WIDE)
SOME = {"add", "mul", "div", "min", "fma", "neg", "lt", "and", "exp2", "isnan"}
"""Of vectors, whose elements are printed as scalars are."""
MAKERS: list[Callable[[], Iterator[Kernel]]] = []


def kernels(make: Callable[[], Iterator[Kernel]]) -> Callable[[], Iterator[Kernel]]:
    MAKERS.append(make)
    return make


def keep(k: Kernel, value: Value) -> None:
    """A use of a value that prints it: an instruction-free store through a pointer of its own type."""
    elem = element_of(value.type)
    if elem.width < 8 and elem != BOOL:  # has no address of its own
        value, elem = k.cast(value, F32), F32
    if elem in WIDE:
        value, elem = k.cast(value, U64), U64
    name = f"to_{elem}"
    if name not in k.args:
        k.args[name] = Value(pointer(elem), name)
        k.top.body.args.append(k.args[name])
    k.store(k.at(k.args[name], k.number(len(k.block.ops)), elem.bytes), value)


def given(k: Kernel, elem: ScalarType, place: int, count: int) -> Value:
    """Numbers from memory: one (``count`` 0) or a vector."""
    if elem in WIDE:
        return k.cast(k.load(k.at(k.a, place)), elem)
    if elem.width >= 8 or elem == BOOL:
        return k.load(k.at(k.a, 16 * place, 16), count or None)
    return k.bitcast(k.load(k.at(k.a, 16 * place, 16), count * elem.width // 8), VecType(elem, count))


def counts(elem: ScalarType) -> tuple[int, ...]:
    return (0,) if elem in WIDE else (0, 4, 3) if elem.width >= 8 or elem == BOOL else (4,)


def holder(elem: ScalarType) -> PtrType:
    return pointer(U64 if elem in WIDE else elem if elem.width >= 8 or elem == BOOL else U8)


def applied(k: Kernel, opcode: str, operands: list[Value], **attrs: Any) -> None:
    kind = operands[0].type
    result = with_element(kind, BOOL) if TABLE[opcode].predicate else kind
    keep(k, k.emit(opcode, operands, (result,), attrs).result)


@kernels
def elementwise() -> Iterator[Kernel]:
    """Every operation on every type: scalars, vectors of even and odd length, wrapping and fast forms, constants."""
    for elem in TYPES:
        for count in counts(elem):
            k = Kernel(f"operations_{elem}_{count}", a=holder(elem), b=elem)
            values = [given(k, elem, i, count) for i in range(3)]
            for opcode, row in TABLE.items():
                if row.on(elem) is None or (count and opcode not in SOME):
                    continue
                operands = values[: row.operands]
                applied(k, opcode, operands)
                if count == 3:
                    continue
                if elem.is_integer and elem != BOOL:
                    applied(k, opcode, operands, wraps=True)
                    if row.operands == 2 and not count:
                        for number in (
                            *(() if "div" in opcode or opcode in ("rem", "floormod") else (0,)),
                            1,
                            2,
                            8,
                            3,
                            7,
                        ):
                            applied(k, opcode, [values[0], k.constant(elem, number)])
                if elem.is_float:
                    applied(k, opcode, operands, fastmath=True)
                if count and row.operands == 2:  # a scalar for all elements
                    applied(k, opcode, [values[0], k.emit("vec.splat", (k.b,), (values[0].type,)).result])
                    applied(k, opcode, [k.constant(values[0].type, 1), values[0]])
            chosen = k.compare("lt", values[0], values[1]) if elem != BOOL else values[0]
            keep(k, k.emit("select", (chosen, values[1], values[2]), (values[0].type,)).result)
            yield k


@kernels
def conversions() -> Iterator[Kernel]:
    """Every type to every other, as scalars and vectors; the bits of a type as those of others."""
    for elem in TYPES:
        k = Kernel(f"conversions_{elem}", a=holder(elem))
        for count in counts(elem):
            value = given(k, elem, count, count)
            for to in TYPES if not count else NUMBERS:
                if to != elem and (elem not in WIDE or to != U64):
                    keep(k, k.emit("cast", (value,), (with_element(value.type, to),)).result)
        for to in () if elem in WIDE else NUMBERS:
            if to.width == elem.width and to != elem and elem.width >= 8:
                keep(k, k.bitcast(given(k, elem, 0, 0), to))
            bits = 64 // elem.width, 64 // to.width
            if 64 % elem.width == 64 % to.width == 0:
                keep(k, k.bitcast(given(k, elem, 0, bits[0]), VecType(to, bits[1])))
            if to.width == 32 and elem.width <= 32 and 32 % elem.width == 0:
                keep(k, k.bitcast(given(k, elem, 0, 32 // elem.width), to))
                keep(k, k.bitcast(k.constant(to, 3), VecType(elem, 32 // elem.width)))
        yield k


@kernels
def literals() -> Iterator[Kernel]:
    for elem in TYPES:
        k = Kernel(f"literals_{elem}", a=elem)
        if elem.is_integer:
            least = -(1 << (elem.width - 1)) if elem.kind == "int" else 0
            numbers: list[float] = [0, 1, 7, least, least + 1, -least - 1 if least else (1 << elem.width) - 1]
            numbers += [
                x
                for x in (-1, 1 << 63, (1 << 63) - 1, -(1 << 63), 1 - (1 << 63), 1 << 62, 1 << 31)
                if least <= x < least + (1 << elem.width)
            ]
        else:
            numbers = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.1,
                1.5,
                6.0,
                1e30,
                -1e300,
                float("inf"),
                float("-inf"),
                float("nan"),
                1e-5,
            ]
        for number in numbers:
            keep(k, k.constant(elem, number))
            if elem != BOOL:
                keep(
                    k, k.emit("sub", (k.a, k.constant(elem, number)), (elem,)).result if TABLE["sub"].on(elem) else k.a
                )
        if elem not in WIDE:
            keep(k, k.constant(VecType(elem, 4), 1))
        yield k


@kernels
def memory() -> Iterator[Kernel]:
    for elem in (U8, F16, F32, F64):
        for space in (MemSpace.GMEM, MemSpace.SMEM):
            k = Kernel(f"accesses_{elem}_{space.name.lower()}", i=I32, n=I64)
            for align in (1, 2, 4, 8, 16, 128):
                p = k.args[f"p{align}"] = Value(pointer(elem, align, space), f"p{align}")
                k.top.body.args.append(p)
                for count in (None, 1, 2, 3, 8):
                    k.store(k.at(p, k.i, align), k.load(p, count))
                    k.store(k.at(k.at(p, k.n, align), -3, align), k.load(k.at(k.at(p, 5, align), k.i, align), count))
                at = k.at(p, k.binary("add", k.i, k.number(1)), align)
                k.store(at, k.load(at))
            yield k
    k = Kernel("pointers", x=pointer(F32), y=pointer(I32), out=pointer(U64), low=pointer(U32), i=I32, n=U64)
    shared = k.smem_alloc(0, 64, 16, F32, "tile")
    other = k.smem_alloc(64, 64, 16, I32)
    k.smem_alloc(128, 64, 16, I32, "idle")
    for p in (k.x, k.y, shared, other):
        for result, to in ((U64, k.out), (U32, k.low)):
            k.store(to, k.emit("ptr.toint", (k.at(p, k.i),), (result,)).result)
    for space in (MemSpace.GMEM, MemSpace.SMEM):
        p = k.emit("ptr.fromint", (k.n,), (pointer(F32, 16, space),)).result
        k.store(p, k.load(k.at(p, 1)))
    for elem in (F32, I32):
        cast = k.ptr_cast(k.at(k.x, k.i), PtrType(elem, MemSpace.GMEM, 4))
        k.store(cast, k.constant(elem, 1))
        k.store(k.ptr_cast(k.at(k.x, 2), PtrType(elem, MemSpace.GENERIC, 4)), k.constant(elem, 1))
    keep(k, k.compare("eq", k.x, k.at(k.x, 4)))
    yield k
    k = Kernel("registers", out=pointer(I32))
    for name in sorted(SREGS):
        once = k.sreg(name)
        once.hint = None
        k.store(k.out, once)
        twice = k.sreg(name)
        k.store(k.out, k.binary("add", twice, twice))
        k.sreg(name)
    yield k


@kernels
def fragments() -> Iterator[Kernel]:
    """Lazy loads of fragments, and what is written meanwhile."""
    for elem in (F32, F16, U8, I64):
        k = Kernel(f"fragments_{elem}", a=pointer(elem), i=I32, n=I32)
        f, g, idle = k.frag_alloc(elem, 16, "acc"), k.frag_alloc(elem, 6), k.frag_alloc(elem, 5)
        del idle
        orders = ((0, 1, 2, 3), (4, 5, 8, 9), (1, 2, 3, 4), (3, 2, 1, 0), (0, 2, 4, 6), (5, 1, 2, 8), (0, 1), (7,))
        for offsets in orders:
            for index in (None, k.i, k.binary("add", k.i, k.n)):
                v = k.frag_load(f, offsets, index)
                k.frag_store(g, v, tuple(range(len(offsets))))
                k.frag_store(f, k.load(k.at(k.a, 8, 16), len(offsets)), offsets, index)
                k.frag_store(
                    f, k.emit("add", (k.frag_load(f, offsets), k.frag_load(f, offsets)), (v.type,)).result, offsets
                )
                k.frag_store(f, k.frag_load(f, tuple(reversed(offsets))), offsets, index)
                keep(k, k.frag_load(f, offsets[:1], index, scalar=True))
                k.frag_store(f, k.constant(elem, 1), offsets[-1:], index)
        loaded = k.frag_load(f, (0, 1, 2, 3))
        k.frag_store(g, k.frag_load(f, (4, 5, 6, 7)), (0, 1, 2, 3))
        keep(k, loaded)  # before a write to another fragment
        loaded = k.frag_load(f, (0, 1, 2, 3))
        branch(k, k.compare("lt", k.i, k.n), partial(k.frag_store, f, k.constant(loaded.type, 1), (0, 1, 2, 3)))
        keep(k, loaded)
        yield k


@kernels
def vectors() -> Iterator[Kernel]:
    for elem in (F32, F16, BF16, I32, U16, E4M3):
        k = Kernel(f"vectors_{elem}", a=pointer(elem), b=elem)
        v, w = k.load(k.a, 6), k.load(k.at(k.a, 16, 16), 6)
        named = k.emit("add", (v, w), (v.type,), {}, hint="total").result
        keep(k, named)
        keep(k, k.build([k.b, k.extract(v, 2), k.constant(elem, 1)]))
        keep(k, k.emit("mul", (k.splat(k.emit("add", (k.b, k.b), (elem,)).result, 6), v), (v.type,)).result)
        for indices in ((5, 4, 3, 2, 1, 0), (0, 2, 4), (0, 0), (1, 5, 2), (3,)):
            keep(k, k.shuffle(v, indices))
            keep(
                k,
                k.emit(
                    "vec.shuffle", (k.constant(v.type, 2),), (VecType(elem, len(indices)),), {"indices": indices}
                ).result,
            )
        keep(k, k.concat([v, k.b, w]))
        keep(k, k.concat([k.b, k.emit("add", (v, w), (v.type,)).result]))
        long = v
        for _ in range(14):  # longer than is printed as one expression
            long = k.emit("add", (long, w), (v.type,)).result
        keep(k, long)
        for kind in ("add", "mul", "max", "min"):
            for groups in (
                ((0, 1, 2, 3, 4, 5),),
                ((1, 2, 3),),
                ((0, 2, 4),),
                ((3,),),
                ((0, 1, 2), (3, 4, 5)),
                ((0, 5, 1), (2, 4, 3)),
            ):
                keep(k, k.reduce(v, kind, groups))
                keep(k, k.reduce(v, kind, groups, k.b))
            keep(k, k.reduce(k.emit("add", (v, w), (v.type,)).result, kind, ((0, 1, 2, 3, 4, 5),)))
        yield k
    k = Kernel("bits", a=pointer(U8), n=U32, w=U64)
    flags = k.emit("lt", (k.load(k.a, 8), k.load(k.at(k.a, 16, 16), 8)), (VecType(BOOL, 8),)).result
    keep(k, k.bitcast(flags, U8))
    for source in (k.n, k.w):
        keep(k, k.bitcast(source, VecType(BOOL, source.type.width)))
    keep(k, k.bitcast(k.bitcast(k.w, VecType(BOOL, 64)), VecType(U8, 8)))
    keep(k, k.bitcast(k.load(k.a, 2), VecType(BOOL, 16)))
    yield k


@kernels
def control() -> Iterator[Kernel]:
    k = Kernel("loops", n=I32, m=I32, v=pointer(F32))
    for step in (1, -1, 2, -3, None):
        stride = k.m if step is None else k.number(step)
        for unroll in ({}, {"unroll": 1}, {"unroll": 4}, {"unroll": "full"}):
            found = loop(
                k,
                k.number(0),
                k.binary("add", k.n, k.m),
                stride,
                [k.n],
                lambda i, x: (k.binary("add", x, i),),
                **unroll,
            )
            keep(k, found[0])
    a, b, c = loop(k, k.n, k.m, k.number(1), [k.n, k.m, k.number(3)], lambda i, a, b, c: (b, a, c))
    keep(k, k.binary("sub", k.binary("add", a, b), c))
    first, second = k.load(k.v, 4), k.load(k.at(k.v, 4), 4)
    sums = loop(
        k,
        k.n,
        k.m,
        k.number(1),
        [first, second],
        lambda i, x, y: (k.emit("add", (x, y), (x.type,)).result, k.emit("mul", (x, x), (x.type,)).result),
    )
    keep(k, sums[0])
    keep(k, sums[1])
    yield k
    k = Kernel("branches", n=I32, m=I32)
    small = k.compare("lt", k.n, k.m)

    def some() -> Any:
        return k.binary("add", k.n, k.m), k.n, k.number(2)

    for other in (lambda: (k.m, k.n, k.number(2)), lambda: (k.n, k.m, k.number(3)), some):
        for used in (0, 1, 2):
            keep(k, branch(k, small, some, other)[used])

    def store() -> None:
        keep(k, k.n)

    for then, other in ((store, lambda: None), (lambda: None, store), (store, store), (lambda: None, lambda: None)):
        branch(k, small, then, other)
    branch(k, k.emit("or", (small, k.compare("eq", k.n, k.m)), (BOOL,)).result, lambda: None, store)
    branch(k, small, lambda: branch(k, k.compare("eq", k.n, k.m), store) and None)
    yield k
    k = Kernel("while_loops", n=I32, m=I32, p=pointer(I32))
    for loads in (False, True):
        for passes in (False, True):
            before, after = Block([Value(I32), Value(I32, "y")]), Block([Value(I32), Value(I32)])
            with k.inside(before):
                x, y = before.args
                test = k.compare("lt", k.load(k.at(k.p, x)) if loads else x, k.m)
                k.emit("condition", (test, x, y if passes else k.binary("add", x, y)))
            with k.inside(after):
                x, y = after.args
                k.end(k.binary("add", x, k.number(1)), x)
            for result in k.emit("while", (k.n, k.m), (I32, I32), {}, [before, after]).results:
                keep(k, result)
    yield k


@kernels
def messages() -> Iterator[Kernel]:
    for elem in NUMBERS:
        k = Kernel(f"prints_{elem}", a=elem, v=holder(elem))
        kinds = ["", "d", "x", "5d", "o", "c", "u"] if elem.is_integer else ["", ".3f", "e", "g", "+.2f"]
        for kind in kinds:
            k.emit("printf", (k.a,), (), {"format": f"a = {{:{kind}}}\n"})
        for kind in ("%d", "%u", "%lld", "%x", "%c", "%f", "%.3e", "%-5d", "%%%d {{}}"):
            k.emit("printf", (k.a,), (), {"format": kind})
        if elem.width >= 8:
            k.emit("printf", (k.load(k.v, 3), k.v), (), {"format": "{} at {}"})
        yield k
    k = Kernel("checks", a=I32)
    for message in ("plain", 'a "quoted"\t\\ line\n', "ünï \x01", ""):
        k.emit("assert", (k.compare("lt", k.a, k.number(3)),), (), {"message": message})
    k.emit("assert", (k.compare("lt", k.a, k.number(3)),), (), {"message": "simulated", "simulated": True})
    yield k


@kernels
def heads() -> Iterator[Kernel]:
    """Launch bounds, clusters, parameters of every kind, and a head that is too long for one line."""
    for i, attrs in enumerate(
        (
            {},
            {"max_threads": 96},
            {"max_threads": 96, "min_blocks": 3},
            {"min_blocks": 3},
            {"cluster": (1, 1, 1)},
            {"cluster": (2, 1, 4), "max_threads": 32},
        )
    ):
        k = Kernel(f"head_{i}", dict(attrs), x=pointer(I32))
        k.store(k.x, k.number(i))
        yield k
    for length in range(20, 29):
        k = Kernel("n" * length, {"max_threads": 64}, first=pointer(I32), second=pointer(F64), third=I64)
        k.store(k.first, k.number(1))
        yield k
    kinds = {f"p{i}": kind for i, kind in enumerate((*TYPES, VecType(U64, 16), VecType(I32, 3), pointer(F16)))}
    k = Kernel("parameters", **kinds)
    for value in list(k.args.values())[: len(TYPES)]:
        keep(k, value)
    keep(k, k.emit("vec.extract", (k.args[f"p{len(TYPES) + 1}"],), (I32,), {"index": 1}).result)
    yield k


@kernels
def drawn() -> Iterator[Kernel]:
    """Random expressions: names, values that are used once or often, in this block or in another."""
    for seed in range(12):
        draw = random.Random(seed)
        elem = draw.choice([I32, F32, U16, I64, F16, U32])
        k = Kernel(f"drawn_{seed}", a=elem, b=elem, p=pointer(elem))
        scalars, vectors = [k.a, k.b], [k.load(k.p, 4), k.load(k.at(k.p, 16, 16), 4)]
        for _ in range(40):
            values = draw.choice((scalars, scalars, vectors))
            opcode = draw.choice(["add", "sub", "mul", "min", "neg", "div"])
            operands = [draw.choice(values[-4:]) for _ in range(TABLE[opcode].operands)]
            wraps = {"wraps": True} if elem.is_integer and draw.random() < 0.3 else {}
            hint = draw.choice([None, None, "x", "total"])
            values.append(k.emit(opcode, operands, (operands[0].type,), wraps, hint=hint).result)
            if draw.random() < 0.15:
                small = k.compare("lt", draw.choice(scalars), k.a)
                branch(k, small, partial(keep, k, draw.choice(scalars + vectors)))
        keep(k, scalars[-1])
        keep(k, vectors[-1])
        yield k


def text_of(k: Kernel) -> str:
    try:
        lines = k.text.splitlines()[2:]
    except CompileError as refused:
        return f"{k.top.name}: {refused}"
    return "\n".join(lines)


def texts() -> dict[str, str]:
    return {k.top.name: text_of(k) for make in MAKERS for k in make()}


if __name__ == "__main__":
    kept.write(FILE, texts())
