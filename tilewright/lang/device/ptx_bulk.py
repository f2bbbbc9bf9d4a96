"""``cp.async.bulk`` and ``cp.reduce.async.bulk`` in inline PTX, as the bulk copies of the language (PTX ISA, "Data
Movement and Conversion Instructions: Bulk copy"). Sizes are known while staging; other statements stay PTX."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tilewright.atoms.bulk_copy import ALIGNMENT, BulkCopy, BulkLoad, BulkStore, BulkToBlock
from tilewright.atoms.ptx.text import Operand, Statement
from tilewright.atoms.reductions import reduction_element
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import I16, I32, I64, U8
from tilewright.lang.device.bulk_bytes import place_operand
from tilewright.lang.device.ptx_instructions import same_number
from tilewright.lang.tensors.pointer import Pointer

if TYPE_CHECKING:
    from tilewright.lang.device.ptx_registers import PtxRegisters

_LOAD = re.compile(
    r"cp\.async\.bulk\.shared::(?:cta|cluster)\.global\.mbarrier::complete_tx::bytes"
    r"(\.multicast::cluster)?(\.L2::cache_hint)?"
)
_STORE = re.compile(
    r"cp\.(?:reduce\.)?async\.bulk\.global\.shared::cta\.bulk_group(\.L2::cache_hint)?"
    r"(?:\.([a-z]+)\.((?:noftz\.)?\w+))?"
)
_TO_BLOCK = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"


def follows(statement: Statement, regs: PtxRegisters) -> bool:
    """Whether the statement can be emitted as a bulk copy: its addresses were made from pointers of the program."""
    return _emitter(statement, regs) is not None


def emit(statement: Statement, regs: PtxRegisters) -> None:
    """Emit a statement that is followed."""
    emitter = _emitter(statement, regs)
    assert emitter is not None
    emitter()


def _emitter(statement: Statement, regs: PtxRegisters) -> Callable[[], None] | None:
    """A function that emits the statement as a bulk copy; None for one that is not followed."""
    operands = statement.operands
    size = regs.constant(operands[2]) if len(operands) > 2 else None
    if size is None:
        return None
    if (match := _LOAD.fullmatch(statement.opcode)) is not None:
        return _load(regs, operands, size, *map(bool, match.groups()))
    if (match := _STORE.fullmatch(statement.opcode)) is not None:
        reduces = statement.opcode.startswith("cp.reduce")
        return _store(regs, operands, size, bool(match[1]), match[2], match[3]) if reduces is bool(match[2]) else None
    if statement.opcode == _TO_BLOCK and len(operands) == 4:
        return _to_block(regs, operands, size)
    return None


def _load(
    regs: PtxRegisters, operands: tuple[Operand, ...], size: int, multicast: bool, hint: bool
) -> Callable[[], None] | None:
    if len(operands) != 4 + multicast + hint or not regs.reaches(operands[1], "global"):
        return None
    target, barrier = regs.shared_place(operands[0]), regs.shared_place(operands[3])
    if target is None or barrier is None or target[1] is not None or barrier[1] is not None:
        return None  # only what lies in the own block, or in several at the same place
    to, at = target[0], barrier[0]

    def emitted() -> None:
        shared = [place_operand(at, "mbarrier", I64, 8)]
        shared += [regs.number(operands[4], I16)] * multicast + [regs.number(operands[-1], I64)] * hint
        _call(BulkLoad(U8.width, hint, multicast), shared, to, regs.place(operands[1], U8, "global", ALIGNMENT), size)

    return emitted


def _store(
    regs: PtxRegisters, operands: tuple[Operand, ...], size: int, hint: bool, reduction: str | None, written: str | None
) -> Callable[[], None] | None:
    element = U8 if reduction is None else reduction_element(reduction, written or "")
    in_reach = regs.reaches(operands[0], "global") and regs.reaches(operands[1], "shared::cta")
    if len(operands) != 3 + hint or not in_reach or element is None:
        return None

    def emitted() -> None:
        to, of = (regs.place(operands[i], element, space, ALIGNMENT) for i, space in enumerate(("global", "shared")))
        store = BulkStore(element.width, hint, reduction or "", element if reduction else None)
        _call(store, [regs.number(operands[3], I64)] if hint else [], to, of, size)

    return emitted


def _to_block(regs: PtxRegisters, operands: tuple[Operand, ...], size: int) -> Callable[[], None] | None:
    target, barrier = regs.shared_place(operands[0]), regs.shared_place(operands[3])
    if target is None or barrier is None or not regs.reaches(operands[1], "shared::cta"):
        return None
    (to, rank), (at, other) = target, barrier
    if rank is None or other is None or not same_number(rank, other):
        return None

    def emitted() -> None:
        shared = [place_operand(at, "mbarrier", I64, 8), Builder.current().cast(rank, I32)]
        _call(BulkToBlock(U8.width), shared, to, regs.place(operands[1], U8, "shared::cta", ALIGNMENT), size)

    return emitted


def _call(copy: BulkCopy, shared: list[Value], to: Pointer, of: Pointer, size: int) -> None:
    element = U8 if not isinstance(copy, BulkStore) or copy.element is None else copy.element
    sides = [place_operand(place, copy.mnemonic(), element) for place in (to, of)]
    Builder.current().call(copy, [*shared, *sides], count=1, bytes=size)
