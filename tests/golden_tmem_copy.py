"""Handler of the golden lines about tiled copies between tensor memory and registers of four warps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tests.golden import handler
from tests.golden_blackwell_mma import Case
from tests.golden_tma import _start
from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.tensor_memory import lane_stride, tmem_place
from tilewright.atoms.tensor_memory_copy import tmem_copy_layouts
from tilewright.layout import (
    Layout,
    coalesce,
    flat_divide,
    make_identity_layout,
    make_layout,
    parse,
    product_each,
    recast_layout,
)
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.make_copy import make_cotiled_copy


@dataclass(frozen=True, repr=False)
class WarpCopy(CopyInstruction):
    """What a tiled copy asks of ``tcgen05.ld`` and ``st``."""

    load: bool
    shape: str
    repeat: int
    pack: bool
    name = "warp_copy"
    cute_name = "WARP_COPY"

    def __post_init__(self) -> None:
        made = tmem_copy_layouts(self.shape, self.repeat, self.pack)
        sides = [made.memory, made.registers] if self.load else [made.registers, made.memory]
        bits = {"src_bits": sides[0], "dst_bits": sides[1], "ref_bits": made.memory}
        for key, value in {"thr_id": Layout(32, 1), **bits}.items():
            object.__setattr__(self, key, value)


def _tensors(case: Case, args: dict[str, Any]) -> tuple[Layout, Layout, Layout]:
    """The tensor that the copy is made for, all of it with its tiles, and the coordinates (m, n) of the latter."""
    if args.get("operand") == "A":
        m, k = parse(args["mma_tile_mk"])
        case.tile = (m, args["N"], k)
        whole = case.a_in_tmem()
        return whole, whole, make_identity_layout(product_each(whole.shape))
    case.tile = (*parse(args["mma_tile_mn"]), case.shape[2])
    whole = case.accumulator()[0]
    coords = make_identity_layout((case.tile[0] // case.form.ctas, case.tile[1]))
    if args["epilogue_tile"] == "none":
        return whole, whole, coords
    tiler = parse(args["epilogue_tile"])
    whole, coords = flat_divide(whole, tiler), flat_divide(coords, tiler)
    return make_layout(whole[0], whole[1]), whole, coords


@handler("tmem_copy")
def _copy(line: dict[str, Any]) -> dict[str, Any]:
    args, wanted = line["args"], line["result"]
    found = re.fullmatch(r"SM100_TMEM_(LOAD|STORE)_(\d+)dp(\d+b)(\d+)x(_16b)?", args["op"])
    assert found
    shape = f"{found[2]}x{found[3]}" + ("x2" if (found[2], found[3]) == ("16", "32b") else "")
    instruction = WarpCopy(found[1] == "LOAD", shape, int(found[4]), found[5] is not None)
    case = Case(args | {"mma_tile": "(0,0,0)"})
    width = args["value_bits"]
    tensor, whole, coords = _tensors(case, args)
    places = tmem_copy_layouts(shape, int(found[4]), found[5] is not None).places
    threads = Layout((32, 4), (0, 32 * lane_stride(width)))
    values = coalesce(recast_layout(width, 1, places))
    atom = CopyAtom(instruction, case.types[0 if "operand" in args else 2])
    tiled = make_cotiled_copy(atom, make_layout(threads, values), tensor)
    load = instruction.load
    sides = []
    for side in wanted["partition"]:
        one = tiled.get_slice(side["thread"])
        of_tmem = one.partition_S(whole) if load else one.partition_D(whole)
        of_coords = one.partition_D(coords) if load else one.partition_S(coords)
        sides.append(
            {
                "thread": side["thread"],
                "tmem": list(tmem_place(of_tmem[1], width)),
                "coord": _start(side["coord"], of_coords[1]),
            }
        )
    return {
        "result": {
            "tmem_tensor": tensor,
            "threads": tiled.size,
            "tiler_mn": tiled.tiler,
            "layoutS_TV": tiled.layout_src_tv_tiled,
            "layoutD_TV": tiled.layout_dst_tv_tiled,
            "tmem_layout": of_tmem[0],
            "coord_layout": of_coords[0],
            "partition": sides,
        }
    }
