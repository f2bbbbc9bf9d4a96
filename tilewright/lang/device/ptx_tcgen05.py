"""Statements of ``tcgen05`` in inline PTX, and the loop that waits for an mbarrier, as operations of ``cute.arch``
(PTX ISA, "TensorCore 5th Generation Family Instructions")."""

from __future__ import annotations

import re
from collections.abc import Callable

from tilewright.atoms.ptx.text import Operand, Statement
from tilewright.atoms.tcgen05_described import DescribedCopy, DescribedMma
from tilewright.atoms.tcgen05_validity import instruction_k
from tilewright.atoms.tensor_memory_shift import TmemShift
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.types import BOOL, I32, I64
from tilewright.lang.device import mbarriers
from tilewright.lang.device.ptx_registers import PtxRegisters
from tilewright.lang.device.tensor_memory import (
    alloc_tmem,
    dealloc_tmem,
    fence_view_async_tmem_load,
    fence_view_async_tmem_store,
    relinquish_tmem_alloc_permit,
    tcgen05_commit,
    tcgen05_fence_after_thread_sync,
    tcgen05_fence_before_thread_sync,
)
from tilewright.lang.numbers.numeric import Int16, Int32, wrap
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor_memory import TensorMemory

_WAIT_LOOP = re.compile(
    r"(?P<loop>\w+):\s*mbarrier\.(?:try|test)_wait\.parity[.\w:]*\s+(?P<done>\w+),\s*(?P<place>\[[^]]+\]),\s*"
    r"(?P<parity>[\w$]+)(?:,\s*\w+)?;\s*@(?P=done)\s+bra(?:\.uni)?\s+(?P<end>\w+);\s*bra(?:\.uni)?\s+(?P=loop);\s*"
    r"(?P=end):"
)
_WAIT = "mbarrier.wait.parity"
"""The statement that :func:`with_waits` puts in place of a loop. PTX has none of this name."""


def with_waits(text: str) -> str:
    """The text with one statement for each loop that waits until the phase of an mbarrier is complete."""
    return _WAIT_LOOP.sub(rf"{_WAIT} \g<place>, \g<parity>;", text)


def is_here(opcode: str) -> bool:
    """Whether a statement is of ``tcgen05``, or the wait of a loop."""
    return opcode.startswith(("tcgen05.", _WAIT))


def emit(statement: Statement, regs: PtxRegisters) -> None:
    """Emit a statement; its guard is the caller's. ConstraintError for a form that has no operation."""
    for pattern, emit_form in _FORMS:
        if (form := pattern.fullmatch(statement.opcode)) is not None:
            return emit_form(form, statement.operands, regs)
    raise ConstraintError(f"inline PTX: {statement.opcode} is not supported yet")


def _wait(form: re.Match[str], operands: tuple[Operand, ...], regs: PtxRegisters) -> None:
    barrier, parity = operands
    mbarriers.mbarrier_wait(regs.shared_pointer(barrier), wrap(regs.number(parity, I32)))


def _fence(form: re.Match[str], operands: tuple[Operand, ...], regs: PtxRegisters) -> None:
    fence = tcgen05_fence_before_thread_sync if form["side"] == "before" else tcgen05_fence_after_thread_sync
    fence()


def _wait_for_moves(form: re.Match[str], operands: tuple[Operand, ...], regs: PtxRegisters) -> None:
    wait = fence_view_async_tmem_load if form["of"] == "ld" else fence_view_async_tmem_store
    wait()


def _commit(form: re.Match[str], operands: tuple[Operand, ...], regs: PtxRegisters) -> None:
    mask = Int16(wrap(regs.number(operands[1], I32))) if form["multicast"] else None
    tcgen05_commit(regs.shared_pointer(operands[0]), mask, int(form["ctas"]))


def _shift(form: re.Match[str], operands: tuple[Operand, ...], regs: PtxRegisters) -> None:
    Builder.current().call(TmemShift(int(form["ctas"])), [regs.tensor_memory_address(operands[0])], ())


def _relinquish(form: re.Match[str], operands: tuple[Operand, ...], regs: PtxRegisters) -> None:
    relinquish_tmem_alloc_permit(form["ctas"] == "2")


def _columns(form: re.Match[str], operands: tuple[Operand, ...], regs: PtxRegisters) -> None:
    """``alloc [shared], columns`` or ``dealloc address, columns``."""
    place, number = operands
    constant = regs.constant(number)
    columns = wrap(regs.number(number, I32)) if constant is None else constant
    if form["does"] == "alloc":
        alloc_tmem(columns, Pointer(regs.shared_pointer(place).value(), Int32), form["ctas"] == "2")
    else:
        dealloc_tmem(TensorMemory(wrap(regs.number(place, I32)), Int32), columns, form["ctas"] == "2")


def _copy(form: re.Match[str], operands: tuple[Operand, ...], regs: PtxRegisters) -> None:
    copy = DescribedCopy(form["shape"], int(form["ctas"]), form["format"] or "")
    Builder.current().call(copy, [regs.tensor_memory_address(operands[0]), regs.number(operands[1], I64)], ())


def _mma(form: re.Match[str], operands: tuple[Operand, ...], regs: PtxRegisters) -> None:
    """``[d], a, b, [metadata], idesc, [scale_a], [scale_b], {disabled lanes}, enable_input_d, scale_d``; of ``.ws`` a
    mask of columns that are zero in place of the scale. Brackets around ``a``: it is in tensor memory."""
    d, a, b, *rest = operands
    places = [rest.pop(0)] if form["sparse"] else []
    descriptor, *rest = rest
    if form["scaled"]:
        places += [rest.pop(0), rest.pop(0)]
    disabled_lanes = rest.pop(0) if rest and isinstance(rest[0], tuple) else ()
    enable_input_d, *rest = rest
    scale_d = rest.pop() if rest and not form["ws"] else "0"
    zero_columns = rest
    if (
        len(zero_columns) > bool(form["ws"])
        or not isinstance(enable_input_d, str)
        or not (isinstance(scale_d, str) and scale_d.isdecimal())
    ):
        raise ConstraintError(
            "inline PTX: behind the instruction descriptor tcgen05.mma takes the lanes of D to leave alone, "
            "whether it adds to D, and a scale of D, a number; .ws a zero-column mask instead"
        )
    kind, source = form["kind"], "TS" if str(a).startswith("[") else "SS"
    factors, elements = int(form["factors"] or 0), int(form["elements"] or 0)
    if form["scaled"] and not factors and not elements:
        factors = instruction_k(kind) // 32
    mma = DescribedMma(
        kind,
        int(form["ctas"]),
        source,
        factors,
        bool(form["sparse"]),
        bool(form["ws"]),
        bool(zero_columns),
        form["collector"] or "",
        elements,
        len(disabled_lanes),
        int(scale_d),
    )
    values = [
        regs.tensor_memory_address(d),
        regs.tensor_memory_address(a) if source == "TS" else regs.number(a, I64),
        regs.number(b, I64),
        regs.number(descriptor, I32),
        regs.number(enable_input_d, BOOL),
        *(regs.tensor_memory_address(place) for place in places),
        *(regs.number(mask, I64) for mask in zero_columns),
        *(regs.number(lanes, I32) for lanes in disabled_lanes),
    ]
    Builder.current().call(mma, values, ())


_Form = tuple[str, Callable[[re.Match[str], tuple[Operand, ...], PtxRegisters], None]]
_PATTERNS: tuple[_Form, ...] = (
    (re.escape(_WAIT), _wait),
    (r"tcgen05\.fence::(?P<side>before|after)_thread_sync", _fence),
    (r"tcgen05\.wait::(?P<of>ld|st)\.sync\.aligned", _wait_for_moves),
    (
        r"tcgen05\.mma(?P<ws>\.ws)?(?P<sparse>\.sp)?\.cta_group::(?P<ctas>[12])\.kind::(?P<kind>\w+)"
        r"(?P<scaled>\.block_scale(?:\.scale_vec::(?P<factors>[124])X|\.block(?P<elements>16|32))?)?"
        r"(?:\.collector::(?P<collector>\w+::\w+))?",
        _mma,
    ),
    (
        r"tcgen05\.commit\.cta_group::(?P<ctas>[12])\.mbarrier::arrive::one(?:\.shared::cluster)?"
        r"(?P<multicast>\.multicast::cluster)?\.b64",
        _commit,
    ),
    (r"tcgen05\.shift\.(?:down\.)?cta_group::(?P<ctas>[12])(?:\.down)?", _shift),
    (r"tcgen05\.relinquish_alloc_permit\.cta_group::(?P<ctas>[12])\.sync\.aligned", _relinquish),
    (
        r"tcgen05\.(?P<does>alloc|dealloc)\.cta_group::(?P<ctas>[12])\.sync\.aligned(?:\.shared::cta)?(?:\.b32)?",
        _columns,
    ),
    (
        r"tcgen05\.cp\.cta_group::(?P<ctas>[12])\.(?P<shape>\d+x\d+b(?:\.warpx[24](?:::\d+_\d+)?)?)"
        r"(?:\.b8x16\.(?P<format>\w+))?",
        _copy,
    ),
)
_FORMS = tuple((re.compile(pattern), emit_form) for pattern, emit_form in _PATTERNS)
