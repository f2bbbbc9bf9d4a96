"""Handlers of the golden lines about atoms, tiled copies and tiled MMAs."""

from __future__ import annotations

from typing import Any

from tests.golden import handler
from tilewright.atoms.names import copy_by_name, mma_by_name
from tilewright.atoms.value_types import shown
from tilewright.layout import recast_layout, size

# The header's own slip: a stride with one parenthesis too many, not congruent with its shape.
UPSTREAM_SLIP = {"ALayout": "((4,8),(32,2)):((512,1),((16,8)))"}


@handler("mma_atom")
def _mma_atom(line: dict[str, Any]) -> dict[str, Any]:
    atom = mma_by_name(line["args"][0])
    result: dict[str, Any] = {
        "Shape_MNK": atom.shape_mnk, "ThrID": atom.thr_id,
        "ALayout": atom.layout_a, "BLayout": atom.layout_b, "CLayout": atom.layout_c,
        "ValTypeD": shown(atom.type_d), "ValTypeA": shown(atom.type_a),
        "ValTypeB": shown(atom.type_b), "ValTypeC": shown(atom.type_c),
    }  # fmt: skip
    if line["args"][0].startswith("SM80_16x8x128_S32U1U1S32_TN"):
        assert str(atom.layout_a) == "((4,8),(32,2)):((512,1),(16,8))"
        result |= UPSTREAM_SLIP
    return {"result": result}


@handler("copy_atom")
def _copy_atom(line: dict[str, Any]) -> dict[str, Any]:
    atom = copy_by_name(line["args"][0])
    return {
        "result": {
            "ThrID": atom.thr_id,
            "SrcLayout": atom.src_bits,
            "DstLayout": atom.dst_bits,
            "RefLayout": atom.ref_bits,
        }
    }


@handler("copy_atom_val")
def _copy_atom_val(line: dict[str, Any]) -> dict[str, Any]:
    name, bits = line["args"]
    atom = copy_by_name(name)
    source, target, reference = (recast_layout(int(bits), 1, x) for x in (atom.src_bits, atom.dst_bits, atom.ref_bits))
    return {
        "result": {
            "ThrID": atom.thr_id, "ValLayoutSrc": source, "ValLayoutDst": target, "ValLayoutRef": reference,
            "NumValSrc": size(source[1]), "NumValDst": size(target[1]),
        }
    }  # fmt: skip
