"""What printed kernels compute: operations, vectors, fragments, control flow.

They are executed on the host (compiled by g++) and, where there is one, on a GPU.

Vectors here; each operation on scalars of each type, with special values, is tests/ir/test_conformance.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.cuda.build import Kernel, pointer, run_on_gpu, run_on_host
from tilewright.ir.core import Block, Location, Value
from tilewright.ir.types import (
    BF16,
    BOOL,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    TF32,
    U8,
    U16,
    U32,
    U64,
    ScalarType,
    VecType,
)

INTEGERS = (I8, I16, I32, I64, U8, U16, U32, U64)
FLOATS = (F16, BF16, F32, F64, E4M3, E5M2)
COUNT = 64
execute: Callable[..., None] = run_on_host


@pytest.fixture(autouse=True, params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernels of a test run."""
    monkeypatch.setitem(globals(), "execute", run_on_gpu if request.param == "gpu" else run_on_host)


def inputs(elem: ScalarType, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    if elem.is_float:
        a, b = rng.normal(0, 4, COUNT), rng.normal(0, 4, COUNT)
        b[np.abs(b) < 0.25] = 1.0
        a[:4], b[:4] = (0.0, -1.5, 2.5, 6.0), (1.0, 2.0, -2.0, 3.0)
        return a.astype(elem.dtype), b.astype(elem.dtype)
    low = 0 if elem.kind == "uint" else -11
    a, b = rng.integers(low, 12, COUNT), rng.integers(low, 12, COUNT)
    b[b == 0] = 3
    return a.astype(elem.dtype), b.astype(elem.dtype)


Case = tuple[str, int, ScalarType]  # opcode, number of operands, element type of the result


def apply(elem: ScalarType, cases: list[Case], vector: int = 0) -> Kernel:
    """One kernel: for each case ``out_i[t] = opcode(a[t], b[t])`` as scalars, or ``vector`` elements a thread."""
    outs = {f"out{i}": pointer(result) for i, (_, _, result) in enumerate(cases)}
    k = Kernel("apply", a=pointer(elem), b=pointer(elem), **outs)
    t = k.sreg("tid.x")
    at = k.binary("mul", t, k.number(vector)) if vector else t
    align = 16 if vector * elem.bytes % 16 == 0 else elem.bytes
    values = [k.load(k.at(p, at, align), vector or None) for p in (k.a, k.b)]
    for i, (opcode, arity, result) in enumerate(cases):
        value = k.emit(opcode, values[:arity], (VecType(result, vector) if vector else result,)).result
        k.store(k.at(k.args[f"out{i}"], at, result.bytes), value)
    return k


def results(elem: ScalarType, cases: list[Case], a: np.ndarray, b: np.ndarray, vector: int = 0) -> list[np.ndarray]:
    """What each case computes on the host, in order."""
    outs = [np.zeros(COUNT, result.dtype) for _, _, result in cases]
    execute(apply(elem, cases, vector).done(), (a, b, *outs), block=COUNT // (vector or 1))
    return outs


def run(k: Kernel, *arrays: np.ndarray, threads: int = COUNT) -> None:
    execute(k.done(), arrays, block=threads)


def rounded(elem: ScalarType, x: np.ndarray) -> np.ndarray:
    """Float64 numbers as ``elem`` has them; the 8-bit floats saturate."""
    if elem in (E4M3, E5M2):
        largest = 448.0 if elem == E4M3 else 57344.0
        x = np.clip(x.astype(np.float32), -largest, largest)
    with np.errstate(invalid="ignore"):
        return x.astype(elem.dtype)


BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("elem", FLOATS, ids=str)
def test_float_binary(elem: ScalarType, vector: int = 8) -> None:
    a, b = inputs(elem)
    oracles = BINARY | {"div": np.divide, "floordiv": np.floor_divide, "floormod": np.mod, "rem": np.fmod}
    outs = results(elem, [(opcode, 2, elem) for opcode in oracles], a, b, vector)
    wide = np.float64 if elem == F64 else np.float32
    for (opcode, oracle), out in zip(oracles.items(), outs, strict=True):
        want = rounded(elem, oracle(a.astype(wide), b.astype(wide)))
        np.testing.assert_array_equal(out.astype(wide), want.astype(wide), err_msg=opcode)


@pytest.mark.parametrize("elem", INTEGERS, ids=str)
def test_integer_binary(elem: ScalarType) -> None:
    a, b = inputs(elem)
    shift = np.abs(b.astype(np.int64) % 5).astype(elem.dtype)
    mask = (1 << elem.width) - 1
    oracles = {
        **BINARY,
        "div": lambda p, q: int(p / q),
        "rem": lambda p, q: p - int(p / q) * q,
        "floordiv": lambda p, q: p // q,
        "floormod": lambda p, q: p % q,
        "and": lambda p, q: p & q,
        "or": lambda p, q: p | q,
        "xor": lambda p, q: p ^ q,
        "min": min,
        "max": max,
    }
    for second, table in ((b, oracles), (shift, {"shl": lambda p, q: p << q, "shr": lambda p, q: p >> q})):
        outs = results(elem, [(opcode, 2, elem) for opcode in table], a, second)
        for (opcode, oracle), out in zip(table.items(), outs, strict=True):
            want = [oracle(int(p), int(q)) & mask for p, q in zip(a, second, strict=True)]
            assert [int(v) & mask for v in out] == want, opcode


@pytest.mark.parametrize("divisor", (1, 2, 8, 3, -4))
def test_floor_division_by_a_constant(divisor: int) -> None:
    k = Kernel("divide", out=pointer(I32))
    n = k.binary("sub", k.sreg("tid.x"), k.number(20))
    k.store(k.at(k.out, k.sreg("tid.x")), k.binary("floordiv", n, k.number(divisor)))
    k.store(k.at(k.out, k.binary("add", k.sreg("tid.x"), k.number(40))), k.binary("floormod", n, k.number(divisor)))
    out = np.zeros(80, np.int32)
    run(k, out, threads=40)
    numbers = np.arange(40) - 20
    np.testing.assert_array_equal(out, np.concatenate([numbers // divisor, numbers % divisor]))


@pytest.mark.parametrize("elem", (I32, U8, I64, F32, F16, BF16, E4M3), ids=str)
def test_comparisons(elem: ScalarType, vector: int = 4) -> None:
    a, b = inputs(elem)
    b[::3] = a[::3]
    oracles = {
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "eq": np.equal,
        "ne": np.not_equal,
    }
    outs = results(elem, [(opcode, 2, BOOL) for opcode in oracles], a, b, vector)
    for (opcode, oracle), out in zip(oracles.items(), outs, strict=True):
        np.testing.assert_array_equal(out, oracle(a.astype(np.float64), b.astype(np.float64)), err_msg=opcode)


@pytest.mark.parametrize("elem", (I32, I8, U16, F32, F64, F16, BF16), ids=str)
def test_sign(elem: ScalarType, vector: int = 8) -> None:
    a, b = inputs(elem)
    negative, absolute = results(elem, [("neg", 1, elem), ("abs", 1, elem)], a, b, vector)
    wide = np.float64 if elem.is_float else np.int64
    np.testing.assert_array_equal(negative, np.negative(a.astype(wide)).astype(elem.dtype))
    np.testing.assert_array_equal(absolute, np.abs(a.astype(wide)).astype(elem.dtype))


MATH = {
    "exp": np.exp,
    "exp2": np.exp2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
}
POSITIVE = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcp": np.reciprocal,
}


@pytest.mark.parametrize("elem", (F32, F64, F16, BF16), ids=str)
@pytest.mark.parametrize("table", (MATH, POSITIVE), ids=("any", "positive"))
def test_math(table: dict, elem: ScalarType) -> None:
    a, b = inputs(elem)
    if table is POSITIVE:
        a = (np.abs(a.astype(np.float64)) + 0.5).astype(elem.dtype)
    outs = results(elem, [(opcode, 1, elem) for opcode in table], a, b)
    tolerance = {F64: 1e-14, F32: 2e-6, F16: 1e-3, BF16: 8e-3}[elem]
    for (opcode, oracle), out in zip(table.items(), outs, strict=True):
        want = oracle(a.astype(np.float64))
        np.testing.assert_allclose(out.astype(np.float64), want, rtol=tolerance, atol=1e-7, err_msg=opcode)


@pytest.mark.parametrize("source", (I32, U8, I64, F32, F64, F16, BF16, E4M3, E5M2, BOOL), ids=str)
def test_cast(source: ScalarType, vector: int = 8) -> None:
    a, b = inputs(source) if source != BOOL else (np.arange(COUNT) % 3 == 0, np.zeros(COUNT, bool))
    a = a if source == BOOL else np.abs(a)  # negative floats have no unsigned form
    targets = (*INTEGERS, *FLOATS, TF32, BOOL)
    outs = results(source, [("cast", 1, to) for to in targets], a, b, vector)
    for to, out in zip(targets, outs, strict=True):
        if to == TF32:
            want = a.astype(np.float32).view(np.uint32)
            want = ((want + 0x1000) & 0xFFFFE000).view(np.float32)
        elif to.is_float:
            want = rounded(to, a.astype(np.float64 if source == F64 else np.float32))
        else:
            want = a.astype(np.float64).astype(to.dtype) if source.is_float else a.astype(to.dtype)
        np.testing.assert_array_equal(out, want, err_msg=str(to))


@pytest.mark.parametrize("elem", (E4M3, E5M2), ids=str)
@pytest.mark.parametrize("vector", (0, 4))
def test_every_half_as_eight_bits(elem: ScalarType, vector: int) -> None:
    """All f16 numbers become 8-bit floats (nearest even, saturating, NaN kept), and these become f32 and f16 again."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    k = Kernel("eight", None, x=pointer(F16), small=pointer(elem), f32=pointer(F32), f16=pointer(F16))
    at = k.binary("mul", k.global_index(), k.number(vector or 1))
    small = k.cast(k.cast(k.load(k.at(k.x, at, 2 * (vector or 1)), vector or None), F32), elem)
    k.store(k.at(k.small, at), small)
    k.store(k.at(k.f32, at), k.cast(small, F32))
    k.store(k.at(k.f16, at), k.cast(small, F16))
    outs = [np.zeros(1 << 16, t.dtype) for t in (elem, F32, F16)]
    execute(k.done(), (halves, *outs), block=256, grid=256 // (vector or 1))
    want = rounded(elem, halves.astype(np.float32)).astype(np.float32)
    for out in outs:
        np.testing.assert_array_equal(out.astype(np.float32), want)


def loop(
    k: Kernel, lo: Value, hi: Value, step: Value, init: list[Value], body, hint: str = "i", **attrs
) -> list[Value]:
    """``body(index, *carried)`` gives the next carried values."""
    block = Block([Value(I32, hint), *(Value(v.type) for v in init)])
    with k.inside(block):
        k.end(*body(*block.args))
    return k.emit("for", (lo, hi, step, *init), [v.type for v in init], attrs, [block]).results


def branch(k: Kernel, condition: Value, then, other=lambda: ()) -> list[Value]:
    blocks, types = [], []
    for side in (then, other):
        block = Block()
        with k.inside(block):
            values = tuple(side() or ())
            k.end(*values)
        types = [v.type for v in values]
        blocks.append(block)
    return k.emit("if", (condition,), types, {}, blocks).results


def test_carried_values_change_at_once() -> None:
    """Fibonacci: a, b = b, a + b; the new values must not see each other."""
    k = Kernel("fibonacci", out=pointer(I32))
    t = k.sreg("tid.x")
    a, b = loop(k, k.number(0), t, k.number(1), [k.number(0), k.number(1)], lambda i, a, b: (b, k.binary("add", a, b)))
    k.store(k.at(k.out, t), a)
    k.store(k.at(k.out, k.binary("add", t, k.number(20))), b)
    out = np.zeros(40, np.int32)
    run(k, out, threads=20)
    want = [0, 1]
    while len(want) < 21:
        want.append(want[-1] + want[-2])
    assert out.tolist() == want[:20] + want[1:21]


def test_carried_vectors_change_at_once() -> None:
    k = Kernel("swap", a=pointer(F32), b=pointer(F32), n=I32)
    x, y = k.load(k.a, 4), k.load(k.b, 4)
    x, y = loop(k, k.number(0), k.n, k.number(1), [x, y], lambda i, x, y: (y, k.binary("add", x, y)), unroll=1)
    k.store(k.a, x)
    k.store(k.b, y)
    a, b = np.arange(4, dtype=np.float32), np.full(4, 2, np.float32)
    want_x, want_y = a.copy(), b.copy()
    for _ in range(3):
        want_x, want_y = want_y, want_x + want_y
    execute(k.done(), (a, b, 3), block=1)
    np.testing.assert_array_equal((a, b), (want_x, want_y))


@pytest.mark.parametrize("lo, hi, step", ((0, 10, 1), (3, 20, 4), (10, 0, -1), (10, -3, -4), (5, 5, 1), (0, 10, -1)))
@pytest.mark.parametrize("dynamic", (False, True))
def test_ranges(lo: int, hi: int, step: int, dynamic: bool) -> None:
    k = Kernel("count", out=pointer(I32), step=I32)
    stride = k.step if dynamic else k.number(step)
    (total,) = loop(
        k,
        k.number(lo),
        k.number(hi),
        stride,
        [k.number(0)],
        lambda i, s: (k.binary("add", k.binary("mul", s, k.number(3)), i),),
    )
    k.store(k.out, total)
    out = np.zeros(1, np.int32)
    execute(k.done(), (out, step), block=1)
    want = 0
    for i in range(lo, hi, step):
        want = want * 3 + i
    assert out[0] == want


def test_branches_nested_in_loops() -> None:
    """Collatz steps below 100 by for + if with results and an empty side."""
    k = Kernel("collatz", out=pointer(I32))
    t = k.binary("add", k.sreg("tid.x"), k.number(1))

    def step(i: Value, n: Value, count: Value) -> tuple[Value, Value]:
        even = k.compare("eq", k.binary("and", n, k.number(1)), k.number(0))
        (after,) = branch(
            k,
            even,
            lambda: (k.binary("shr", n, k.number(1)),),
            lambda: (k.binary("add", k.binary("mul", n, k.number(3)), k.number(1)),),
        )
        done = k.compare("eq", n, k.number(1))
        after, count = branch(k, done, lambda: (n, count), lambda: (after, k.binary("add", count, k.number(1))))
        return after, count

    _, count = loop(k, k.number(0), k.number(200), k.number(1), [t, k.number(0)], step)
    branch(k, k.compare("lt", count, k.number(100)), lambda: k.store(k.at(k.out, k.sreg("tid.x")), count))
    out = np.full(40, -1, np.int32)
    run(k, out, threads=40)
    want = []
    for n in range(1, 41):
        steps = 0
        while n != 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        want.append(steps if steps < 100 else -1)
    assert out.tolist() == want


@pytest.mark.parametrize("handed_on", ("same", "computed", "swapped"))
def test_while(handed_on: str) -> None:
    """gcd by subtraction-free Euclid; the condition hands its values on unchanged, computed or exchanged."""
    k = Kernel("gcd", out=pointer(I32))
    t = k.sreg("tid.x")
    init = [k.binary("add", t, k.number(6)), k.number(12)]
    before, after = Block([Value(I32, "a"), Value(I32, "b")]), Block([Value(I32), Value(I32)])
    with k.inside(before):
        a, b = before.args
        going = k.compare("ne", b, k.number(0))
        extra = {"same": (a, b), "computed": (k.binary("add", a, k.number(0x100)), b), "swapped": (b, a)}[handed_on]
        k.emit("condition", (going, *extra))
    with k.inside(after):
        a, b = after.args
        if handed_on == "swapped":
            a, b = b, a
        if handed_on == "computed":
            a = k.binary("sub", a, k.number(0x100))
        k.end(b, k.binary("rem", a, b))
    x, y = k.emit("while", init, (I32, I32), {}, [before, after]).results
    k.store(k.at(k.out, t), k.binary("add", k.binary("mul", x, k.number(1000)), y))
    out = np.zeros(16, np.int32)
    run(k, out, threads=16)
    gcd = np.gcd(np.arange(16) + 6, 12)
    want = {"same": gcd * 1000, "computed": (gcd + 0x100) * 1000, "swapped": gcd}[handed_on]
    np.testing.assert_array_equal(out, want)


def test_while_with_work_in_its_condition() -> None:
    """The condition loads from memory: the loop prints as while (true) with a break."""
    k = Kernel("find", data=pointer(I32), out=pointer(I32))
    before, after = Block([Value(I32, "at")]), Block([Value(I32)])
    with k.inside(before):
        (at,) = before.args
        k.emit("condition", (k.compare("lt", k.load(k.at(k.data, at)), k.sreg("tid.x")), at))
    with k.inside(after):
        k.end(k.binary("add", after.args[0], k.number(1)))
    (found,) = k.emit("while", (k.number(0),), (I32,), {}, [before, after]).results
    k.store(k.at(k.out, k.sreg("tid.x")), found)
    data, out = np.array([0, 3, 3, 7, 40], np.int32), np.zeros(8, np.int32)
    run(k, data, out, threads=8)
    np.testing.assert_array_equal(out, np.searchsorted(data, np.arange(8)))
    assert "while (true)" in k.text and "break;" in k.text


def test_vectors_are_rearranged() -> None:
    k = Kernel("rearrange", a=pointer(I32), out=pointer(I32))
    v = k.load(k.a, 8)
    parts = [
        k.shuffle(v, [7, 6, 5, 4, 3, 2, 1, 0]),
        k.shuffle(v, [0, 2, 4, 6, 1, 3, 5, 7]),
        k.shuffle(v, [3, 1, 2, 0]),
        k.build([k.extract(v, 5), k.number(42)]),
        k.concat([v, k.extract(v, 2), k.shuffle(v, [1, 1])]),
        k.splat(k.extract(v, 6), 3),
        k.reduce(v, "add", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        k.reduce(v, "max", [[0, 4], [1, 5]], k.number(6)),
        k.build([k.reduce(v, "add", [range(8)], k.number(100)), k.reduce(v, "mul", [[1, 2, 3]])]),
    ]
    start = 0
    for part in parts:
        k.store(k.at(k.out, start, 4), part)
        start += part.type.n
    out = np.zeros(start, np.int32)
    run(k, np.arange(1, 9, dtype=np.int32), out, threads=1)
    want = [8, 7, 6, 5, 4, 3, 2, 1, 1, 3, 5, 7, 2, 4, 6, 8, 4, 2, 3, 1, 6, 42, *range(1, 9), 3, 2, 2, 7, 7, 7,
            3, 7, 11, 15, 6, 6, 136, 24]  # fmt: skip
    assert out.tolist() == want


@pytest.mark.parametrize("elem", (F32, F16), ids=str)
def test_fragments_keep_program_order(elem: ScalarType) -> None:
    """Vectors loaded from a fragment before it is written keep the old numbers, however late they are printed."""
    k = Kernel("order", a=pointer(elem), out=pointer(elem))
    f = k.frag_alloc(elem, 8, "regs")
    k.frag_store(f, k.load(k.a, 8), range(8))
    old = k.frag_load(f, range(8))
    turned = k.frag_load(f, [7, 6, 5, 4, 3, 2, 1, 0])
    k.frag_store(f, k.binary("add", k.frag_load(f, [1, 0, 3, 2, 5, 4, 7, 6]), k.frag_load(f, range(8))), range(8))
    inside = k.frag_load(f, range(8))

    def square(i: Value) -> tuple[()]:
        k.frag_store(f, k.binary("mul", k.frag_load(f, range(8)), k.frag_load(f, range(8))), range(8))
        return ()

    loop(k, k.number(0), k.number(2), k.number(1), [], square)
    parts = (old, turned, inside, k.frag_load(f, range(8)), k.frag_load(f, range(4), k.number(2)))
    for i, part in enumerate(parts):
        k.store(k.at(k.out, i * 8), part)
    a, out = np.arange(8).astype(elem.dtype), np.zeros(40, elem.dtype)
    run(k, a, out, threads=1)
    x = np.arange(8).astype(np.float64)
    inside_want = x + x[[1, 0, 3, 2, 5, 4, 7, 6]]
    final = inside_want**4
    want = np.concatenate([x, x[::-1], inside_want, final, final[2:6]])
    np.testing.assert_array_equal(out[:36].astype(np.float64), want.astype(elem.dtype).astype(np.float64))


def test_fragment_with_run_time_index() -> None:
    k = Kernel("table", out=pointer(I32))
    t = k.sreg("tid.x")
    f = k.frag_alloc(I32, 12, "table")
    loop(
        k,
        k.number(0),
        k.number(4),
        k.number(1),
        [],
        lambda i: k.frag_store(f, k.build([i, k.binary("mul", i, i)]), [0, 4], i) or (),
    )
    k.frag_store(f, k.number(-1), [8])
    k.store(k.at(k.out, t), k.binary("add", k.frag_load(f, [4], t, scalar=True), k.frag_load(f, [8], scalar=True)))
    out = np.zeros(4, np.int32)
    run(k, out, threads=4)
    assert out.tolist() == [-1, 0, 3, 8]


def test_bits() -> None:
    k = Kernel("bits", a=pointer(F32), out=pointer(U32), flags=pointer(U8))
    v = k.load(k.a, 4)
    k.store(k.out, k.bitcast(v, VecType(U32, 4)))
    k.store(k.at(k.out, 4), k.bitcast(k.extract(v, 1), U32))
    small = k.cast(k.shuffle(v, [0, 1]), F16)
    k.store(k.at(k.out, 5), k.bitcast(small, U32))
    mask = k.compare("gt", v, k.splat(k.constant(F32, 0.0), 4))
    k.store(k.flags, k.bitcast(k.concat([mask, mask]), U8))
    a = np.array([1.0, -2.0, 3.0, -4.0], np.float32)
    out, flags = np.zeros(6, np.uint32), np.zeros(1, np.uint8)
    run(k, a, out, flags, threads=1)
    assert out.tolist() == [*a.view(np.uint32).tolist(), 0xC0000000, 0xC0003C00]
    assert flags[0] == 0b01010101


def test_printf(capfd: pytest.CaptureFixture[str]) -> None:
    k = Kernel("talk", x=pointer(F16))
    h = k.load(k.x, 2)
    wide = k.cast(k.sreg("tid.x"), I64)
    operands = (k.sreg("tid.x"), k.extract(h, 0), wide, wide, h, k.constant(U32, 255))
    k.emit("printf", operands, (), {"format": "{} {:.2f} {:d} %5d {} 100%% {{}} %x\n"})
    execute(k.done(), (np.array([1.5, -2.0], np.float16),), block=2)
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == [f"{t} 1.50 {t}     {t} [1.500000, -2.000000] 100% {{}} ff" for t in range(2)]


def test_a_failed_assertion_names_line_and_thread(place: None, capfd: pytest.CaptureFixture[str]) -> None:
    if execute is run_on_gpu:
        pytest.skip("a failed assertion ends the process's use of the GPU; see test_gpu")
    k = Kernel("checked", out=pointer(I32))
    k.loc = Location("/user/kernel.py", 12)
    k.emit("assert", (k.compare("lt", k.sreg("tid.x"), k.number(3)),), (), {"message": "few threads"})
    run(k, np.zeros(1, np.int32), threads=4)
    assert capfd.readouterr().err == "/user/kernel.py:12: checked: thread: [3,0,0] Assertion `few threads` failed.\n"


@pytest.mark.parametrize("source", [F16, F32, F64], ids=str)
@pytest.mark.parametrize("vector", [0, 4])
def test_floats_beyond_narrow_integers_saturate(source: ScalarType, vector: int) -> None:
    """The machine converts to 32 bits: what 8 or 16 cannot hold must not be cut off. A NaN of f64 is the least."""
    edges = [0, -0.0, -1.5, 127.5, 128, 200, -200, 300, 40000, -40000, 70000, 3e9, -3e9, np.inf, -np.inf, np.nan]
    with np.errstate(over="ignore"):
        a = np.tile(np.array(edges), COUNT // len(edges)).astype(source.dtype)
    targets = (I8, I16, U8, U16)
    outs = results(source, [("cast", 1, to) for to in targets], a, a, vector)
    for out, to in zip(outs, targets, strict=True):
        low, high = np.iinfo(to.dtype).min, np.iinfo(to.dtype).max
        want = np.clip(np.trunc(np.nan_to_num(a.astype(np.float64), nan=low if source == F64 else 0)), low, high)
        assert np.array_equal(out, want.astype(to.dtype)), to
