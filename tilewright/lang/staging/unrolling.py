"""Loops that Python iterates over because their index names the registers of an instruction.

Registers have no addresses: an instruction names them, and the name is part of the program. In
``for i in range(4): cute.copy(atom, source[None, i], registers[None, i])`` it depends on the index, which a run-time
loop has only when the program runs. So :func:`register_number` marks this loop, and the trace goes on with any number.
At its end the trace is thrown away, and Python iterates over the numbers of the range: the loop is unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Location, Value
from tilewright.ir.ops import PURE
from tilewright.lang.numbers.numeric import unwrap
from tilewright.lang.staging.ranges import Range
from tilewright.lang.staging.regions import Region

MOST_ITERATIONS = 1024
"""A thread has 255 registers of 32 bits: no loop that names each of its bytes once has more iterations."""


class ForBody(Region):
    """The open body of a run-time ``for`` loop over ``span`` with the index ``target``. ``unrolled``: the trace will be
    thrown away, and Python will iterate."""

    def __init__(self, where: Location | None, span: Range, target: str) -> None:
        super().__init__("for loop", where)
        self.span, self.target = span, target
        self.unrolled = False


def register_number(number: Any, what: str) -> int:
    """``number``, which names a register, as a Python int.

    Where it depends on indices of run-time loops with known bounds (or on what these carry) the loops are marked, and
    any number does in a trace that will be thrown away: the answer is 0. Otherwise a :class:`ConstraintError` that
    begins with ``what`` says on what it depends.
    """
    number = unwrap(number)
    if isinstance(number, int):
        return number
    regions = Builder.current().regions
    owners = {value: region for region in regions for value in region.block.args}
    loops: list[ForBody] = []
    for value in _sources(number.ir_value()):
        region = owners.get(value)
        if not isinstance(region, ForBody):
            named = f"'{value.hint}'" if value.hint else "a number"
            carried = f" that the {region} carries" if region is not None else ", which is known only when it runs"
            raise ConstraintError(
                f"{what} is indexed at run time, by {named}{carried}: give it a number that is known while staging "
                "(a Python int, or the index of a loop over a known range), or move what is to be indexed to memory"
            )
        _check_bounds(what, region)
        loops.append(region)
    if not loops:  # arithmetic that is not folded
        raise ConstraintError(f"{what} is indexed at run time: give it a Python int")
    for loop in loops:
        loop.unrolled = True
    return 0


def _check_bounds(what: str, loop: ForBody) -> None:
    by = f"{what} is indexed at run time, by '{loop.target}', the index of the {loop}"
    if not loop.span.is_static:
        raise ConstraintError(
            f"{by}, whose bounds are known only when it runs: loop over a known number of registers (`for "
            f"{loop.target} in range(4)`) and guard what depends on the bound with `if`, or iterate over tiles in an "
            "outer loop"
        )
    if (count := len(loop.span.python())) > MOST_ITERATIONS:
        raise ConstraintError(
            f"{by}: it would be unrolled {count} times. Split it: an outer loop over what repeats, and an inner one "
            "over the registers (to unroll it all the same, write range_constexpr)"
        )


def _sources(number: Value) -> Iterator[Value]:
    """The values that ``number`` is computed from by arithmetic and choices alone, without literals."""
    seen: set[Value] = set()
    waiting = [number]
    while waiting:
        value = waiting.pop()
        if value in seen or isinstance(value, Constant):
            continue
        seen.add(value)
        op = value.op
        if op is not None and op.opcode in PURE:
            waiting += op.operands
        elif op is not None and op.opcode == "if":
            k = op.results.index(value)
            waiting += [op.operands[0], *(arm.ops[-1].operands[k] for arm in op.regions)]
        else:
            yield value
