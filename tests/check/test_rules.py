"""The rules of single checkers by themselves: integers that wrap, undefined operands and registers, records."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.ir.core import Constant, Location, Op, Value
from tilewright.ir.types import BOOL, F16, F32, F64, I16, I32, I64, U8, U32, U64, ScalarType, VecType
from tilewright.sim.checks.arithmetic import _wrong
from tilewright.sim.checks.findings import Actor
from tilewright.sim.checks.initialised import maybe_unwritten
from tilewright.sim.checks.kinds import may_overflow, polling_reads
from tilewright.sim.checks.places import MemoryPlace
from tilewright.sim.checks.records import AccessRecord
from tilewright.sim.checks.shadow import NEVER, OTHERS
from tilewright.sim.checks.taint import ORIGIN, rule_of
from tilewright.sim.checks.undefined import Origin, finding_of
from tilewright.sim.checks.unguarded import unguarded
from tilewright.sim.empty_arrays import EmptyArray

EXACT: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "abs": abs,
    "shl": operator.lshift,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "floordiv": operator.floordiv,
}


def numbers(elem: ScalarType) -> list[int]:
    low, high = int(np.iinfo(elem.dtype).min), int(np.iinfo(elem.dtype).max)
    root = 1 << elem.width // 2
    return [low, low + 1, -root, -root + 1, -3, -1, 0, 1, 2, 5, root - 1, root, root + 1, high // 2 + 1, high - 1, high]


def op_of(opcode: str, result: Any, *operands: Any, **attrs: Any) -> Op:
    op = Op(opcode, [x if isinstance(x, Value | Constant) else Value(x) for x in operands], [], attrs, [], None)
    op.results = [Value(result, None, op)]
    return op


@pytest.mark.parametrize("elem", [I32, I64], ids=str)
@pytest.mark.parametrize("opcode", EXACT)
def test_overflow_rule_finds_exactly_the_results_that_wrap(opcode: str, elem: ScalarType) -> None:
    """Every pair of numbers near the ends of their type, against integers without an end."""
    binary = opcode not in ("neg", "abs")
    distances = [-(1 << 31), -1, 0, 1, elem.width // 2, elem.width - 1, elem.width, elem.width + 1, 1 << 30]
    others = distances if opcode == "shl" else numbers(elem) if binary else [0]
    rows = [(a, b) for a in numbers(elem) for b in others if b or opcode not in ("div", "floordiv")]
    a, b = (np.array(x, elem.dtype) for x in zip(*rows, strict=True))
    low, high = int(np.iinfo(elem.dtype).min), int(np.iinfo(elem.dtype).max)
    exact, bad = [], []
    for x, y in rows:
        outside = opcode == "shl" and not 0 <= y < elem.width
        exact.append(0 if outside else EXACT[opcode](x, y) if binary else EXACT[opcode](x))
        bad.append(outside or opcode != "shl" and not low <= exact[-1] <= high)  # the bits that a shift drops are meant
    wrapped = [n & (1 << elem.width) - 1 for n in exact]
    result = np.array(wrapped, np.dtype(f"u{elem.bytes}")).view(elem.dtype)
    op = op_of(opcode, elem, *[elem] * (1 + binary), wraps=True)
    assert np.broadcast_to(_wrong(op, [a, b][: 1 + binary], result), len(rows)).tolist() == bad


@pytest.mark.parametrize("to", [I16, I32, I64, U8, U32, U64], ids=str)
def test_floats_that_no_integer_holds(to: ScalarType) -> None:
    low, high = int(np.iinfo(to.dtype).min), int(np.iinfo(to.dtype).max)
    given = [
        0.0,
        0.5,
        -0.5,
        -1.0,
        127.0,
        300.0,
        float(low),
        float(high + 1),
        float(low) * 2 - 2.0,
        np.inf,
        -np.inf,
        np.nan,
    ]
    given += [np.nextafter(float(high + 1), 0.0), 2.0**31, 2.0**32, 2.0**63, -(2.0**31) - 0.5, -(2.0**31) - 1.0]
    bad = [not (abs(x) < np.inf and low <= int(x) <= high) for x in given]
    assert _wrong(op_of("cast", to, F64), [np.array(given)], np.zeros(len(given))).tolist() == bad


@pytest.mark.parametrize(
    ("op", "looked_at"),
    [
        *[
            (op_of(opcode, elem, elem, elem, wraps=wraps), wraps and elem in (I32, I64))
            for opcode in ("add", "sub", "mul")
            for elem in (I16, I32, I64, U32, F32)
            for wraps in (True, False)
        ],
        *[
            (op_of(opcode, elem, elem, elem), elem in (I32, I64))
            for opcode in ("div", "floordiv")
            for elem in (I32, I64, U32, F32)
        ],
        *[(op_of(opcode, I32, I32, Constant(I32, n)), n == -1) for opcode in ("div", "floordiv") for n in (-1, 1, 3)],
        *[(op_of("abs", elem, elem), elem in (I32, I64)) for elem in (I32, I64, F32)],
        *[
            (op_of(opcode, elem, elem, elem, wraps=wraps), wraps)
            for opcode in ("shl", "shr")
            for elem in (I32, I64, U32)
            for wraps in (True, False)
        ],
        *[
            (op_of("cast", to, source), source.is_float and to in (I32, U8))
            for source in (F16, F32, I64)
            for to in (I32, U8, BOOL, F64)
        ],
        (op_of("and", I32, I32, I32, wraps=True), False),
        (op_of("min", I32, I32, I32, wraps=True), False),
    ],
    ids=lambda x: str(x) if isinstance(x, Op) else None,
)
def test_operations_that_can_wrap(op: Op, looked_at: bool) -> None:
    assert may_overflow(op) == looked_at


# -- undefined values --------------------------------------------------------------------------------------------------

LANES = 6


def drawn(draw: random.Random, n: int | None) -> Any:
    """The origins of a register of one or ``n`` elements; None: all defined."""
    if draw.random() < 0.25:
        return None
    shape = LANES if n is None else (LANES, n)
    return np.array([draw.choice([0, 0, 3, 7]) for _ in range(int(np.prod(shape)))], ORIGIN).reshape(shape)


def plain(origins: Any, n: int | None) -> list[list[int]]:
    return np.zeros((LANES, n or 1), int).tolist() if origins is None else origins.reshape(LANES, -1).tolist()


def result(op: Op, found: list[Any], values: list[Any], n: int | None) -> list[list[int]]:
    given = rule_of(op)(op, found, values, LANES)
    assert given is None or given.shape == ((LANES,) if n is None else (LANES, n))
    return plain(given, n)


def vector(elem: ScalarType, n: int | None) -> Any:
    return elem if n is None else VecType(elem, n)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [None, 2, 4])
@pytest.mark.parametrize("opcode", ["and", "or", "select", "add"])
def test_undefined_operands_element_by_element(opcode: str, n: int | None, seed: int) -> None:
    draw = random.Random(f"{opcode} {n} {seed}")
    elem = draw.choice([BOOL, I32]) if opcode in ("and", "or") else I32
    kind = vector(elem, n)
    shape = LANES if n is None else (LANES, n)
    count = int(np.prod(shape))
    ends = [0, 1] if elem == BOOL else [0, -1, 5]
    values = [np.array(draw.choices(ends, k=count)).astype(elem.dtype).reshape(shape) for _ in range(2)]
    found = [drawn(draw, n), drawn(draw, n)]
    first, second = (plain(origins, n) for origins in found)
    if opcode == "select":
        wide = n is not None and draw.random() < 0.5
        cond = drawn(draw, n if wide else None)
        which = np.array(draw.choices([True, False], k=count if wide else LANES)).reshape(shape if wide else LANES)
        got = result(
            op_of("select", kind, vector(BOOL, n if wide else None), kind, kind), [cond, *found], [which, *values], n
        )
        asked = plain(cond, n if wide else None)
        for lane in range(LANES):
            for k in range(n or 1):
                chosen = first if which.reshape(LANES, -1)[lane][k if wide else 0] else second
                assert got[lane][k] == max(asked[lane][k if wide else 0], chosen[lane][k])
        return
    got = result(op_of(opcode, kind, kind, kind), found, values, n)
    decisive = {"and": 0, "or": 1 if elem == BOOL else -1}.get(opcode)
    a, b = (v.reshape(LANES, -1) for v in values)
    for lane in range(LANES):
        for k in range(n or 1):
            x, y = first[lane][k], second[lane][k]
            decided = decisive is not None and (
                (not x and a[lane, k] == decisive) or (not y and b[lane, k] == decisive)
            )
            assert got[lane][k] == (0 if decided else max(x, y))


@pytest.mark.parametrize("seed", range(8))
def test_undefined_elements_keep_their_places(seed: int) -> None:
    draw = random.Random(seed)
    four, two, one = drawn(draw, 4), drawn(draw, 2), drawn(draw, None)
    of_four, of_two, of_one = plain(four, 4), plain(two, 2), plain(one, None)
    v4, v2 = VecType(I32, 4), VecType(I32, 2)
    zeros = np.zeros(LANES, np.int32)

    def expect(op: Op, found: list[Any], n: int | None, want: Callable[[int], list[int]], values: Any = None) -> None:
        got = result(op, found, values or [zeros] * len(found), n)
        assert got == [want(lane) for lane in range(LANES)], op

    build = op_of("vec.build", VecType(I32, 3), I32, v2)
    expect(build, [one, two], 3, lambda lane: of_one[lane] + of_two[lane])
    expect(op_of("vec.concat", VecType(I32, 6), v2, v4), [two, four], 6, lambda lane: of_two[lane] + of_four[lane])
    expect(op_of("vec.splat", v4, I32), [one], 4, lambda lane: of_one[lane] * 4)
    expect(op_of("vec.extract", I32, v4, index=2), [four], None, lambda lane: [of_four[lane][2]])
    expect(op_of("vec.shuffle", v2, v4, indices=(3, 1)), [four], 2, lambda lane: [of_four[lane][3], of_four[lane][1]])
    groups = op_of("vec.reduce", v2, v4, groups=((0, 2), (1, 3)))
    expect(groups, [four], 2, lambda lane: [max(of_four[lane][::2]), max(of_four[lane][1::2])])
    whole = op_of("vec.reduce", I32, v4, I32, groups=((0, 1, 2, 3),))
    expect(whole, [four, one], None, lambda lane: [max(of_four[lane] + of_one[lane])])
    expect(op_of("bitcast", I64, v2), [two], None, lambda lane: [max(of_two[lane])])
    expect(op_of("bitcast", v2, I64), [one], 2, lambda lane: of_one[lane] * 2)
    halves = [max(pair) for pair in zip(of_four[0][::2], of_four[0][1::2], strict=True)]
    assert result(op_of("bitcast", VecType(I64, 2), v4), [four], [zeros], 2)[0] == halves
    # fragments: at places that are known, and at ones that a register holds
    index = np.array([draw.randrange(3) for _ in range(LANES)])
    for offsets, kind, n in (((1,), I32, None), ((0, 1), v2, 2)):
        known = op_of("frag.load", kind, v4, offsets=offsets)
        expect(known, [four], n, lambda lane, at=offsets: [of_four[lane][i] for i in at])
        op = op_of("frag.load", kind, v4, I32, offsets=offsets)
        place = [zeros, index]
        expect(op, [four, None], n, lambda lane, at=offsets: [of_four[lane][index[lane] + i] for i in at], place)
        if one is not None:  # an undefined index makes every element undefined
            expect(op, [four, one], n, lambda lane, at=offsets: [of_one[lane][0]] * len(at), place)


# -- registers that may be read before they are written ----------------------------------------------------------------


@cute.jit
def fill(r: cute.Tensor, x: cute.Tensor, which: cutlass.Constexpr = (0, 1, 2, 3)):
    for i in cutlass.range_constexpr(len(which)):
        r[which[i]] = x[which[i]]


@cute.jit
def in_one_branch(r: cute.Tensor, x: cute.Tensor, n: cutlass.Int32):
    if n > 1:
        fill(r, x)


@cute.jit
def in_both_branches(r: cute.Tensor, x: cute.Tensor, n: cutlass.Int32, first: cutlass.Constexpr = (0, 1)):
    if n > 1:
        fill(r, x, first)
    else:
        fill(r, x, (0, 1, 2))
    fill(r, x, (2, 3))


@cute.jit
def in_turns_of(r: cute.Tensor, x: cute.Tensor, begin: Any, end: Any, step: cutlass.Constexpr = 1):
    for _ in cutlass.range(begin, end, step):
        fill(r, x)


@cute.jit
def while_it_is_small(r: cute.Tensor, x: cute.Tensor, n: cutlass.Int32):
    while n < 3:
        fill(r, x)
        n += 1


@cute.jit
def at_run_time_places(r: cute.Tensor, x: cute.Tensor, n: cutlass.Int32):
    for i in cutlass.range(n):
        r[i] = x[i]


@pytest.mark.parametrize(
    ("write", "doubts"),
    [
        (lambda r, x, n: None, True),
        (lambda r, x, n: fill(r, x), False),
        (lambda r, x, n: r.fill(0.0), False),
        (lambda r, x, n: fill(r, x, (0, 1, 3)), True),
        (in_one_branch, True),
        (in_both_branches, False),
        (lambda r, x, n: in_both_branches(r, x, n, (0, 2)), True),
        (while_it_is_small, True),
        (at_run_time_places, True),
        (lambda r, x, n: in_turns_of(r, x, 0, n), True),
        (lambda r, x, n: in_turns_of(r, x, 0, 1), False),
        (lambda r, x, n: in_turns_of(r, x, 0, 0), True),
        (lambda r, x, n: in_turns_of(r, x, 1, 0, -1), False),
        (lambda r, x, n: in_turns_of(r, x, 0, 0, -1), True),
        (lambda r, x, n: in_turns_of(r, x, 0, 1, -1), True),
    ],
)
def test_registers_watched_for_taint(write: Callable[..., None], doubts: bool) -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        t, _, _ = cute.arch.thread_idx()
        r = cute.make_rmem_tensor(4, cute.Float32)
        write(r, x, n)
        y[t] = r[0] + r[1] + r[2] + r[3]

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        kernel(x, y, n).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = np.zeros(32, np.float32)
    (function,) = cute.compile(host, x, x.copy(), 3).kernels
    assert [op.opcode for op in maybe_unwritten(function)] == ["frag.alloc"] * doubts


@pytest.mark.parametrize("where", [None, Location("user.py", 7)])
def test_finding_names_the_line_that_made_an_uninitialised_array(where: Location | None) -> None:
    op = op_of("add", I32, I32, I32)
    memory = MemoryPlace("global", 4, 4096, "x[0]")
    origin = Origin(op_of("load", I32), memory, EmptyArray(4096, 8192, 4, "numpy.empty", where))
    finding = finding_of("address", op, Actor((0, 0, 0), 0, 0), origin, 2)
    assert [party.does for party in finding.parties[2:]] == ["made uninitialised by numpy.empty"] * (where is not None)
    assert all(party.op is not None or party.at is where for party in finding.parties) and finding.count == 2
    assert len(finding_of("address", op, Actor((0, 0, 0), 0, 0), Origin(origin.op, memory), 2).parties) == 2


# -- what is noted of accesses to shared memory ------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [False, True])
def test_a_record_stands_for_all_accesses_that_it_took(asked: bool) -> None:
    """Whether it was asked for before it took the last one, or not."""

    def acting(clock: int) -> Any:
        needs = np.array([clock, 0])
        return SimpleNamespace(kind=OTHERS, newest=NEVER, floors=(0, 0), listed=True, now=needs, needs=needs)

    def asking(clock: int) -> Any:
        def know(needs: np.ndarray) -> bool:
            return bool((needs <= clock).all())

        return SimpleNamespace(floors=(0, 0), snapshot=None, listed=True, know=know)

    reach = SimpleNamespace(low=0, high=64, blocks=1, bytes=64)
    first, later = acting(3), acting(5)
    record = AccessRecord(reach, True, first, [(reach, 0, first)], None)
    if asked:
        assert record.happened_before(asking(3)) and not record.happened_before(asking(2))
    record.join(reach, (reach, 0, later), later)
    assert [record.happened_before(asking(clock)) for clock in (3, 4, 5)] == [False, False, True]


# -- what a block waits with -------------------------------------------------------------------------------------------


def count_of(p: Any) -> Any:
    return cute.arch.load(p, sem="acquire", scope="gpu")


@pytest.mark.parametrize(
    ("ask", "polls"),
    [
        (count_of, True),
        (lambda p: cute.arch.load(p, sem="relaxed", scope="gpu"), True),
        (lambda p: cute.make_tensor(p, 1)[0], True),
        *[
            (
                lambda p, name=name, n=n: getattr(cute.arch, f"atomic_{name}")(p, cutlass.Int32(n)),
                name in ("add", "or", "xor") and n == 0,
            )
            for name in ("add", "or", "xor", "and", "max", "min", "exch")
            for n in (0, 1)
        ],
        (lambda p: cute.arch.atomic_cas(p, cmp=cutlass.Int32(0), val=cutlass.Int32(0)), False),
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_reads_of_loops_that_change_nothing_are_polls(ask: Callable[..., Any], polls: bool, inside: bool) -> None:
    """What waits for others in a loop: loads, and atomics that leave the number as it is."""

    @cute.kernel
    def kernel(flags: cute.Tensor, y: cute.Tensor):
        found = cutlass.Int32(0)
        if cutlass.const_expr(inside):
            while found < 1:
                found = ask(flags.iterator)
        else:
            found = ask(flags.iterator)
        y[0] = found

    @cute.jit
    def host(flags: cute.Tensor, y: cute.Tensor):
        kernel(flags, y).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = np.zeros(32, np.int32)
    (function,) = cute.compile(host, x, x.copy()).kernels
    assert len(polling_reads(list(function.walk()))) == (polls and inside)


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("use", "watched"),
    [
        ("predicates", False),
        ("branch", False),
        ("chosen", False),
        ("store", True),
        ("shuffle", True),
        ("loop", True),
        ("decision", True),
    ],
)
def test_registers_that_some_path_leaves_out_are_watched_where_they_leave_the_thread(use: str, watched: bool) -> None:
    """Watching costs time: stores under the same condition, as elementwise kernels have them, need none."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        t, _, _ = cute.arch.thread_idx()
        r, out, inside = (cute.make_rmem_tensor(1, kind) for kind in (x.element_type, x.element_type, cutlass.Boolean))
        inside[0] = t < n
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
        part = cute.make_layout(1)
        cute.copy(atom, cute.make_tensor(x.iterator + t, part), r, pred=inside)
        total = r[0] * 2
        if cutlass.const_expr(use == "loop"):
            for _ in cutlass.range(n):
                total = total + r[0]
        if cutlass.const_expr(use == "shuffle"):
            total = cute.arch.warp_reduction_sum(total)
        if cutlass.const_expr(use == "chosen"):
            total = cute.where(t < n, total, 0.0)
        out[0] = total
        there = cute.make_tensor(y.iterator + t, part)
        if cutlass.const_expr(use in ("predicates", "shuffle")):
            cute.copy(atom, out, there, pred=inside)
        elif cutlass.const_expr(use == "branch"):
            if t < n:
                y[t] = out[0]
        elif cutlass.const_expr(use == "decision"):
            if total > 0:
                y[t] = 1.0
        else:
            cute.copy(atom, out, there)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        kernel(x, y, n).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = np.zeros(32, np.float32)
    (function,) = cute.compile(host, x, x.copy(), 5).kernels
    found = unguarded(function)
    assert bool(found) == watched and found <= maybe_unwritten(function)
