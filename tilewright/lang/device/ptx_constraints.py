"""The constraints of inline PTX, read from their text: ``"=r,f,n"`` (Inline PTX Assembly in CUDA, "Constraints"; LLVM
Language Reference, "Inline Assembler Expressions").

>>> read("=f,r,n,~{memory}", "")
Constraints(outputs=('f',), inputs=('r', 'n'), read_write=0, memory=True)
>>> read("+d,l", "").inputs  # the first value of result 0 is an operand too, the last one
('l', '0')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.atoms.ptx.inline import REGISTERS
from tilewright.errors import ConstraintError

IMMEDIATE = ("n", "i", "C")
"""The constraints of what becomes part of the text: integers, and Python's strings (``C``)."""
TABLE = """  h, r, l, q   a register of 16, 32, 64, 128 bits
  f, d         a register of Float32, Float64
  =r, =&r      the register of a result, with any of these letters
  +r           a result whose register begins as an operand; these operands are the first
  0, 1, ...    an operand in the register of that result
  n, i         an integer known while staging, which becomes part of the text
  C            a Python string, which becomes part of the text
  ~{memory}    the text changes memory"""

_RESULT = re.compile(rf"([=+])&?([{''.join(REGISTERS)}])")
_CLOBBER = re.compile(r"~\{\w+\}")


@dataclass(frozen=True)
class Constraints:
    """Letters of the results, and of the operands behind them as the text counts them; the last ``read_write``
    operands, numbers of results, are those that a program gives first."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    read_write: int
    memory: bool


def read(constraints: str, text: str) -> Constraints:
    """What ``constraints`` say of the inline PTX ``text``; ConstraintError where one of them is not in the table."""
    outputs: list[str] = []
    inputs: list[str] = []
    shared: list[str] = []
    memory = False
    for letter in (c.strip() for c in constraints.split(",") if c.strip()):
        if result := _RESULT.fullmatch(letter):
            if inputs:
                raise ConstraintError(f"inline PTX {text!r}: results stand before operands, not as in {constraints!r}")
            if result[1] == "+":
                shared.append(str(len(outputs)))
            outputs.append(result[2])
        elif letter in REGISTERS or letter in IMMEDIATE or letter.isdigit() and int(letter) < len(outputs):
            inputs.append(letter)
        elif _CLOBBER.fullmatch(letter):
            memory |= letter == "~{memory}"
        else:
            raise ConstraintError(
                f"inline PTX {text!r}: no constraint {letter!r} (in {constraints!r}); the constraints are\n{TABLE}"
            )
    twice = [c for c in dict.fromkeys(inputs + shared) if c.isdigit() and (inputs + shared).count(c) > 1]
    if twice:
        raise ConstraintError(f"inline PTX {text!r}: two operands begin result {twice[0]} in {constraints!r}")
    return Constraints(tuple(outputs), (*inputs, *shared), len(shared), memory)
