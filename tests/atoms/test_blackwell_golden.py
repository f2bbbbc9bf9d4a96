"""tcgen05's descriptors: the golden lines, the law behind them, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests import golden_blackwell  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read
from tilewright.atoms.matrix_descriptor import TCGEN05, WGMMA, MatrixDescriptor, matrix_descriptor
from tilewright.atoms.tcgen05_descriptor import InstructionDescriptor
from tilewright.errors import ConstraintError, LayoutError
from tilewright.ir.types import BF16, E2M1, E2M3, E4M3, F16, F32, I8, I32, TF32, U8, ScalarType
from tilewright.layout import Layout, Swizzle, get_nonswizzle_portion, make_smem_atom, tile_to_shape, zipped_divide
from tilewright.layout.smem_atoms import BYTE_SWIZZLES, row_bytes

LINES = list(read(DATA / "blackwell_descriptors.jsonl"))
COUNTS = {"umma_descriptor": 149, "umma_smem_address": 18, "umma_instr_desc": 120}


@pytest.mark.parametrize("op", COUNTS)
def test_every_line(op: str) -> None:
    problems = [f"{line['args']}: {problem}" for line in LINES if line["op"] == op and (problem := check(line))]
    assert not problems, "\n".join(problems)


def test_golden_blackwell_atoms_cover_all_lines() -> None:
    assert Counter(line["op"] for line in LINES) == COUNTS


@pytest.mark.parametrize("field", ["stride_byte_offset", "layout_type", "version"])
def test_a_wrong_line_fails(field: str) -> None:
    line = next(line for line in LINES if line["op"] == "umma_descriptor")
    assert check(line | {"result": line["result"] | {field: 77}})


@pytest.mark.parametrize("k_first", [False, True])
def test_chunks_of_32_bytes_lead_to_the_elements(k_first: bool) -> None:
    """Element (m, k): LBO steps 32 numbers along M, SBO 4 rows of K; a row is 128 bytes; then the swizzle."""
    atom, swizzle = make_smem_atom("MN", "SW128_32B", 32), BYTE_SWIZZLES["SW128_32B"]
    layout = tile_to_shape(atom, (96, 32), (1, 0) if k_first else (0, 1))
    plain = get_nonswizzle_portion(layout)
    desc = matrix_descriptor(zipped_divide(plain, (96, 8))[0], swizzle, "MN", TF32, format=TCGEN05)
    assert desc.kind == "SW128_32B"
    for m in range(96):
        for k in range(8):
            byte = 16 * (desc.leading * (m // 32) + desc.stride * (k // 4)) + 128 * (k % 4) + 4 * (m % 32)
            assert byte == 4 * plain((m, k)) and swizzle(byte) == 4 * layout((m, k))


@pytest.mark.parametrize("kind", BYTE_SWIZZLES)
def test_the_swizzle_permutes_an_atom(kind: str) -> None:
    major = "MN" if kind == "SW128_32B" else "K"
    atom = make_smem_atom(major, kind, 32)
    rows = 4 if kind == "SW128_32B" else 8
    assert sorted(atom(i) for i in range(rows * row_bytes(kind) // 4)) == list(range(rows * row_bytes(kind) // 4))


K_TILE = Layout(((8, 8), 16), ((64, 512), 1))


@pytest.mark.parametrize(
    ("tile", "swizzle", "major", "type_", "why"),
    [
        (Layout((64, 16), (72, 1)), None, "K", F16, "canonical"),
        (K_TILE, Swizzle(2, 4, 3), "K", F16, "step by 8 units of 16 bytes, not 4"),
        (K_TILE, Swizzle(3, 3, 3), "K", F16, r"not one of .*Sw<2,5,2>"),
        (Layout(((32, 2), (4, 2)), ((1, 128), (32, 256))), Swizzle(3, 4, 3), "MN", TF32, "MN-major numbers of 32 bits"),
        (Layout(((32, 2), (4, 2)), ((1, 128), (32, 256))), None, "MN", TF32, "MN_SW128_32B"),
        (Layout((64, (8, 2)), (1, (64, 512))), Swizzle(2, 5, 2), "MN", F16, "and no others"),
        (K_TILE, Swizzle(2, 5, 2), "K", TF32, "and no others"),
    ],
)
def test_a_layout_that_is_no_canonical_one(tile: Layout, swizzle: Any, major: str, type_: ScalarType, why: str) -> None:
    with pytest.raises(ConstraintError, match=why) as caught:
        matrix_descriptor(tile, swizzle, major, type_, format=TCGEN05)
    assert str(caught.value).startswith("tcgen05.mma reads") and "tcgen05.make_smem_layout_atom(" in str(caught.value)


def test_wgmma_has_no_chunks_of_32_bytes() -> None:
    with pytest.raises(ConstraintError, match=r"Sw<2,5,2> on bytes is not one of Sw<1,4,3>, Sw<2,4,3>, Sw<3,4,3>"):
        matrix_descriptor(K_TILE, Swizzle(2, 5, 2), "K", F16)


@pytest.mark.parametrize(("major", "bits"), [("K", 32), ("MN", 16)])
def test_atoms_of_32_byte_chunks_are_for_mn_major_numbers_of_32_bits(major: str, bits: int) -> None:
    with pytest.raises(LayoutError, match="take SW128"):
        make_smem_atom(major, "SW128_32B", bits)


@pytest.mark.parametrize(
    ("word", "format", "why"),
    [
        (MatrixDescriptor(1, 64, "SW128").word, TCGEN05, "not a matrix descriptor of tcgen05.mma"),
        (MatrixDescriptor(1, 64, "SW128", 0, TCGEN05).word, WGMMA, "not a matrix descriptor of wgmma"),
        (0x6000404000010000, TCGEN05, "no swizzle of code 3"),
        (0x4002404000010000, TCGEN05, "high bits 0x00024000, and must have 0x00004000"),  # base offset 1
        (0x4000404000014000, TCGEN05, "not a matrix descriptor"),  # bit 14 is not part of the address
    ],
)
def test_words_that_are_no_descriptors(word: int, format: Any, why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        MatrixDescriptor.of_word(word, format)


def _dense(**changed: Any) -> InstructionDescriptor:
    return InstructionDescriptor("f16", BF16, BF16, F32, 128, 256)._replace(**changed)


def _scaled(**changed: Any) -> InstructionDescriptor:
    return InstructionDescriptor("mxf4", E2M1, E2M1, F32, 128, 256, scale="ue8m0")._replace(**changed)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: _dense(kind="f64"), "no kind::f64; it has f16, tf32"),
        (lambda: _dense(type_a=E4M3), "A is e4m3; it can be f16, bf16"),
        (lambda: _dense(type_b=I8), "B is s8; it can be f16, bf16"),
        (lambda: _dense(type_d=BF16), "D is bf16; it can be f16, f32"),
        (lambda: _dense(scale="ue8m0"), "they can be None"),
        (lambda: _dense(sfa_id=1), "no block scales"),
        (lambda: _dense(saturate=True), "only kind::i8 saturates"),
        (lambda: _dense(max_shift=4), "it can be 0, 8, 16, 32"),
        (lambda: _dense(selector=4), "two bits"),
        (lambda: _dense(majors=("M", "K")), "each is K or MN"),
        (lambda: _dense(m=72), "M is a multiple of 16"),
        (lambda: _dense(n=264), "both at most 256"),
        (lambda: _scaled(type_a=E2M3), "A is e2m3; it can be e2m1"),
        (lambda: _scaled(scale=None), "they can be ue8m0"),
        (lambda: _scaled(scale="ue4m3"), "they can be ue8m0"),
        (lambda: _scaled(max_shift=8), "kinds with block scales do not have"),
        (lambda: _scaled(sfb_id=4), "two bits"),
    ],
)
def test_refused_instruction_descriptors(make: Callable[[], InstructionDescriptor], why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        _ = make().word


def test_words_that_are_no_instruction_descriptors() -> None:
    word = InstructionDescriptor("i8", U8, I8, I32, 128, 64, saturate=True).word
    assert InstructionDescriptor.of_word("i8", word).type_b == I8
    with pytest.raises(ConstraintError, match="no format 2 of D"):
        InstructionDescriptor.of_word("f16", word)
    with pytest.raises(ConstraintError, match="bits that must be 0"):
        InstructionDescriptor.of_word("i8", word | 1 << 29)
