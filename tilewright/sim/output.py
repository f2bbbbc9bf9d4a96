"""The output of a kernel: printf and assert."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.types import FragType, PtrType, VecType
from tilewright.sim.faults import Fault
from tilewright.sim.program import Closure

SPECIFIER = re.compile(r"%(%|[-+ #0]*\d*(?:\.\d+)?)(hh|h|ll|l|z)?([diuoxXeEfFgGcsp])?")


def rows_of(value: Any, type_: Any, lanes: np.ndarray) -> list[Any]:
    """One Python object per lane of ``lanes``: a number, or a list of them for vectors and fragments."""
    if isinstance(type_, PtrType):
        value = np.asarray(value.off, np.int64) + value.buf.base
    wide = isinstance(type_, (VecType, FragType))
    array = np.asarray(value)
    if array.dtype.kind == "b":
        array = array.astype(np.int8)  # C has no text for truth
    # Narrow floats of ml_dtypes: printf promotes them.
    if array.dtype.kind not in "iuf":
        array = array.astype(np.float32)
    rows = array[lanes].tolist() if array.ndim == (2 if wide else 1) else [array.tolist()] * lanes.size
    return [PrintedVector(row) for row in rows] if wide else rows


class PrintedVector(list[Any]):
    """A vector among the values of a printf: a format is that of its elements."""

    def __format__(self, spec: str) -> str:
        return f"[{', '.join(format(x, spec) for x in self)}]"


def render(template: str, values: list[Any]) -> str:
    """``template`` with Python's braces or C's percent signs filled in."""
    if "{" in template and values:
        return template.format(*values)
    if "%" not in template:
        return template.replace("{{", "{").replace("}}", "}")
    rest = iter(values)

    def one(match: re.Match[str]) -> str:
        flags, _, letter = match.groups()
        if flags == "%" or letter is None:
            return "%"
        value = next(rest)
        if letter in "diu":
            return f"%{flags}d" % int(value)
        return f"%#{flags}x" % int(value) if letter == "p" else f"%{flags}{letter}" % value

    return SPECIFIER.sub(one, template)


def printf_step(op: Op, operands: list[int], results: list[int]) -> Closure:
    template = op.attrs["format"]
    types = [v.type for v in op.operands]

    def run(group: Any, slots: list[Any]) -> None:
        active = group.lanes_of_mask()
        table = [rows_of(slots[i], t, active) for i, t in zip(operands, types, strict=True)]
        for row in range(active.size):
            sys.stdout.write(render(template, [column[row] for column in table]))

    return run


def assert_step(op: Op, operands: list[int], results: list[int]) -> Closure:
    """The step of an ``assert``: a fault of the first active lane whose condition is false."""
    (c,) = operands
    message = op.attrs.get("message") or "assertion failed"

    def run(group: Any, slots: list[Any]) -> None:
        cond = slots[c]
        if cond.ndim == 0:
            if not cond:
                raise Fault(f"assertion failed: {message}")
            return
        bad = ~cond if group.mask is None else ~cond & group.mask
        if bad.any():
            raise Fault(f"assertion failed: {message}", bad)

    return run
