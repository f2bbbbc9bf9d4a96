"""Handlers of the golden lines about tcgen05's descriptors and the places of operands in shared memory."""

from __future__ import annotations

from typing import Any

from tests.golden import handler
from tilewright.atoms.matrix_descriptor import TCGEN05, MatrixDescriptor, descriptor_layout, matrix_descriptor
from tilewright.atoms.tcgen05_descriptor import MAX_SHIFTS, InstructionDescriptor, scale_factor_id
from tilewright.atoms.value_types import BY_NAME
from tilewright.ir.types import E2M1, E2M3, E3M2
from tilewright.layout import Layout, get_nonswizzle_portion, make_smem_atom, parse, size, tile_to_shape, zipped_divide
from tilewright.layout.smem_atoms import BYTE_SWIZZLES

NARROW = {"e2m1": E2M1, "e2m3": E2M3, "e3m2": E3M2}
FIELDS = {
    "selector": "sparse_id2",
    "sparse": "sparse_flag",
    "saturate": "saturate",
    "d": "c_format",
    "a": "a_format",
    "b": "b_format",
    "negate_a": "a_negate",
    "negate_b": "b_negate",
    "major_a": "a_major",
    "major_b": "b_major",
    "n": "n_dim",
    "m": "m_dim",
    "max_shift": "max_shift",
    "scale": "scale_format",
    "sfa_id": "a_sf_id",
    "sfb_id": "b_sf_id",
    "k_96": "k_size",
}
"""The names of the headers for the fields of an instruction descriptor."""


def type_of(name: str) -> Any:
    return NARROW.get(name) or BY_NAME[name.upper()]


def atom_kind(name: str) -> tuple[str, str]:
    """Major and kind of the headers' ``Layout_MN_SW128_32B_Atom``."""
    major, kind = name.removeprefix("Layout_").removesuffix("_Atom").split("_", 1)
    return major, kind


def fields_of(desc: MatrixDescriptor) -> dict[str, Any]:
    """The fields in the names of the file; also that reading the word gives them back."""
    low_bits = desc._replace(address=desc.address & 0x3FFFF)
    assert MatrixDescriptor.of_word(desc.word, TCGEN05) == low_bits
    return {
        "desc": f"0x{desc.word:016x}",
        "start_address": desc.start_address,
        "leading_byte_offset": desc.leading,
        "stride_byte_offset": desc.stride,
        "version": 1,
        "base_offset": 0,
        "lbo_mode": 0,
        "layout_type": desc.layout_type,
    }


def _smem_tile(args: dict[str, Any]) -> tuple[str, Any, Any, Layout]:
    """Major, type, swizzle of bytes and layout of elements of a tile in shared memory."""
    major, kind = atom_kind(args["atom"])
    type_, order = type_of(args["type"]), tuple(x - 1 for x in parse(args["tile_order"]))
    layout = tile_to_shape(make_smem_atom(major, kind, type_.width), parse(args["tile"]), order)
    return major, type_, BYTE_SWIZZLES[kind], get_nonswizzle_portion(layout)


@handler("umma_descriptor")
def _descriptor(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    major, type_, swizzle, plain = _smem_tile(args)
    assert (major, str(plain), str(swizzle)) == (args["major"], args["smem_layout"], args["smem_swizzle"])
    blocks = zipped_divide(plain, (parse(args["tile"])[0], 256 // type_.width))
    tile, rest = blocks[0], blocks[1]
    desc = matrix_descriptor(tile, swizzle, major, type_, args["base_address"], format=TCGEN05)
    steps = descriptor_layout(Layout((tile.shape, rest[1].shape), (tile.stride, rest[1].stride)), type_)[1]
    words = [f"0x{desc.word + steps(i):016x}" for i in range(size(steps))]
    instruction_tile = tuple(size(x) for x in tile)
    return {
        "result": fields_of(desc) | {"instruction_tile": instruction_tile, "kblock_layout": steps, "kblock_desc": words}
    }


@handler("umma_smem_address")
def _address(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    _, type_, swizzle, plain = _smem_tile(args)
    addresses = []
    for mn, k, *_ in line["result"]["addresses"]:
        byte, bit = divmod(8 * args["base_address"] + plain((mn, k)) * type_.width, 8)
        addresses.append([mn, k, swizzle(byte), *([bit] if type_.width < 8 else [])])
    return {"result": {"smem_swizzle": swizzle, "smem_layout": plain, "addresses": addresses}}


@handler("umma_instr_desc")
def _instruction(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    desc = InstructionDescriptor(
        args["kind"],
        type_of(args["type_A"]),
        type_of(args["type_B"]),
        type_of(args["type_C"]),
        args["M"],
        args["N"],
        (args["major_A"], args["major_B"]),
        (args["negate_A"], args["negate_B"]),
        args.get("saturate", False),
        args["sparse"],
        args["sparse_id"],
        MAX_SHIFTS[args.get("max_shift", 0)],
        args.get("type_SF"),
        scale_factor_id(int(args.get("tmem_SFA", "0"), 16)),
        scale_factor_id(int(args.get("tmem_SFB", "0"), 16)),
    )
    assert InstructionDescriptor.of_word(desc.kind, desc.word) == desc
    words = {"desc": f"0x{desc.word:08x}", "idescE": f"0x{desc.word << 32:016x}"}
    return {"result": words | {FIELDS[name]: value for name, value in desc.fields.items()}}
