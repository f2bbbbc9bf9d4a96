"""Handlers of the golden lines about epilogues of sm_100: tiles, loads, stores, atoms."""

from __future__ import annotations

from typing import Any

from tests.golden import handler
from tests.golden_blackwell import atom_kind, type_of
from tilewright.lang.numbers.numeric import class_of
from tilewright.layout import get_nonswizzle_portion, make_smem_atom, parse, size
from tilewright.layout.smem_atoms import BYTE_SWIZZLES
from tilewright.utils.blackwell_helpers import compute_epilogue_tile_shape, get_smem_layout_atom_epi, get_tmem_load_op
from tilewright.utils.epilogue_copies import (
    MatrixCopy,
    TmemLoad,
    block_scaled_epilogue_tile,
    matrix_store,
    tmem_load,
)
from tilewright.utils.layout_enum import LayoutEnum

ORDERS = {"row": LayoutEnum.ROW_MAJOR, "column": LayoutEnum.COL_MAJOR}


def _load_name(load: TmemLoad) -> str:
    lanes, bits = load.shape.removesuffix("x2").split("x")
    return f"SM100_TMEM_LOAD_{lanes}dp{bits}{load.repeat}x{'_16b' * load.pack}"


def _copy_name(copy: MatrixCopy | None, to: str) -> str:
    """``to``: STSM or LDSM."""
    if copy is None:
        return "AutoVectorizingCopy"
    if copy.width == 8:
        return f"SM100_U8x{4 * copy.matrices}_{to}_T"
    prefix = "SM90" if to == "STSM" else "SM75"
    return f"{prefix}_U16x{2 * copy.matrices}_{to}_T" if copy.transpose else f"{prefix}_U32x{copy.matrices}_{to}_N"


@handler("sm100_tmem_load_op")
def _load(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    widths = type_of(args["type_acc"]).width, type_of(args["type_D"]).width
    m_major = args["layout_D"] == "column"
    load = tmem_load(args["datapaths"], args["columns"], *widths, m_major)
    store = _copy_name(matrix_store(load, *widths, m_major), "STSM")
    return {"result": {"tmem_load_op": _load_name(load), "smem_store_op": store}}


@handler("sm100_epilogue")
def _epilogue(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    m, n, k = parse(args["mma_tile"])
    two, acc, d = args["two_sm"], type_of(args["type_acc"]), type_of(args["type_D"])
    c = None if args["type_C"] == "none" else type_of(args["type_C"])
    tile = (m // (2 if two else 1), n, k)
    warps = (2, 2) if tile[0] == 64 and two else (4, 1)
    order_c, order_d = ORDERS[args["layout_C"]], ORDERS[args["layout_D"]]
    found = compute_epilogue_tile_shape(
        tile,
        two,
        order_d,
        class_of(d),
        layout_c=order_c,
        elem_ty_c=None if c is None else class_of(c),
    )
    special = block_scaled_epilogue_tile(*tile[:2]) if args["block_scaled"] else None
    found = special or found
    shape = special or tuple(int(size(mode)) for mode in found)
    part = shape[0] // warps[0], shape[1] // warps[1]
    m_major = args["layout_D"] == "column"
    atom = get_tmem_load_op(tile, order_d, class_of(d), class_of(acc), found, two).instruction
    load = TmemLoad(atom.shape, atom.repeat, atom.pack)
    source = None if c is None else matrix_store(load, acc.width, c.width, args["layout_C"] == "column")
    kind = get_smem_layout_atom_epi(order_d, class_of(d), found)
    name = f"Layout_{kind.value}_Atom"
    major, swizzle = atom_kind(name)
    return {
        "result": {
            "cta_tile": tile,
            "tmem_warps": warps,
            "epilogue_tile": f"({found[0]},{found[1]})",
            "epilogue_tile_shape": shape,
            "warp_tile": part,
            "tmem_load_op": _load_name(load),
            "smem_store_op": _copy_name(matrix_store(load, acc.width, d.width, m_major), "STSM"),
            "smem_load_op": "none" if c is None else _copy_name(source, "LDSM"),
            "smem_atom_D": name,
            "smem_swizzle_D": BYTE_SWIZZLES[swizzle],
            "smem_layout_D": get_nonswizzle_portion(make_smem_atom(major, swizzle, d.width)),
        }
    }
