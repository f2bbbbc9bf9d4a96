"""Handlers of the golden lines about clusters, schedules and selectors of sm_100."""

from __future__ import annotations

from typing import Any

from tests.golden import handler
from tests.golden_blackwell import atom_kind, type_of
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.lang.numbers.numeric import class_of
from tilewright.layout import get_nonswizzle_portion, make_smem_atom, parse
from tilewright.layout.smem_atoms import BYTE_SWIZZLES
from tilewright.tiled.tma.cluster import cluster_layout_vmnk, commit_arrivals, commit_mask, operand_mask
from tilewright.utils.blackwell_helpers import get_smem_layout_atom_ab
from tilewright.utils.clc_schedule import PersistentScheduleSm100


@handler("sm100_multicast_mask")
def _mask(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    layout = cluster_layout_vmnk(parse(args["cluster_shape"]), args["num_sm"])
    coord = layout.get_flat_coord(args["cta"])
    return {
        "result": {
            "cluster_layout_vmnk": layout,
            "cta_coord_vmnk": coord,
            "tma_mask_A": operand_mask(layout, coord, "A"),
            "tma_mask_B": operand_mask(layout, coord, "B"),
            "mma_mask_C": commit_mask(layout, coord),
            "num_participants": commit_arrivals(layout),
            "leader": coord[0] == 0,
        }
    }


@handler("sm100_schedule")
def _schedule(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    m, n = parse(args["mma_tile_mn"])
    shapes = [parse(args[key]) for key in ("problem_mnl", "cluster")]
    tile = (m // args["num_sm"], n)
    made = PersistentScheduleSm100.create(shapes[0], tile, shapes[1], args["max_swizzle"], args["raster"])
    result = {
        "raster_order": "AlongN" if made.along_n else "AlongM",
        "ctas_mnl": list(made.tiles_mnl),
        "clusters_mnl": list(made.clusters_mnl),
        "swizzle_size": made.swizzle,
        "grid": list(made.grid_shape()),
    }
    if "work" in line["result"]:
        result["work"] = [list(tile) for tile in made.blocks()]
    return {"result": result}


@handler("sm100_smem_selector")
def _selector(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    type_ = type_of(args["type"])
    kind = get_smem_layout_atom_ab(OperandMajorMode[args["major"]], class_of(type_), (args["blk_mn"], args["blk_k"]))
    name = f"Layout_{kind.value}_Atom"
    major, swizzle = atom_kind(name)
    atom = get_nonswizzle_portion(make_smem_atom(major, swizzle, type_.width))
    return {"result": {"atom": name, "smem_swizzle": BYTE_SWIZZLES[swizzle], "smem_layout": atom}}
