"""Host arithmetic as C: every operation of the table on every type, against its actions on Python's and NumPy's
numbers, and the oracle by which :mod:`tests.ir.test_conformance` judges the simulator and the printed CUDA C++."""

from __future__ import annotations

import itertools
import math
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.export.harness import COMPILER, WARNINGS, needs_compiler
from tests.ir import oracle
from tests.ir.test_conformance import specials
from tilewright.errors import ArgumentError
from tilewright.export.arithmetic import Helpers, literal, scalar
from tilewright.ir.arithmetic import DIVISIONS, TABLE, convert, evaluate, on_lanes
from tilewright.ir.core import Op, Value
from tilewright.ir.types import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, TF32, U8, U16, U32, U64, ScalarType

INTEGERS = (I8, I16, I32, I64, U8, U16, U32, U64)
FLOATS = (F32, F64)
FLOAT_VALUES = (-1.5, 7.25, -50.0, 1e10)


def values_of(kind: ScalarType) -> list[Any]:
    if kind == BOOL:
        return [False, True]
    if kind.is_float:
        return [*specials(kind), *(convert(F64, kind, x) for x in FLOAT_VALUES)]
    return specials(kind)


def op_of(opcode: str, kind: ScalarType, result: ScalarType, count: int) -> tuple[Op, list[str]]:
    operands = [Value(kind, n) for n in "abc"[:count]]
    op = Op(opcode, list(operands), [], {"wraps": True}, [], None)
    op.results.append(Value(result, "r", op))
    return op, list("abc"[:count])


class Program:
    """A C program that prints the bytes of one expression for many operands, a line each."""

    def __init__(self) -> None:
        self.helpers = Helpers()
        self.functions: list[str] = []
        self.calls: list[str] = []

    def add(self, op: Op, names: list[str], operands: list[tuple[Any, ...]]) -> None:
        kind, result = (v.type.c for v in (op.operands[0], op.result))
        name = f"f{len(self.functions)}"
        given = ", ".join(f"{kind} {n}" for n in names)
        text = scalar(op, names, self.helpers)
        self.functions.append(f"static {result} {name}({given}) {{ return {text}; }}")
        rows = (", ".join(literal(op.operands[0].type, x) for x in row) for row in operands)
        table = f"static const {kind} in[][{len(names)}] = {{{', '.join(f'{{{row}}}' for row in rows)}}};"
        args = ", ".join(f"in[i][{k}]" for k in range(len(names)))
        loop = f"for (i = 0; i < {len(operands)}; ++i) {{ const {result} r = {name}({args}); show(&r, sizeof r); }}"
        self.calls.append(f"  {{ {table} {loop} }}")

    def run(self, folder: Path) -> list[bytes]:
        show = (
            "static void show(const void *p, size_t n) {"
            ' const unsigned char *b = p; while (n--) printf("%02x", *b++); puts(""); }'
        )
        inline = "#define TW_INLINE static inline __attribute__((unused))"
        head = ["#include <math.h>", "#include <stdbool.h>", "#include <stdint.h>", "#include <stdio.h>", inline, show]
        main = "\n".join(["int main(void) {", "  int i;", *self.calls, "  return 0;", "}"])
        (folder / "all.c").write_text("\n".join([*head, self.helpers.text(), *self.functions, main]))
        assert COMPILER
        undefined = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]  # needs no library
        flags = ["-std=c99", "-O0", "-ffp-contract=off", *undefined, *WARNINGS, "-Wno-overflow"]
        command = [COMPILER, *flags, "all.c", "-lm", "-o", "all"]
        built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert built.returncode == 0, built.stderr[:3000]
        done = subprocess.run([str(folder / "all")], capture_output=True, text=True, check=True)
        return [bytes.fromhex(line) for line in done.stdout.split()]


CODES = {
    "i8": "b",
    "i16": "h",
    "i32": "i",
    "i64": "q",
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
    "i1": "?",
    "f32": "f",
    "f64": "d",
}


def number(kind: ScalarType, data: bytes) -> Any:
    return struct.unpack("<" + CODES[kind.name], data)[0]


def same(opcode: str, got: Any, want: Any) -> bool:
    if isinstance(want, float):
        if math.isnan(want) or math.isnan(got):
            return math.isnan(want) and math.isnan(got)
        if opcode in oracle.EXACT:
            return struct.pack("<d", got) == struct.pack("<d", want)
        return got == want or math.isclose(got, want, rel_tol=1e-6, abs_tol=1e-30)
    return bool(got == want)


@needs_compiler
def test_every_operation_on_every_type(tmp_path: Path) -> None:
    program, expected = Program(), []
    for row in TABLE.values():
        for kind in (*INTEGERS, *FLOATS, BOOL):
            if row.on(kind) is None:
                continue
            result = BOOL if row.predicate else kind
            op, names = op_of(row.name, kind, result, row.operands)
            operands = list(itertools.product(values_of(kind), repeat=row.operands))
            if row.operands == 3:
                operands = operands[:: max(1, len(operands) // 150)]
            if row.name in DIVISIONS and not kind.is_float:
                operands = [o for o in operands if o[1] != 0]
            program.add(op, names, operands)
            expected += [(row.name, kind, result, o) for o in operands]
    found = program.run(tmp_path)
    assert len(found) == len(expected) > 3000
    for data, (opcode, kind, result, operands_) in zip(found, expected, strict=True):
        got, dtype = number(result, data), kind.dtype.type
        with np.errstate(all="ignore"):
            lanes = on_lanes(opcode, kind)(*map(dtype, operands_)).item()
        for reader, want in (
            ("the table", evaluate(opcode, kind, *operands_)),
            ("NumPy", lanes),
            ("the oracle of CUDA C++", oracle.expected(opcode, kind, *(*operands_, 0, 0)[:3])),
        ):
            if row_has_no_room(opcode, kind, want):
                continue
            assert same(opcode, got, want), f"{opcode} of {kind}{operands_}: C gives {got!r}, {reader} {want!r}"


def row_has_no_room(opcode: str, kind: ScalarType, want: Any) -> bool:
    """The simulator adds the error of a product in f64, which has no room for it down there."""
    return opcode == "fma" and kind == F64 and abs(want) < 1e-290


@needs_compiler
def test_every_conversion(tmp_path: Path) -> None:
    program, expected = Program(), []
    for source, to in itertools.product((*INTEGERS, *FLOATS, BOOL), repeat=2):
        if source == to:
            continue
        op, names = op_of("cast", source, to, 1)
        more = [300.7, -300.7, 3e9, 1e19, -1e19, 0.9, -0.9] if source.is_float else []
        operands = [(convert(F64, source, x) if source.is_float else x,) for x in (*values_of(source), *more)]
        program.add(op, names, operands)
        expected += [(source, to, o[0]) for o in operands]
    for data, (source, to, x) in zip(program.run(tmp_path), expected, strict=True):
        got, want = number(to, data), convert(source, to, x)
        assert same("add", got, want), f"{source} {x!r} to {to}: C gives {got!r}, the table {want!r}"


def test_types_without_c_arithmetic_are_refused() -> None:
    for kind in (F16, BF16, TF32):
        op, names = op_of("add", kind, kind, 2)
        with pytest.raises(ArgumentError, match=f"computes with {kind}"):
            scalar(op, names, Helpers())
    for source, to in ((F16, F32), (F32, BF16), (F32, TF32)):
        op, names = op_of("cast", source, to, 1)
        with pytest.raises(ArgumentError, match="has no C form"):
            scalar(op, names, Helpers())


def test_literals() -> None:
    assert literal(I32, -(1 << 31)) == "(-2147483647 - 1)"
    assert literal(U64, (1 << 64) - 1) == "UINT64_C(18446744073709551615)"
    assert literal(F16, 1.5) == "15872u" and literal(F32, 0.1) == "0.10000000149011612f"
    assert literal(F64, -math.inf) == "(-1.0 / 0.0)"
