"""Integers that do not hold their result: sums, differences and products of signed numbers that leave 32 or 64 bits,
shifts by the width or more, and floats converted to integers that do not hold them. Bits that a left shift drops are
meant: programs make masks so.

The simulator and the printed code wrap; but an index that has wrapped is wrong, and C++ leaves signed overflow open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Constant, Op
from tilewright.ir.lanes import Array
from tilewright.ir.types import element_of
from tilewright.sim.checks.actors import thread_of
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.sites import kernel_facts
from tilewright.sim.lowering import constant_value

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group

SIGNS = {"add": "+", "sub": "-", "mul": "*", "neg": "-", "div": "//", "floordiv": "//"}


class Arithmetic(Checker):
    def begin(self, launch: Launch) -> None:
        self.ops = kernel_facts(launch.program).arithmetic
        self.slots = launch.program.slots

    def executed(self, group: Group, op: Op) -> None:
        """Look at the operands and the result of an op that can go wrong (division, conversion), lane by lane."""
        if op not in self.ops:
            return
        values = [
            np.asarray(constant_value(v) if isinstance(v, Constant) else group.slots[self.slots[v]])
            for v in op.operands
        ]
        bad = _wrong(op, values, np.asarray(group.slots[self.slots[op.result]]))
        if not np.any(bad):
            return
        # A register whose value is the same in all lanes has no mode of lanes: any active lane stands for all.
        if np.ndim(bad) and np.shape(bad)[0] == group.lanes_count:
            lanes = bad.reshape(group.lanes_count, -1).any(1)
            if group.mask is not None:
                lanes &= group.mask
            if not lanes.any():
                return
            lane = int(np.argmax(lanes))
            shown = [_shown(v, lane, bad, group.lanes_count) for v in values]
            count = int(lanes.sum())
        else:
            lane, count = 0 if group.mask is None else int(np.argmax(group.mask)), 1
            shown = [v.reshape(-1)[0] for v in values]
        self._report(group, op, lane, shown, count)

    def _report(self, group: Group, op: Op, lane: int, shown: list[Any], count: int) -> None:
        """The finding: the numbers of the first lane that is wrong."""
        elem = element_of(op.result.type)
        if op.opcode == "cast":
            what = f"the {element_of(op.operands[0].type)} {shown[0]} is converted to {elem}, which does not hold it"
            fix = "bound the number first, or convert to a wider integer"
        elif op.opcode in ("shl", "shr") and not 0 <= int(shown[1]) < elem.width:
            what = f"a shift of {elem} by {int(shown[1])}; it is 0 to {elem.width - 1}"
            fix = "bound the distance; a shift by the width or more is undefined in C++"
        else:
            sign = SIGNS.get(op.opcode, "")
            text = f"{sign}{shown[0]}" if len(shown) == 1 else f"{shown[0]} {sign} {shown[1]}"
            text = f"abs({shown[0]})" if op.opcode == "abs" else text
            what = f"{text} does not fit into {elem}"
            fix = "compute in Int64, or in Uint32 or Uint64 where wrapping around is meant"
        self.findings.add(
            Finding(
                "overflow",
                what,
                [Party("computed", op, thread_of(group, lane))],
                None,
                "signed numbers that leave their range wrap around here, and are undefined in C++",
                fix,
                count,
            ),
            ("overflow", str(op.loc or id(op)), op.opcode),
        )


def _shown(value: Array, lane: int, bad: Array, lanes: int) -> Any:
    """The operand of the first element that is wrong in a lane."""
    if not value.ndim:
        return value[()]
    if bad.ndim == 2:
        column = int(np.argmax(bad[lane]))
        return value[lane, column] if value.ndim == 2 else value[column] if value.shape[0] != lanes else value[lane]
    return value[lane] if value.shape[0] == lanes else value.reshape(-1)[0]


def _wrong(op: Op, values: list[Array], result: Array) -> Any:
    """Which results are wrong."""
    if op.opcode == "cast":
        elem = element_of(op.result.type)
        low = -(1 << (elem.width - 1)) if elem.is_signed else 0
        # Conversions round towards zero; a NaN fails both comparisons, so it counts as wrong.
        x = np.trunc(values[0].astype(np.float64))
        return ~((x >= float(low)) & (x < float(low + (1 << elem.width))))
    a = values[0]
    if op.opcode in ("neg", "abs"):
        # Only the least integer has no opposite: it gives itself.
        return (a == np.iinfo(a.dtype).min) & (result == a)
    b = values[1]
    if op.opcode in ("div", "floordiv"):
        return (a == np.iinfo(a.dtype).min) & (b == -1)
    if op.opcode in ("shl", "shr"):
        return (b < 0) | (b >= element_of(op.result.type).width)
    if op.opcode == "add":
        # A sum has overflowed if both operands have the sign that the result lacks.
        return ((a ^ result) & (b ^ result)) < 0
    if op.opcode == "sub":
        return ((a ^ b) & (a ^ result)) < 0
    if a.dtype.itemsize == 4:
        return a.astype(np.int64) * b != result
    # A product that wrapped is off by a multiple of 2**64, which the rounding of float64 does not hide.
    return np.abs(a.astype(np.float64) * b - result) > np.abs(result.astype(np.float64)) + 2.0**62
