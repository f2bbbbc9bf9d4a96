"""``ldmatrix``, ``stmatrix`` and ``mma.sync`` in inline PTX, as the instructions of the language (PTX ISA, "Warp-level
matrix instructions")."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.atoms.ldmatrix import LdMatrix
from tilewright.atoms.mma_sync import MmaSync
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.mma_sync_text import registers
from tilewright.atoms.ptx.text import Operand, Statement, parts
from tilewright.atoms.stmatrix import StMatrix
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.types import U16, U32, U64, ScalarType
from tilewright.lang.numbers.numeric import Uint16, Uint32, Uint64, class_of, wrap
from tilewright.lang.tensors.algebra import make_rmem_tensor, recast_tensor
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout, size

if TYPE_CHECKING:
    from tilewright.lang.device.ptx_registers import PtxRegisters

_MATRIX = re.compile(r"(ld|st)matrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?(?:\.shared(?:::cta)?)?\.b16")
ROW = 16
"""Bytes of a row of a matrix of ``ldmatrix``, and the alignment of its address."""


def follows(statement: Statement, regs: PtxRegisters) -> bool:
    """Whether the statement can be emitted as an instruction: no guard, since all lanes of the warp execute it."""
    return not statement.guard and _emitter(statement, regs) is not None


def emit(statement: Statement, regs: PtxRegisters) -> None:
    """Emit a statement that is followed."""
    emitter = _emitter(statement, regs)
    assert emitter is not None
    emitter()


def is_matrix(opcode: str) -> bool:
    """Whether a statement is of this kind."""
    return opcode.startswith(("ldmatrix.", "stmatrix.", "mma.sync."))


def _emitter(statement: Statement, regs: PtxRegisters) -> Callable[[], None] | None:
    if (match := _MATRIX.fullmatch(statement.opcode)) is not None:
        return _copy(regs, statement.operands, match[1] == "ld", int(match[2]), match[3] is not None)
    atom = _BY_MNEMONIC.get(statement.opcode)
    return None if atom is None else _product(regs, statement.operands, atom)


def _copy(
    regs: PtxRegisters, operands: tuple[Operand, ...], loads: bool, matrices: int, transpose: bool
) -> Callable[[], None] | None:
    if len(operands) != 2:
        return None
    row, words = operands[int(loads)], parts(operands[int(not loads)])
    if len(words) != matrices:
        name = "ldmatrix" if loads else "stmatrix"
        raise ConstraintError(f"inline PTX: {name} of x{matrices} takes {matrices} registers, not {len(words)}")
    declared = all(map(regs.declares, words)) if loads else True
    if not declared or not regs.reaches(row, "shared::cta"):
        return None

    def emitted() -> None:
        fragment = make_rmem_tensor(2 * matrices, Uint16)  # 16-bit cells, two for each 32-bit register
        cells = recast_tensor(fragment, Uint32)
        place = regs.place(row, U16, "shared", ROW)
        if not loads:
            _put(regs, cells, words, U32)
        atom: Any = LdMatrix(matrices, transpose) if loads else StMatrix(matrices, transpose)
        chosen = (tuple(range(2 * matrices)),)
        values = [fragment.engine.frag, place.value()]
        Builder.current().call(atom, values, registers=chosen, store=not loads, predicated=False)
        if loads:
            _take(regs, cells, words)

    return emitted


_BY_MNEMONIC = {atom.mnemonic(): atom for atom in MMA_SYNC.values() if type(atom) is MmaSync and atom.sm != 70}


def _product(regs: PtxRegisters, operands: tuple[Operand, ...], atom: MmaSync) -> Callable[[], None] | None:
    kinds = (atom.type_d, atom.type_a, atom.type_b, atom.type_d)
    layouts = (atom.layout_c, atom.layout_a, atom.layout_b, atom.layout_c)
    counts = [registers(kind, size(tv[1])) for kind, tv in zip(kinds, layouts, strict=True)]
    words = [parts(o) for o in operands]
    if len(words) != 4 or [len(w) for w in words] != counts:
        given = ", ".join(str(len(w)) for w in words)
        expected_counts = ", ".join(map(str, counts))
        raise ConstraintError(
            f"inline PTX: {atom.mnemonic()} takes D, A, B and C in {expected_counts} registers, not operands of {given}"
        )
    if not all(map(regs.declares, words[0])):
        return None

    def emitted() -> None:
        fragments = []
        for kind, tv, given in zip(kinds[1:], layouts[1:], words[1:], strict=True):
            fragment = make_rmem_tensor(size(tv[1]), class_of(kind))
            register = U64 if kind.width == 64 else U32
            _put(regs, _as_registers(fragment, kind), given, register)
            fragments.append((fragment, Layout((size(tv[1]), 1, 1))))
        (a, of_a), (b, of_b), (d, of_d) = fragments
        attrs: dict[str, Any] = {
            "d_layout": of_d,
            "a_layout": of_a,
            "b_layout": of_b,
            "d_offset": 0,
            "a_offset": 0,
            "b_offset": 0,
        }
        Builder.current().call(atom, [d.engine.frag, a.engine.frag, b.engine.frag], **attrs)
        _take(regs, _as_registers(d, atom.type_d), words[0])

    return emitted


def _as_registers(fragment: Tensor, kind: ScalarType) -> Tensor:
    return recast_tensor(fragment, Uint64 if kind.width == 64 else Uint32)


def _put(regs: PtxRegisters, cells: Tensor, words: tuple[str, ...], register: ScalarType) -> None:
    for i, word in enumerate(words):
        cells[i] = wrap(regs.number(word, register))


def _take(regs: PtxRegisters, cells: Tensor, words: tuple[str, ...]) -> None:
    for i, word in enumerate(words):
        regs.write(word, cells[i].ir_value())
