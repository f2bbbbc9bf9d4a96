"""The table of arithmetic on every machine: each operation, on each type, with special values, against the oracle.

Folding, host code, the simulator, the printed CUDA C++ (run on the host where g++ is, and on a GPU where one is).
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.cuda.build import Kernel, pointer, run_on_gpu, run_on_host
from tests.ir.oracle import EXACT, converted, expected
from tilewright.errors import MachineError
from tilewright.ir import fold
from tilewright.ir.arithmetic import DIVISIONS, TABLE, convert, evaluate, may_overflow, normalise
from tilewright.ir.core import Block, Constant, Function, Location, Op, Value
from tilewright.ir.runtime import DevicePointer, LaunchConfig
from tilewright.ir.types import BF16, BOOL, E8M0, F16, F32, F64, I32, SCALARS, TF32, ScalarType
from tilewright.lang.launch.host import HostWriter
from tilewright.sim.machine import machine

# TF32 is stored; it computes as f32. E8M0 has neither zero nor sign: it is converted only.
ELEMENTS = [elem for elem in SCALARS.values() if elem not in (TF32, E8M0)]
TOLERANCE = {"f64": 1e-14, "f32": 2e-6, "f16": 2.0**-10, "bf16": 2.0**-7, "e4m3": 2.0**-3, "e5m2": 2.0**-2}
PLACES = ["folding", "host", "simulator", "printed", pytest.param("gpu", marks=pytest.mark.gpu)]


def specials(elem: ScalarType) -> list[Any]:
    if elem == BOOL:
        return [False, True]
    if elem.is_integer:
        low, high = int(np.iinfo(elem.dtype).min), int(np.iinfo(elem.dtype).max)
        found = {0, 1, 2, 3, 7, 100, low, low + 1, high, high - 1, elem.width - 1, elem.width, elem.width + 1}
        return sorted(found | ({-1, -2, -7} if low else set()))
    tiny, huge = float(np.float64(_info(elem, "smallest_subnormal"))), float(np.float64(_info(elem, "max")))
    least = float(np.float64(_info(elem, "smallest_normal")))
    found = [0.0, 1.0, 0.5, 2.5, 7.0, 0.1, huge, least, tiny]
    infinite = [math.nan] if elem.name in ("e4m3", "e8m0") else [math.nan, math.inf, -math.inf]
    return [normalise(elem, x) for x in found] + [normalise(elem, -x) for x in found] + infinite


def _info(elem: ScalarType, name: str) -> Any:
    import ml_dtypes

    return getattr(ml_dtypes.finfo(elem.dtype), name)


def operands(elem: ScalarType, traps: bool) -> list[tuple[Any, ...]]:
    """(a, b, divisor, c) of each thread; integers are not divided by zero, nor the least by -1 where that ``traps``."""
    values, rows = specials(elem), []
    for i, (a, b) in enumerate(itertools.product(values, values)):
        divisor = b
        if elem.is_integer and (b == 0 or (traps and b == -1 and a == min(values))):
            divisor = type(b)(3)
        rows.append((a, b, divisor, values[(7 * i + 3) % len(values)]))
    return rows


def args(opcode: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    a, b, divisor, c = row
    return (a, divisor if opcode in DIVISIONS else b, c)[: TABLE[opcode].operands]


def folded(opcode: str, elem: ScalarType, given: tuple[Any, ...]) -> Any:
    if not elem.is_float and len(given) == 2:
        act = fold.compare if TABLE[opcode].predicate else fold.binary
        found = act(opcode, *(Constant(elem, x) for x in given))
        assert isinstance(found, Constant)
        return found.value
    return evaluate(opcode, elem, *given)


def host_code(op: str, source: ScalarType, result: ScalarType, count: int) -> Any:
    """The generated host function of one op."""
    params = [Value(source, f"x{i}") for i in range(count)]
    made = Op(op, list(params), [], {}, [], Location("program.py", 7))
    made.results = [Value(result, "r", made)]
    function = Function("host", "host", Block(list(params), [made, Op("yield", made.results, [], {}, [], None)]))
    writer = HostWriter(function)
    text, scope = writer.write(), dict(writer.scope)
    exec(text, scope)
    extra = scope["body"].__code__.co_argcount - count  # the machine, and what is launched there
    return lambda given: scope["body"](*[None] * extra, *given)[0]


def run_on_simulator(function: Function, arrays: Any, block: int) -> None:
    values = [DevicePointer(a.ctypes.data, "cpu", a.ctypes.data, a.ctypes.data + a.nbytes, a) for a in arrays]
    machine().load(function)(LaunchConfig((1, 1, 1), (block, 1, 1)), values)


def run(place: str, function: Function, arrays: Any, block: int) -> None:
    {"simulator": run_on_simulator, "printed": run_on_host, "gpu": run_on_gpu}[place](function, arrays, block)


def array(values: Any, elem: ScalarType) -> np.ndarray:
    return np.array(values).astype(elem.dtype) if elem.is_float else np.array(values, elem.dtype)


def on_machine(place: str, elem: ScalarType, opcodes: list[str], rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    """All operations in one kernel, a thread for each row."""
    kinds = [BOOL if TABLE[opcode].predicate else elem for opcode in opcodes]
    outs = {f"out{i}": pointer(kind, kind.bytes) for i, kind in enumerate(kinds)}
    k = Kernel("apply", None, a=pointer(elem), b=pointer(elem), d=pointer(elem), c=pointer(elem), **outs)
    thread = k.sreg("tid.x")
    row = tuple(k.load(k.at(p, thread, elem.bytes)) for p in (k.a, k.b, k.d, k.c))
    for i, (opcode, kind) in enumerate(zip(opcodes, kinds, strict=True)):
        attrs = {"wraps": True} if may_overflow(opcode, elem) else {}
        k.store(k.at(k.args[f"out{i}"], thread, kind.bytes), k.emit(opcode, args(opcode, row), (kind,), attrs).result)
    inputs = [array(column, elem) for column in zip(*rows, strict=True)]
    results = [np.zeros(len(rows), kind.dtype) for kind in kinds]
    run(place, k.done(), (*inputs, *results), len(rows))
    return [
        [x.item() if kind.is_integer or kind == BOOL else float(x) for x in out]
        for out, kind in zip(results, kinds, strict=True)
    ]


def agree(opcode: str, elem: ScalarType, got: Any, want: Any) -> bool:
    if isinstance(want, (bool, int)):
        return bool(got == want)
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    if got == want:
        return opcode not in EXACT or math.copysign(1, got) == math.copysign(1, want)
    near = abs(got - want) <= TOLERANCE[elem.name] * abs(want) + 2 * float(_info(elem, "smallest_subnormal"))
    return opcode not in EXACT and math.isfinite(got) and math.isfinite(want) and near


def distinct(opcode: str, per_row: list[Any]) -> list[Any]:
    """Of a list with an entry for each row, those whose operands differ: with one operand, one for each ``a``."""
    return per_row[:: math.isqrt(len(per_row))] if TABLE[opcode].operands == 1 else per_row


@functools.cache
def answers(elem: ScalarType, traps: bool) -> dict[str, list[Any]]:
    """What each operation of a type gives, for its distinct rows: asked of the oracle once for all places."""
    rows = operands(elem, traps)
    opcodes = [name for name, row in TABLE.items() if row.on(elem) is not None]
    return {
        opcode: [expected(opcode, elem, *(*args(opcode, row), 0, 0)[:3]) for row in distinct(opcode, rows)]
        for opcode in opcodes
    }


def computed(place: str, elem: ScalarType, opcodes: list[str], rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    """What a place gives for the distinct rows of each operation."""
    if place == "folding":
        return [[folded(opcode, elem, args(opcode, row)) for row in distinct(opcode, rows)] for opcode in opcodes]
    if place == "host":
        kinds = [BOOL if TABLE[opcode].predicate else elem for opcode in opcodes]
        codes = [host_code(o, elem, kind, TABLE[o].operands) for o, kind in zip(opcodes, kinds, strict=True)]
        return [[code(args(o, row)) for row in distinct(o, rows)] for o, code in zip(opcodes, codes, strict=True)]
    found = on_machine(place, elem, opcodes, rows)
    return [distinct(opcode, results) for opcode, results in zip(opcodes, found, strict=True)]


@pytest.mark.parametrize("places", [PLACES[:-1], pytest.param(["gpu"], marks=pytest.mark.gpu)], ids=["cpu", "gpu"])
@pytest.mark.parametrize("elem", ELEMENTS, ids=str)
def test_every_operation_on_special_values(elem: ScalarType, places: list[str]) -> None:
    for place in places:
        traps = elem.is_integer and place == "printed"
        rows, wanted = operands(elem, traps), answers(elem, traps)
        assert len(rows) <= 1024, "a thread for each"
        for (opcode, wants), results in zip(wanted.items(), computed(place, elem, list(wanted), rows), strict=True):
            for row, want, got in zip(distinct(opcode, rows), wants, results, strict=True):
                if place == "printed" and opcode in ("min", "max") and got == want == 0:
                    continue  # the C library of the host takes either zero
                if opcode == "fma" and elem == F64 and abs(want) < 1e-290:
                    continue  # the simulator adds the error of a product in f64, which has no room for it down there
                assert agree(opcode, elem, got, want), (place, opcode, args(opcode, row), got, want)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("source", SCALARS.values(), ids=str)
def test_every_conversion_of_special_values(source: ScalarType, place: str) -> None:
    values = specials(source) if source != TF32 else [normalise(TF32, x) for x in specials(F32)]
    values += [normalise(source, x) for x in (1e10, -300.7, 127.5, 65519.0)] if source.is_float else []
    # These are not integers of f64, and would be of f32.
    values += [np.nextafter(x, 0.0) for x in (1.0, 128.0, -129.0, 256.0, -32769.0)] if source == F64 else []
    targets = [to for to in SCALARS.values() if to != source]
    if place == "folding":
        found = [[convert(source, to, x) for x in values] for to in targets]
    elif place == "host":
        found = [[host_code("cast", source, to, 1)((x,)) for x in values] for to in targets]
    else:
        k = Kernel("cast", None, a=pointer(source), **{f"out{i}": pointer(to) for i, to in enumerate(targets)})
        thread = k.sreg("tid.x")
        for i, to in enumerate(targets):
            result = k.emit("cast", (k.load(k.at(k.a, thread, source.bytes)),), (to,)).result
            k.store(k.at(k.args[f"out{i}"], thread, to.bytes), result)
        outs = [np.zeros(len(values), to.dtype) for to in targets]
        run(place, k.done(), (array(values, source), *outs), len(values))
        found = [[float(x) if to.is_float else x.item() for x in out] for out, to in zip(outs, targets, strict=True)]
    for to, results in zip(targets, found, strict=True):
        for x, got in zip(values, results, strict=True):
            want = converted(source, to, x)
            if (
                place == "printed"
                and source.is_float
                and to.is_integer
                and to.width >= 32
                and (x != x or int_of(x) != want)
            ):
                continue  # undefined in the C++ of the host
            assert agree("neg", F64, got, want), (to, x, got, want)


def int_of(x: float) -> Any:
    return int(x) if math.isfinite(x) else None


@pytest.mark.parametrize("opcode", sorted(DIVISIONS))
def test_integer_division_by_zero_is_an_error_everywhere(opcode: str) -> None:
    assert fold.binary(opcode, Constant(I32, 5), Constant(I32, 0)) is None, "left to the machine"
    with pytest.raises(ZeroDivisionError):
        evaluate(opcode, I32, 5, 0)
    with pytest.raises(MachineError, match="program.py:7: division by zero in host code"):
        host_code(opcode, I32, I32, 2)((5, 0))
    with pytest.raises(MachineError, match="by zero"):
        on_machine("simulator", I32, [opcode], [(5, 0, 0, 0)])


@pytest.mark.parametrize("elem", [F16, BF16, F32, F64], ids=str)
def test_rows_are_not_defined_on_the_wrong_types(elem: ScalarType) -> None:
    for opcode in ("and", "or", "xor", "shl", "shr", "not"):
        assert TABLE[opcode].on(elem) is None
    assert TABLE["exp"].on(I32) is None and TABLE["neg"].on(BOOL) is None
