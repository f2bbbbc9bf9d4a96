"""Inline PTX that reaches memory, at which threads meet, with instructions of ``tcgen05``, or with a loop that waits
for an mbarrier, taken apart: these statements become operations of the language, which the simulator and its checks
follow (:mod:`.ptx_memory` and :mod:`.ptx_tcgen05` have them); what computes registers between them stays PTX.

Registers that a text declares outside of braces belong to the function: other texts of the kernel name them, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.atoms.ptx import carries
from tilewright.atoms.ptx.inline import REGISTERS, InlinePtx
from tilewright.atoms.ptx.step import ACTIONS
from tilewright.atoms.ptx.text import Program, Statement, parse, parts
from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import BOOL
from tilewright.lang.device import ptx_memory, ptx_tcgen05
from tilewright.lang.device.ptx_registers import WIDTHS, PtxRegisters, names, renamed, width_of, written
from tilewright.lang.device.warps import elected
from tilewright.lang.numbers.numeric import wrap
from tilewright.lang.staging.with_block import only_if
from tilewright.lang.tensors.algebra import make_rmem_tensor

_CANDIDATE = re.compile(
    r"tcgen05\.|\b(?:ld|st|atom|red|bar|barrier|mbarrier|fence|membar|griddepcontrol|setmaxnreg|elect|cp\.async|cp\.reduce|ldmatrix|stmatrix|mma\.sync)\b"
)
_BRANCH_OR_LABEL = re.compile(r"\bbra\b|\w+:\s")
_WITHOUT_RESULTS = {"nanosleep", "prefetch", "prefetchu"}
_OF_WARPS = ("shfl", "vote", "redux", "activemask")


def taken_apart(
    text: str, outputs: Sequence[str], inputs: Sequence[str], values: Sequence[Value]
) -> Sequence[Value] | None:
    """The results of a text that was emitted as operations: one that has such a statement, or declares registers of
    the function. None for a text that stays PTX, because it has none, or one that cannot be followed."""
    for_function = text.lstrip().startswith(".reg")
    plain = ptx_tcgen05.with_waits(text)
    if outputs and for_function or _BRANCH_OR_LABEL.search(plain) or "q" in (*outputs, *inputs):
        return None
    if not for_function and not _CANDIDATE.search(plain):
        return None
    program, results = parse(plain), [REGISTERS[letter] for letter in outputs]
    regs = PtxRegisters(program, results, inputs, values, for_function)
    if not for_function and not _can_be_emitted(program, regs, bool(outputs)):
        return None
    _emit(program.statements, regs, {f"${i}" for i in range(len(outputs))})
    return [Builder.current().bitcast(regs.read(f"${i}"), kind) for i, kind in enumerate(results)]


# -- which statements are operations -----------------------------------------------------------------------------------


def _is_operation(statement: Statement, regs: PtxRegisters) -> bool | None:
    """Whether a statement can be emitted as an operation; None for one that computes registers."""
    if ptx_tcgen05.is_here(statement.opcode) or statement.opcode.startswith("elect.sync"):
        return True
    return ptx_memory.follows(statement, regs)


def _can_be_emitted(program: Program, regs: PtxRegisters, has_outputs: bool) -> bool:
    """Whether a statement is an operation, all that are of such a kind can be followed, and the others compute
    registers."""
    kinds = [_is_operation(statement, regs) for statement in program.statements]
    if True not in kinds or False in kinds:
        return False
    for statement, is_operation in zip(program.statements, kinds, strict=True):
        if not is_operation:
            if statement.opcode.split(".")[0] not in ACTIONS.keys() - _WITHOUT_RESULTS:
                return False
        elif statement.guard and any(map(regs.is_predicate, written(statement))):
            return False
        elif has_outputs and statement.opcode.startswith("tcgen05."):
            return False
    if carries.last_over([s.opcode for s in program.statements], [bool(kind) for kind in kinds]):
        return False  # the carry of a piece of PTX is lost behind it
    return all(kind == "pred" or width_of(kind) in WIDTHS for kind in regs.types.values())


# -- operations, and pieces of PTX between them ------------------------------------------------------------------------


def _emit(statements: Sequence[Statement], regs: PtxRegisters, outputs: set[str]) -> None:
    piece: list[Statement] = []
    for i, statement in enumerate(statements):
        if _is_operation(statement, regs):
            _emit_piece(piece, regs, outputs.union(*map(names, statements[i:])))
            piece = []
            _emit_guarded(statement, regs)
        else:
            piece.append(statement)
    _emit_piece(piece, regs, outputs)


def _emit_guarded(statement: Statement, regs: PtxRegisters) -> None:
    """An operation, where its guard holds."""
    if not statement.guard:
        return _emit_operation(statement, regs)
    condition = regs.number(statement.guard.lstrip("!"), BOOL)
    if statement.guard.startswith("!"):
        condition = Builder.current().emit("xor", (condition, Constant(BOOL, True)), (BOOL,)).result
    results = [name for name in written(statement) if name in regs.types]
    cells = {name: make_rmem_tensor(1, WIDTHS[width_of(regs.types[name])][2]) for name in results}
    for name, cell in cells.items():  # where the guard is false, a register stays as it was
        cell[0] = wrap(regs.read(name)) if regs.is_readable(name) else 0
    with only_if(condition, "guard of an instruction"):
        _emit_operation(statement, regs)
        for name, cell in cells.items():
            cell[0] = wrap(regs.read(name))
    for name, cell in cells.items():
        regs.assign(name, cell[0].ir_value())


def _emit_operation(statement: Statement, regs: PtxRegisters) -> None:
    if statement.opcode.startswith("elect.sync"):  # elect.sync _|p, mask
        regs.assign(parts(statement.operands[0])[-1], elected().ir_value())
    elif ptx_tcgen05.is_here(statement.opcode):
        ptx_tcgen05.emit(statement, regs)
    else:
        ptx_memory.emit(statement, regs)


def _emit_piece(piece: Sequence[Statement], regs: PtxRegisters, read_later: set[str]) -> None:
    """Statements that compute registers, as one piece of PTX; its results are the registers that are read later."""
    if not piece:
        return
    assigned = list(dict.fromkeys(name for statement in piece for name in written(statement)))
    named = dict.fromkeys(name for statement in piece for name in names(statement))
    results = [name for name in assigned if name in read_later or name in regs.of_function]
    operands = [name for name in named if name in regs.types and regs.is_readable(name)]

    local = {name: f"r{i}" for i, name in enumerate(dict.fromkeys([*operands, *assigned]))}
    first = len(results)  # asm counts the results before the operands
    lines = [
        *(f".reg .{regs.types[name]} {local[name]};" for name in local),
        *(_read_operand(local[name], f"${i}", regs.types[name]) for i, name in enumerate(operands, first)),
        *(renamed(_text_of(statement), local) for statement in piece),
        *(_write_result(local[name], f"${i}", regs.types[name]) for i, name in enumerate(results)),
    ]
    values, letters = zip(*map(regs.operand, operands), strict=True) if operands else ((), ())
    forms = [regs.form(name) for name in results]
    of_warps = any(statement.opcode.split(".")[0] in _OF_WARPS for statement in piece)
    atom = InlinePtx(f"{{ {' '.join(lines)} }}", tuple(letter for letter, *_ in forms), letters, of_warps)
    made = Builder.current().call(atom, values, tuple(kind for _, kind, _ in forms))
    for name, value in zip(results, made, strict=True):
        regs.assign(name, value)


def _read_operand(register: str, operand: str, kind: str) -> str:
    """Move an operand of ``asm`` to a register; predicates are passed as numbers."""
    if kind == "pred":
        return f"setp.ne.b32 {register}, {operand}, 0;"
    return f"mov.b{width_of(kind)} {register}, {operand};"


def _write_result(register: str, result: str, kind: str) -> str:
    """Move a register to a result of ``asm``."""
    if kind == "pred":
        return f"selp.b32 {result}, 1, 0, {register};"
    return f"mov.b{width_of(kind)} {result}, {register};"


def _text_of(statement: Statement) -> str:
    """The statement as PTX."""
    guard = f"@{statement.guard} " if statement.guard else ""
    pair = statement.opcode.startswith(("setp", "shfl"))  # two results, of which the second is a predicate
    operands = [
        o if isinstance(o, str) else "|".join(o) if pair and not i else f"{{{', '.join(o)}}}"
        for i, o in enumerate(statement.operands)
    ]
    return f"{guard}{statement.opcode} {', '.join(operands)};"
