"""Handler of the golden lines about scale factors of a tile: in shared memory, in tensor memory, and their copies."""

from __future__ import annotations

from typing import Any

from tests.golden import handler
from tests.golden_blackwell import fields_of
from tests.golden_blackwell_mma import Case, _in_tmem, _word
from tilewright.atoms.scale_factors import ScaleTile
from tilewright.atoms.tensor_memory import tmem_columns
from tilewright.atoms.tensor_memory_copy import smem_to_tmem_layouts
from tilewright.atoms.tensor_memory_cp import SmemToTmem, copy_descriptor, in_units
from tilewright.ir.types import U8
from tilewright.layout import Layout, filter_zeros, make_layout, recast_layout
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.make_copy import make_cotiled_copy

SHAPE = "32x128b.warpx4"


def _copy(tile: ScaleTile, ctas: int, stages: int, address: int) -> dict[str, Any]:
    smem, tmem = filter_zeros(tile.smem_layout(stages)), filter_zeros(tile.tmem_layout())
    places = recast_layout(8, 1, smem_to_tmem_layouts(SHAPE, ctas).places)
    atom = SmemToTmem(SHAPE, ctas)
    tiled = make_cotiled_copy(CopyAtom(atom, U8), make_layout(Layout(ctas, 0), places), tmem)
    one = tiled.get_slice(0)
    source, _ = one.partition_S(smem)
    target, _ = one.partition_D(tmem)
    return {
        "op": atom.cute_name,
        "smem_compact": smem,
        "tmem_compact": tmem,
        "tiler_mn": tiled.tiler,
        "layoutS_TV": tiled.layout_src_tv_tiled,
        "layoutD_TV": tiled.layout_dst_tv_tiled,
        "smem_partition": source,
        "smem_desc_layout": in_units(source),
        "tmem_partition": target,
        "smem_desc": fields_of(copy_descriptor(source[0], "INTER", atom)._replace(address=address)),
    }


@handler("sm100_blockscaled")
def _scales(line: dict[str, Any]) -> dict[str, Any]:
    args, wanted = line["args"], line["result"]
    case = Case(args)
    m, n, k = case.tile
    ctas = case.form.ctas
    tiles = [ScaleTile(rows, k, args["sf_vec_size"], case.shape[2]) for rows in (m // ctas, n)]
    columns = tmem_columns(case.accumulator(), 32)
    result: dict[str, Any] = {
        "acc_columns": columns,
        "SFA_column": columns,
        "SFB_column": columns + tiles[0].columns,
        "end_column": columns + tiles[0].columns + tiles[1].columns,
        "kblock_address": [[i, *(_word(tile.address(0, i)) for tile in tiles)] for i in range(k // case.shape[2])],
    }
    for x, tile in zip("AB", tiles, strict=True):
        result[f"smem_layout_SF{x}"] = tile.smem_layout()
        result[f"smem_staged_SF{x}"] = tile.smem_layout(args["stages"])
        result[f"tmem_SF{x}"] = _in_tmem(tile.tmem_layout(), 8, wanted[f"tmem_SF{x}"])
        result[f"utccp_SF{x}"] = _copy(tile, ctas, args["stages"], args["base_address"])
    return {"result": result}
