"""Handlers of the golden lines about tensor memory: layouts, accumulators, pointers, copies."""

from __future__ import annotations

import re
from typing import Any

from tests.golden import handler
from tilewright.atoms import tensor_memory as T
from tilewright.atoms.tensor_memory_copy import WARP, smem_to_tmem_layouts, tmem_copy_layouts
from tilewright.layout import Layout, parse

WIDTHS = {"e2m1": 4, "e4m3": 8, "u8": 8, "f16": 16, "bf16": 16, "f32": 32, "tf32": 32, "s32": 32}

FROM_SHARED = {
    "128dp256bit": "128x256b",
    "128dp128bit": "128x128b",
    "4dp256bit": "4x256b",
    "4x32dp128bit": "32x128b.warpx4",
    "2x64dp128bitlw0213": "64x128b.warpx2::02_13",
}


def _answer(layout: Layout, value_bits: int, wanted: dict[str, Any]) -> dict[str, Any]:
    """The layout, and the places of the elements that the line lists."""
    places = [[i, list(T.tmem_place(layout(i), value_bits))] for i, _ in wanted["points"]]
    columns = T.tmem_columns(layout, value_bits)
    return {"value_bits": value_bits, "layout": layout, "columns": columns, "points": places}


@handler("tmem_layout")
def _layout(line: dict[str, Any]) -> dict[str, Any]:
    args, width = line["args"], WIDTHS[line["args"]["value_type"]]
    shape = parse(args["shape"])
    if args["kind"] == "tmem_e_frg":
        return {"result": {"value_bits": T.METADATA_BITS[width], "layout": T.metadata_layout(shape, width)}}
    if args["kind"] == "tmem_frg_ws":
        layout = T.weight_stationary_layout(shape, width, args["storage_bits"])
    else:
        mode = T.TmemAllocMode(args["alloc_mode"])
        layout = T.tmem_layout(shape, width, args["storage_bits"], args["num_sm"], mode)
    return {"result": _answer(layout, width, line["result"])}


@handler("tmem_accumulator")
def _accumulator(line: dict[str, Any]) -> dict[str, Any]:
    args, width = line["args"], WIDTHS[line["args"]["type_C"]]
    overlap = parse(args["epilogue_tile"])[1] if args["overlapping"] else 0
    layout = T.accumulator_layout(
        (args["M"], args["N"]),
        parse(args["mma_tile_mn"]),
        width,
        ctas=2 if "_2x1SM_" in args["atom"] else 1,
        stages=2 if overlap else args["stages"],
        a_in_tmem="_TS" in args["atom"],
        overlap=overlap,
    )
    return {"result": _answer(layout, width, line["result"])}


@handler("tmem_pointer")
def _pointer(line: dict[str, Any]) -> dict[str, Any]:
    bits = line["args"]["value_bits"]
    address = T.tmem_address(int(line["args"]["base"], 16), line["args"]["offset"], bits)
    return {
        "result": {
            "address": f"0x{address:08x}",
            "lane_col_sub": list(T.tmem_place(T.tmem_offset(address, bits), bits)),
            "offset_shift": T.elements_per_column(bits).bit_length() - 1,
            "dp_stride": T.lane_stride(bits),
        }
    }


@handler("tmem_copy_atom")
def _copy(line: dict[str, Any]) -> dict[str, Any]:
    if match := re.fullmatch(r"SM100_UTCCP_(\w+)_([12])cta", line["args"]["op"]):
        cp = smem_to_tmem_layouts(FROM_SHARED[match[1]], int(match[2]))
        threads = Layout(int(match[2]), int(match[2]) - 1)
        sides = {"src_layout": cp.source, "dst_layout": cp.destination}
        return {"result": {"thr_id": threads, "val_id": cp.places, **sides}}
    match = re.fullmatch(r"SM100_TMEM_(LOAD|STORE)_(\d+)dp(\d+b)(\d+)x(_16b)?", line["args"]["op"])
    assert match
    shape = f"{match[2]}x{match[3]}" + ("x2" if (match[2], match[3]) == ("16", "32b") else "")
    made = tmem_copy_layouts(shape, int(match[4]), pack=match[5] is not None)
    sides = [made.memory, made.registers] if match[1] == "LOAD" else [made.registers, made.memory]
    places = {
        thread: [[r, *(list(made.place(int(thread), r, bit)) for bit in (0, 16))] for r, _, _ in registers]
        for thread, registers in line["result"]["register_map"].items()
    }
    return {
        "result": {
            "thr_id": Layout(WARP, 1),
            "val_id": made.places,
            "src_layout": sides[0],
            "dst_layout": sides[1],
            "ref_layout": made.memory,
            "registers": made.register_count,
            "register_map": places,
        }
    }
