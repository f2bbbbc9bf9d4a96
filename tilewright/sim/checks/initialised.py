"""Which fragments of a kernel may be read before they are written, and which surely are: from what its regions prove.

From top to bottom the registers of each fragment that are surely written are known; a read of others makes the fragment
*maybe_unwritten*, and only maybe_unwritten ones are watched while the kernel runs. Invariant: in every run, a read of a
fragment that is not *maybe_unwritten* finds its registers written.

The same way through the kernel with the registers that *some* path has written gives the *never_written* fragments:
those with a read above which nothing writes the register. Such a read is a mistake where it is executed, unless a later
line of a loop's body has written the register in an earlier iteration; so these few are watched by default as well.
"""

from __future__ import annotations

from typing import Any

from tilewright.atoms.tables import offsets
from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.types import FragType

Written = dict[Value, frozenset[int]]


def maybe_unwritten(function: Function) -> set[Op]:
    """The ``frag.alloc`` ops whose registers may be read before they are written."""
    fragments: set[Op] = set()
    _follow(function.body, {}, fragments, sure=True)
    return fragments


def never_written(function: Function) -> set[Op]:
    """The ``frag.alloc`` ops of which a register is read that no op above the read writes, on any path."""
    fragments: set[Op] = set()
    _follow(function.body, {}, fragments, sure=False)
    return fragments


def _follow(block: Block, written: Written, fragments: set[Op], sure: bool) -> Written:
    """The registers that are written after a block, given those before it: on all paths (``sure``), or on some."""
    for op in block.ops:
        if op.opcode == "if":
            # Surely written after a branch is what both arms write; an arm without an else writes nothing.
            arms = [_follow(region, dict(written), fragments, sure) for region in op.regions]
            written = in_both(*arms) if sure else _in_either(*arms)
        elif op.opcode == "for":
            # A loop that may run no iteration is not sure to write anything.
            after = _follow(op.regions[0], dict(written), fragments, sure)
            written = after if not sure or _turns(op) else written
        elif op.opcode == "while":
            # The condition of a while loop is evaluated at least once, its body possibly never.
            written = _follow(op.regions[0], written, fragments, sure)
            after = _follow(op.regions[1], dict(written), fragments, sure)
            written = written if sure else after
        else:
            reads, writes = touched(op) if sure else possibly_touched(op, written)
            for value, needed in reads:
                if value.op is not None and not needed <= written.get(value, frozenset()):
                    fragments.add(value.op)
            for value, registers in writes:
                written[value] = written.get(value, frozenset()) | registers
    return written


def in_both(one: Written, other: Written) -> Written:
    return {v: one[v] & other.get(v, frozenset()) for v in one}


def _in_either(one: Written, other: Written) -> Written:
    return {v: one.get(v, frozenset()) | other.get(v, frozenset()) for v in {**one, **other}}


def _turns(op: Op) -> bool:
    """Whether a loop runs at least one iteration."""
    lo, hi, step = op.operands[:3]
    if not all(isinstance(v, Constant) for v in (lo, hi, step)):
        return False
    first, last, by = (int(v.value) for v in (lo, hi, step) if isinstance(v, Constant))
    return first < last if by > 0 else first > last


Touches = list[tuple[Value, frozenset[int]]]


def touched(op: Op) -> tuple[Touches, Touches]:
    """The registers that an op reads, and those that it surely writes."""
    if op.opcode == "frag.alloc":
        return [], []
    if op.opcode in ("frag.load", "frag.store"):
        frag = op.operands[0]
        # A register that is chosen at run time: a load may read any, a store surely writes none.
        if len(op.operands) > (1 if op.opcode == "frag.load" else 2):  # a run-time index
            return ([(frag, _all(frag))], []) if op.opcode == "frag.load" else ([], [])
        touched = [(frag, frozenset(op.attrs["offsets"]))]
        return (touched, []) if op.opcode == "frag.load" else ([], touched)
    fragments = [v for v in op.operands if isinstance(v.type, FragType)]
    if op.opcode != "call":
        return [(v, _all(v)) for v in fragments], []
    atom = op.attrs["atom"]
    if atom.multiplies:
        return _product(op)
    if atom.copies and "registers" in op.attrs and "source_registers" not in op.attrs:
        touched = [(op.operands[0], frozenset(r for group in op.attrs["registers"] for r in group))]
        if op.attrs.get("store"):
            return touched, []
        return [], [] if op.attrs.get("predicated") else touched
    return [(v, _all(v)) for v in fragments], []


def possibly_touched(op: Op, written: Written) -> tuple[Touches, Touches]:
    """The registers that an op surely reads, and those that it may write, where ``written`` may be written before."""
    fragments = [(v, _all(v)) for v in op.operands if isinstance(v.type, FragType)]
    if op.opcode == "frag.load" and len(op.operands) > 1:  # it reads one of them
        return [(v, every) for v, every in fragments if not written.get(v)], []
    if op.opcode == "frag.store" and len(op.operands) > 2:  # it writes one of them
        return [], fragments
    if op.opcode != "call":
        return touched(op)
    atom = op.attrs["atom"]
    if atom.multiplies:
        reads, writes = _product(op)
        decided = len(op.operands) < 4 or isinstance(op.operands[3], Constant)  # whether it adds to D
        return (reads if decided else [r for r in reads if r[0] is not op.operands[0]]), writes + fragments[:1]
    if atom.copies and "registers" in op.attrs and "source_registers" not in op.attrs:
        named = [(op.operands[0], frozenset(r for group in op.attrs["registers"] for r in group))]
        return (named, []) if op.attrs.get("store") else ([], named)
    return [], fragments


def _product(op: Op) -> tuple[Touches, Touches]:
    d, a, b = op.operands[:3]
    roles = [("d", d), ("a", a), ("b", b), *zip("e", op.operands[4:], strict=False)]
    named = {role: product_registers(op, role) for role, value in roles if isinstance(value.type, FragType)}
    fresh = len(op.operands) > 3 and isinstance(op.operands[3], Constant) and not op.operands[3].value
    reads = [(v, named[role]) for role, v in roles if role in named]
    return (reads[1:], [(d, named["d"])]) if fresh and "d" in named else (reads, [])


def product_registers(op: Op, role: str) -> frozenset[int]:
    """The registers of a fragment that a product names as its operand ``d``, ``a`` or ``b``."""
    start = int(op.attrs.get(f"{role}_offset", 0))
    return frozenset(start + int(o) for o in offsets(op.attrs[f"{role}_layout"]).reshape(-1))


def _all(value: Any) -> frozenset[int]:
    return frozenset(range(value.type.n))
