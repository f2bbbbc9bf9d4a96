"""What the operators of numerics give, as a program of ``assert_type``."""

from __future__ import annotations

import itertools

from tilewright.cute import math
from tilewright.lang.numbers import numeric

CLASSES = (
    "Boolean Int8 Int16 Int32 Int64 Uint8 Uint16 Uint32 Uint64 Float16 BFloat16 TFloat32 Float32 Float64 Float8E4M3FN "
    "Float8E5M2 Float4E2M1FN"
).split()
ARITHMETIC = "+ - * / // % **".split()
BITWISE = "& | ^ << >>".split()
COMPARISONS = "== != < <= > >=".split()


def program() -> str:
    lines = ["from typing import assert_type", "from tilewright.cute import math"]
    lines.append(f"from tilewright.lang.numbers.numeric import {', '.join(CLASSES)}")
    known = {**vars(numeric), "math": math}
    for name in CLASSES:
        operators = ARITHMETIC + COMPARISONS + (BITWISE if "Float" not in name else [])
        expressions = [f"{sign}{name}(1)" for sign in ("-", "+", *(["~"] if "Float" not in name else []))]
        expressions.append(f"abs({name}(1))")
        for operator, other in itertools.product(operators, (f"{name}(1)", "1", "1.5")):
            if operator in BITWISE and other == "1.5":
                continue
            expressions.append(f"{name}(1) {operator} {other}")
            # (`1 == x` is a bool to checkers, which ask the int first.)
            if operator not in ("<<", ">>") and (operator not in ("==", "!=") or "(" in other):
                expressions.append(f"{other} {operator} {name}(1)")
        if "Float" in name:
            expressions += [f"{name}(1) {operator} Int32(1)" for operator in ARITHMETIC]
        expressions += [f"math.exp({name}(1))", f"math.sqrt({name}(1), True)", f"math.isnan({name}(1))"]
        if name in ("Float16", "BFloat16", "Float32", "Float64"):
            expressions += [f"math.atan2({name}(1), {name}(1))", f"math.pow({name}(2), 3)"]
        given = {e: type(eval(e, known)).__name__ for e in expressions}
        lines += [f"assert_type({expression}, {kind})" for expression, kind in given.items()]
    return "\n".join(lines) + "\n"
