"""Additions, subtractions and products with the carry flag (PTX ISA, "Extended-Precision Integer Arithmetic
Instructions"): ``add.cc`` writes it, ``addc`` reads it. It belongs to one run of one text."""

from __future__ import annotations

import numpy as np

from tilewright.atoms.ptx.registers import UNSIGNED, Array, Kind
from tilewright.atoms.ptx.step import Step, Unknown, known
from tilewright.errors import ConstraintError
from tilewright.ir.types import SCALARS

READ_CARRY = ("addc", "subc", "madc")


def last_over(opcodes: list[str], breaks: list[bool]) -> bool:
    """Whether a carry that one of the statements reads was written before a statement that ``breaks`` the text in two:
    the flag does not last so long.

    >>> last_over(["add.cc.u32", "addc.u32"], [False, False]), last_over(["add.cc.u32", "ld", "addc.u32"], [0, 1, 0])
    (False, True)
    """
    written = False
    for opcode, ends in zip(opcodes, breaks, strict=True):
        if opcode.split(".")[0] in READ_CARRY and not written:
            return True
        written = not ends and (written or ".cc." in opcode)
    return False


def add(step: Step, a: Array, b: Array) -> None:
    """Write ``a + b``, or ``a - b`` of subtractions, with the flag where the opcode reads it; ``.cc`` keeps the flag of
    the result: the carry, or the borrow."""
    kind = _unsigned(step)
    x, y = (np.ascontiguousarray(v).view(UNSIGNED[kind.width]) for v in (a, b))
    flag = _flag(step) if step.name in READ_CARRY else np.zeros(x.shape, bool)
    if step.name.startswith("sub"):
        partly = x - y
        result = partly - flag.astype(x.dtype)
        over = (x < y) | (partly < flag)
    else:
        partly = x + y
        result = partly + flag.astype(x.dtype)
        over = (partly < x) | (result < partly)
    if "cc" in step.modifiers:
        old = step.registers.carry
        step.registers.carry = over if step.where is None or old is None else np.where(step.where, over, old)
    step.write(result, kind)


@known(*READ_CARRY[:2])
def _add_with_carry(step: Step) -> None:
    step.only("cc")
    add(step, step.read(1), step.read(2))


def _unsigned(step: Step) -> Kind:
    kind = step.kind
    if kind.elem.is_float or kind.count > 1 or kind.width not in (32, 64):
        raise Unknown
    return Kind(SCALARS[f"u{kind.width}"])


def _flag(step: Step) -> Array:
    if step.registers.carry is None:
        raise ConstraintError(
            f"inline PTX: {step.name} reads the carry flag, which nothing before it in this text has written; the flag "
            "does not last from one text to the next: write the whole chain into one, or add Int64 or Int128"
        )
    return step.registers.carry
