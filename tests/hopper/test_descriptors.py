"""Matrix descriptors and SM90 selectors: golden lines, the law behind them, refused layouts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import golden, golden_wgmma
from tilewright.atoms.matrix_descriptor import matrix_descriptor
from tilewright.atoms.matrix_tiles import chunk_table
from tilewright.atoms.wgmma import instruction_k
from tilewright.errors import ConstraintError
from tilewright.ir.types import BF16, E4M3, F16, I8, TF32
from tilewright.layout import (
    Layout,
    get_nonswizzle_portion,
    get_swizzle_portion,
    make_smem_atom,
    tile_to_shape,
    zipped_divide,
)
from tilewright.layout.swizzle import Swizzle

assert golden_wgmma  # registers its handlers

OPS = (
    "gmma_descriptor",
    "gmma_fragment",
    "sm90_tiled_mma",
    "sm90_partition",
    "smem_selector",
    "smem_tile_to_shape",
    "sm90_epilogue_tile",
    "sm90_epilogue_smem",
)
LINES = [line for line in golden.read(golden.DATA / "hopper.jsonl") if line["op"] in OPS]


@pytest.mark.parametrize("op", OPS)
def test_every_line(op: str) -> None:
    lines = [line for line in LINES if line["op"] == op]
    problems = [f"{line['args']}: {problem}" for line in lines if (problem := golden.check(line))]
    assert lines and not problems, "\n".join(problems)


def test_a_wrong_line_fails() -> None:
    line = next(line for line in LINES if line["op"] == "gmma_descriptor")
    assert golden.check(line | {"result": line["result"] | {"stride_byte_offset": 7}})


@given(
    st.sampled_from([F16, BF16, TF32, E4M3, I8]),
    st.sampled_from(["K", "MN"]),
    st.integers(0, 3),
    st.integers(1, 4),
    st.integers(1, 2),
    st.booleans(),
)
def test_the_descriptor_leads_to_the_elements(
    type_: Any, major: str, bits: int, along: int, across: int, k_first: bool
) -> None:
    """Where the hardware looks for an element (descriptor fields, swizzle of address bits) it lies by the layout."""
    if type_.width != 16:
        major = "K"
    k = instruction_k(type_)
    atom = make_smem_atom(major, ("INTER", "SW32", "SW64", "SW128")[bits], type_.width)
    wide = (128 << bits) // type_.width
    tile = (8 * along * across, max(wide, k) * across) if major == "K" else (wide * along, max(8, k) * across)
    layout = tile_to_shape(atom, tile, (1, 0) if k_first else (0, 1))
    plain, swizzle = get_nonswizzle_portion(layout), Swizzle(bits, 4, 3)
    assert get_swizzle_portion(layout).bits == bits
    blocks = zipped_divide(plain, (tile[0], k))
    desc = matrix_descriptor(blocks[0], swizzle, major, type_)
    chunks = chunk_table(major, Swizzle(bits, 4, 3), desc.leading, desc.stride, tile[0], k, type_)
    per, size = 128 // type_.width, type_.bytes
    for block in range(tile[1] // k):
        start = plain((0, block * k)) * size
        for position, chunk in enumerate(chunks.tolist()):
            if major == "K":
                mn, kk = position // (k // per), position % (k // per) * per
            else:
                mn, kk = position // k * per, position % k
            wanted = plain((mn, block * k + kk)) * size
            assert swizzle(start + chunk) == swizzle(wanted), (layout, block, mn, kk)


@pytest.mark.parametrize(
    ("tile", "swizzle", "major", "why"),
    [
        (Layout((64, 16), (64, 1)), None, "K", "canonical"),  # rows of 128 bytes without a swizzle
        (Layout((64, 16), (72, 1)), None, "K", "canonical"),  # padded
        (Layout((64, 16), (1, 64)), Swizzle(3, 4, 3), "K", "16 bytes"),  # the other major
        (Layout(((8, 8), 16), ((64, 512), 1)), Swizzle(2, 4, 3), "K", "step by 8 units of 16 bytes, not 4"),
        (Layout(((8, 8), 16), ((64, 512), 1)), Swizzle(3, 3, 3), "K", "not one of"),
        (Layout((64, 16), (1, 64)), None, "MN", "canonical"),
        (Layout((64, (8, 2)), (1, (64, 512))), Swizzle(2, 4, 3), "MN", "canonical"),
    ],
)
def test_a_layout_that_is_no_canonical_one(tile: Layout, swizzle: Any, major: str, why: str) -> None:
    with pytest.raises(ConstraintError, match=why) as caught:
        matrix_descriptor(tile, swizzle, major, F16)
    assert f"SmemLayoutAtomKind.{major}_" in str(caught.value)
    assert str(tile) in str(caught.value)
