"""The operands of a ``wgmma`` call, and what they must meet.

Operands ``[d, a, b, accumulate]``: ``d`` is a fragment; ``b`` (and ``a`` in the SS form) the low word of a matrix
descriptor (i32), whose high word is the attribute ``b_high``; ``a`` in the RS form a fragment; ``accumulate`` an i1:
whether the first instruction along K adds to D or overwrites it. Attributes: ``d_layout (V, M, N)``, ``d_offset``;
``b_layout (1, N, K)`` and, for descriptors, ``a_layout (1, M, K)`` count units of 16 bytes and are added to the low
word; for registers ``a_layout (V, M, K)`` and ``a_offset`` count registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.atoms.mma import check_rest_modes
from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.types import BOOL, I32
from tilewright.layout.evaluate import static_offsets

if TYPE_CHECKING:
    from tilewright.atoms.wgmma import WgmmaAtom


def verify(atom: WgmmaAtom, op: Op) -> None:
    """Raise ConstraintError where the operands of a call do not fit."""
    count = 4 if atom.sparsity == 1 else 5
    if len(op.operands) != count:
        more = "" if count == 4 else ", and the metadata of a"
        raise ConstraintError(
            f"{atom}: takes d, a, b and whether it accumulates{more}, not {len(op.operands)} operands"
        )
    d, a, b, accumulate = op.operands[:4]
    layouts = [op.attrs[f"{x}_layout"] for x in "dab"]
    atom._verify_operand("D", d.type, layouts[0], op.attrs["d_offset"], atom.layout_c, atom.type_d)
    _verify_values_in_order(atom, op)
    if atom.reads_shared("A"):
        _verify_descriptor(atom, "A", a.type)
    else:
        atom._verify_operand("A", a.type, layouts[1], op.attrs["a_offset"], atom.layout_a, atom.type_a)
    _verify_descriptor(atom, "B", b.type)
    if accumulate.type != BOOL:
        raise ConstraintError(f"{atom}: whether it accumulates is a Boolean, not {accumulate.type}")
    check_rest_modes(atom, op)


def _verify_descriptor(atom: WgmmaAtom, role: str, type_: Any) -> None:
    if type_ != I32:
        raise ConstraintError(
            f"{atom}: reads {role} from shared memory, through descriptors (make_fragment_{role} of the partitioned "
            f"shared-memory tensor), not from {type_}"
        )


def _verify_values_in_order(atom: WgmmaAtom, op: Op) -> None:
    """The accumulators of one instruction are neighbours: so they stay where they are for a whole kernel."""
    values = static_offsets(op.attrs["d_layout"][0])
    if values != tuple(range(len(values))):
        raise ConstraintError(
            f"{atom}: the accumulators of one instruction must be side by side in the fragment, but D is "
            f"{op.attrs['d_layout']}: make it with make_fragment_C"
        )
