"""Inline PTX as an instruction: a text with ``$0, $1, ...`` for results and operands, and a constraint for each.

On the GPU the text is the ``asm`` statement's. On the simulator each of its statements acts as
:mod:`tilewright.atoms.ptx.actions` says.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.ptx import actions
from tilewright.atoms.ptx.registers import Registers, to_numbers
from tilewright.atoms.ptx.step import GIVEN, Unknown
from tilewright.atoms.ptx.text import parse
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed
from tilewright.ir.core import Op
from tilewright.ir.instruction import Emitter, Instruction, Lanes
from tilewright.ir.types import F32, F64, U16, U32, U64, U128, ScalarType

REGISTERS: dict[str, ScalarType] = {"h": U16, "r": U32, "l": U64, "q": U128, "f": F32, "d": F64}
"""The register that a constraint letter names, as an IR type."""


@dataclass(frozen=True)
class InlinePtx(Instruction):
    """``text`` with the results (``outputs``: constraint letters) and operands (``inputs``: letters, or the decimal
    number of the result whose register an operand shares). ``volatile``: it has effects beside its results."""

    text: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    volatile: bool
    memory: bool = False

    name: ClassVar[str] = "asm"
    wide: ClassVar[bool] = True
    accesses = ()

    @computed
    def pure(self) -> bool:
        return not self.volatile

    @computed
    def quiet(self) -> bool:
        return not self.volatile

    def mnemonic(self) -> str:
        return f"asm {json.dumps(self.text)}"

    def letter(self, i: int) -> str:
        """The constraint letter of operand ``i``."""
        constraint = self.inputs[i]
        return self.outputs[int(constraint)] if constraint.isdigit() else constraint

    def count(self, op: Op) -> int:
        return max(1, self.text.count(";"))

    def verify(self, op: Op) -> None:
        required = [REGISTERS[c] for c in self.outputs], [REGISTERS[self.letter(i)] for i in range(len(self.inputs))]
        types = [v.type for v in op.results], [v.type for v in op.operands]
        if required != types:
            raise ConstraintError(f"inline PTX {self.text!r}: the constraints need {required}, not {types}")

    # -- the simulator -------------------------------------------------------------------------------------------------

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        if self.text.strip() in GIVEN:
            return self._whole(lanes, operands)
        program = parse(self.text)
        registers = Registers(lanes, program.registers)
        for i, kind in enumerate(v.type for v in op.results):
            registers.define(f"${i}", kind.width)  # type: ignore[attr-defined]  # scalars only
        for i, (value, operand) in enumerate(zip(operands, op.operands, strict=True)):
            width = operand.type.width  # type: ignore[attr-defined]  # scalars only
            registers.define(f"${len(self.outputs) + i}", width, value)
            if self.inputs[i].isdigit():
                registers.define(f"${self.inputs[i]}", width, value)
        for statement in program.statements:
            try:
                actions.act(registers, statement)
            except Unknown:
                raise lanes.fault(
                    f"inline PTX: the simulator does not know {statement.opcode}",
                    fix=f"say what it does: @tilewright.sim.ptx_action({statement.opcode!r}) above a function of "
                    "NumPy arrays",
                ) from None
            except ConstraintError as wrong:
                raise lanes.fault(str(wrong)) from None
        return tuple(
            to_numbers(registers.raw(f"${i}")).view(v.type.dtype)  # type: ignore[attr-defined]  # scalars only
            for i, v in enumerate(op.results)
        )

    def _whole(self, lanes: Lanes, operands: list[Any]) -> tuple[Any, ...]:
        """The program has said what the text as a whole does."""
        spread = [np.ascontiguousarray(lanes.spread(v)) for v in operands]
        results = GIVEN[self.text.strip()](*[v if v.dtype.kind == "O" else v.view(f"u{v.itemsize}") for v in spread])
        results = results if isinstance(results, tuple) else (results,)
        made = []
        for letter, value in zip(self.outputs, results if self.outputs else (), strict=True):
            dtype = REGISTERS[letter].dtype
            unsigned = np.asarray(value).astype("O" if dtype.kind == "O" else f"u{dtype.itemsize}")
            bits = np.broadcast_to(unsigned, (lanes.lane().size,))
            made.append(np.ascontiguousarray(bits).view(dtype))
        return tuple(made)

    # -- CUDA C++ ------------------------------------------------------------------------------------------------------

    def emit(self, out: Emitter, op: Op) -> None:
        names = [out.declare(v) for v in op.results]
        shared = {int(c): out.value(v) for c, v in zip(self.inputs, op.operands, strict=True) if c.isdigit()}
        for i, value in shared.items():  # NVRTC knows no constraint by number: the result begins as the operand
            out.line(f"{names[i]} = {value};")
        results = ", ".join(f'"{"+" if i in shared else "="}{c}"({names[i]})' for i, c in enumerate(self.outputs))
        own = [(c, out.value(v)) for c, v in zip(self.inputs, op.operands, strict=True) if not c.isdigit()]
        operands = ", ".join(f'"{c}"({value})' for c, value in own)
        clobbers = ' : "memory"' if self.memory else ""
        volatile = " volatile" if self.volatile else ""
        out.line(f"asm{volatile}({json.dumps(self._percent())} : {results} : {operands}{clobbers});")

    def _percent(self) -> str:
        """The text in GCC's notation: ``%0`` for operands, ``%%`` for a percent sign."""
        first, places, taken = len(self.outputs), {i: i for i in range(len(self.outputs))}, 0
        for i, c in enumerate(self.inputs):
            places[first + i] = int(c) if c.isdigit() else first + taken
            taken += not c.isdigit()

        def written(match: re.Match[str]) -> str:
            return "$" if match.group(1) == "$" else f"%{places[int(match.group(2) or match.group(1))]}"

        return re.sub(r"\$(\$|\d+|\{(\d+)(?::\w+)?\})", written, self.text.replace("%", "%%"))
