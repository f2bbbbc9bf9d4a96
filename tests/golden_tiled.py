"""Handlers of the golden lines about atoms, tiled copies and tiled MMAs."""

from __future__ import annotations

import re
from typing import Any

from tests.golden import handler
from tilewright.atoms.names import copy_by_name, mma_by_name
from tilewright.atoms.value_types import shown
from tilewright.ir.types import F16, F32, F64, U8
from tilewright.layout import make_layout, make_layout_right, parse, recast_layout, size
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.make_copy import (
    make_cotiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tiled_copy_tv,
)
from tilewright.tiled.tiled_copy import TiledCopy
from tilewright.tiled.tiled_mma import TiledMma, make_tiled_mma

# The header's own slip: a stride with one parenthesis too many, not congruent with its shape.
UPSTREAM_SLIP = {"ALayout": "((4,8),(32,2)):((512,1),((16,8)))"}


@handler("mma_atom")
def _mma_atom(line: dict[str, Any]) -> dict[str, Any]:
    atom = mma_by_name(line["args"][0])
    result: dict[str, Any] = {
        "Shape_MNK": atom.shape_mnk,
        "ThrID": atom.thr_id,
        "ALayout": atom.layout_a,
        "BLayout": atom.layout_b,
        "CLayout": atom.layout_c,
        "ValTypeD": shown(atom.type_d),
        "ValTypeA": shown(atom.type_a),
        "ValTypeB": shown(atom.type_b),
        "ValTypeC": shown(atom.type_c),
    }
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
            "ThrID": atom.thr_id,
            "ValLayoutSrc": source,
            "ValLayoutDst": target,
            "ValLayoutRef": reference,
            "NumValSrc": size(source[1]),
            "NumValDst": size(target[1]),
        }
    }


# -- tiled MMAs and copies
# ------------------------------------------------------------------------------------------------

VALUE_TYPES = {8: U8, 16: F16, 32: F32, 64: F64}


def _tiled_mma(args: dict[str, Any]) -> TiledMma:
    return make_tiled_mma(mma_by_name(args["atom"]), parse(args["atom_layout"]), parse(args["permutation"]))


@handler("tiled_mma")
def _tiled_mma_line(line: dict[str, Any]) -> dict[str, Any]:
    mma = _tiled_mma(line["args"])
    return {
        "result": {
            "thr_layout_vmnk": mma.thr_layout_vmnk,
            "tile_shape": mma.tile_shape_mnk,
            "size": mma.size,
            "layoutA_TV": mma.tv_layout_A_tiled,
            "layoutB_TV": mma.tv_layout_B_tiled,
            "layoutC_TV": mma.tv_layout_C_tiled,
        }
    }


@handler("partition_A", "partition_B", "partition_C")
def _partition(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    thread = _tiled_mma(args).get_slice(args["thr"])
    layout, offset = thread.partition(line["op"][-1], parse(args["tensor"]))
    return {"result": layout, "offset": offset}


@handler("partition_fragment")
def _partition_fragment(line: dict[str, Any]) -> dict[str, Any]:
    mma = _tiled_mma(line["args"])
    m, n, k = parse(line["args"]["shape_MNK"])
    result = {f"shape{x}": mma.partition_shape(x, shape) for x, shape in (("A", (m, k)), ("B", (n, k)), ("C", (m, n)))}
    thread = mma.get_slice(0)
    for x, shape in (("A", (m, k)), ("B", (n, k)), ("C", (m, n))):
        sources = (
            {"": make_layout(shape)} if x == "C" else {"_row": make_layout_right(shape), "_col": make_layout(shape)}
        )
        for order, source in sources.items():
            if f"frag{x}{order}" in line["result"]:
                result[f"frag{x}{order}"] = mma.fragment_layout(x, thread.partition(x, source)[0])
    return {"result": result}


def _copy_atom_of(name: str, bits: int) -> CopyAtom:
    return CopyAtom(copy_by_name(name), VALUE_TYPES[bits])


def _tiled_copy(args: dict[str, Any]) -> TiledCopy:
    kind, bits = args["kind"], args.get("bits", 16)
    if kind == "make_tiled_copy":
        atom = _copy_atom_of(args["atom"], bits)
        return make_tiled_copy_tv(atom, parse(args["thr_layout"]), parse(args["val_layout"]))
    nested = re.fullmatch(r"make_tiled_copy_([SD])\((.+),(make_tiled_copy_\w+)(?:\((.+)\))?\)", kind)
    if nested:
        side, atom_name, inner, inner_atom = nested.groups()
        names = {"LDSM_x4": "SM75_U32x4_LDSM_N", "STSM": args.get("copy_atom")}
        base = _tiled_copy(args | {"kind": inner, "copy_atom": names.get(inner_atom, inner_atom) or args["copy_atom"]})
        make = make_tiled_copy_S if side == "S" else make_tiled_copy_D
        return make(_copy_atom_of(names.get(atom_name, atom_name), bits), base)
    atom = _copy_atom_of(args["copy_atom"], bits)
    if kind == "make_cotiled_copy":
        return make_cotiled_copy(atom, parse(args["atom_tv_layout"]), parse(args["data_layout"]))
    makers = {
        "make_tiled_copy_A": make_tiled_copy_A,
        "make_tiled_copy_B": make_tiled_copy_B,
        "make_tiled_copy_C": make_tiled_copy_C,
        "make_tiled_copy_C_atom": make_tiled_copy_C_atom,
    }
    return makers[kind](atom, _tiled_mma(args))


@handler("tiled_copy")
def _tiled_copy_line(line: dict[str, Any]) -> dict[str, Any]:
    copy = _tiled_copy(line["args"])
    return {
        "result": {
            "TiledLayout_TV": copy.layout_tv_tiled,
            "Tiler_MN": copy.tiler,
            "size": copy.size,
            "layoutS_TV": copy.layout_src_tv_tiled,
            "layoutD_TV": copy.layout_dst_tv_tiled,
            "ValLayoutSrc": copy.layout_src_tv,
            "ValLayoutDst": copy.layout_dst_tv,
        }
    }


@handler("partition_S", "partition_D")
def _partition_copy(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    thread = _tiled_copy(args).get_slice(args["thr"])
    partition = thread.partition_S if line["op"][-1] == "S" else thread.partition_D
    layout, offset = partition(parse(args["tensor"]))
    return {"result": layout, "offset": offset}


@handler("partition_S_swizzled", "partition_D_swizzled")
def _partition_swizzled(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    thread = _tiled_copy(args).get_slice(args["thr"])
    partition = thread.partition_S if line["op"][len("partition_")] == "S" else thread.partition_D
    layout, offset = partition(parse(args["tensor"]))
    return {"shape": layout.shape, "result": [offset + layout(i) for i in range(size(layout))]}


@handler("retile_S", "retile_D")
def _retile(line: dict[str, Any]) -> dict[str, Any]:
    return {"result": _tiled_copy(line["args"]).retile(parse(line["args"]["fragment"]))}
