"""What tcgen05 has, and what is refused with the table of what fits: golden lines and laws."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests import golden_blackwell_validity  # noqa: F401 - registers its handlers
from tests.golden import DATA, check, read
from tests.tcgen05_ptx import TARGETS, check_ptx, ptx_targets
from tilewright.atoms.tcgen05_validity import KINDS, MmaForm, check_mma_shape, instruction_k, mma_columns
from tilewright.errors import ConstraintError

LINES = list(read(DATA / "blackwell_validity.jsonl"))
COUNTS = {"tcgen05_shape": 110, "tcgen05_ptx": 349}


@pytest.mark.parametrize("op", COUNTS)
def test_every_line(op: str) -> None:
    problems = [f"{line['args']}: {problem}" for line in LINES if line["op"] == op and (problem := check(line))]
    assert not problems, "\n".join(problems)


def test_golden_blackwell_validity_covers_all_lines() -> None:
    assert Counter(line["op"] for line in LINES) == COUNTS


def test_the_table_has_what_the_headers_write() -> None:
    """Each instruction in the headers' ops, with their operands in the places of registers."""
    lines = list(read(DATA / "blackwell_instructions.jsonl"))
    assert len(lines) == 117
    for line in lines:
        for form in line["result"]["forms"]:
            operands = re.sub(
                r"{(\d+) (?:regs|words)}", lambda m: f"{{{', '.join(['r'] * int(m[1]))}}}", form["operands"]
            )
            text = f"{form['mnemonic']} {operands.replace('ScaleC', '4')}".strip()
            wanted = "sm_103a" if line["args"]["op"].startswith("SM103") else "sm_100a"
            check_ptx(f"{text};", wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_has_twice_the_rows_and_half_the_columns(kind: str) -> None:
    """Each N of a pair is one that a block has: the pair's steps are multiples of a block's."""
    one, two = MmaForm(kind), MmaForm(kind, ctas=2)
    assert set(mma_columns(two, 256)) < set(mma_columns(one, 128))
    assert not mma_columns(two, 64) and not mma_columns(one, 256)
    assert all(len(mma_columns(MmaForm(kind, sparse=sparse), 128)) for sparse in (False, True))


@pytest.mark.parametrize(
    ("form", "shape", "majors", "why"),
    [
        (MmaForm("f16"), (128, 264, 16), ("K", "K"), "no shape 128x264x16.*\n  M 64 or 128, N 8 to 256 in steps of 8"),
        (MmaForm("f16"), (128, 256, 32), ("K", "K"), "K 16"),
        (MmaForm("f16", sparse=True), (128, 256, 16), ("K", "K"), "mma.sp.cta_group::1.*K 32"),
        (MmaForm("i8"), (128, 24, 32), ("K", "K"), "N 8, 16 to 256 in steps of 16"),
        (MmaForm("f8f6f4", ctas=2), (256, 48, 32), ("K", "MN"), "N 32 to 256 in steps of 32"),
        (MmaForm("f16", a_in_tmem=True), (128, 8, 16), ("K", "K"), "M 64, N 8 to .*\n  M 128, N 16 to 256"),
        (MmaForm("f16", a_in_tmem=True), (128, 64, 16), ("MN", "K"), "A in tensor memory is K-major"),
        (MmaForm("mxf4"), (128, 64, 64), ("K", "MN"), "A and B are K-major"),
        (MmaForm("mxf4nvf4", 2, sparse=True), (128, 64, 128), ("K", "K"), "M 256, N 16 to 256 in steps of 16, K 128"),
        (MmaForm("tf32", weight_stationary=True), (32, 96, 8), ("K", "K"), "N 64, 128 or 256"),
        (MmaForm("f16", 2, weight_stationary=True), (64, 64, 16), ("K", "K"), ".ws is for one block"),
        (MmaForm("f16", 3), (128, 64, 16), ("K", "K"), "1 or 2 blocks, not of 3"),
        (MmaForm("bf16"), (128, 64, 16), ("K", "K"), "no kind::bf16; it has f16, tf32"),
        (MmaForm("f16"), (128, 64, 16), ("M", "K"), "each is K or MN"),
    ],
)
def test_refused_shapes(form: MmaForm, shape: Any, majors: Any, why: str) -> None:
    with pytest.raises(ConstraintError, match=f"(?s){why}"):
        check_mma_shape(form, shape, majors)


@pytest.mark.parametrize("m", [32, 64, 128])
def test_weight_stationary_shapes(m: int) -> None:
    for n in (64, 128, 256):
        check_mma_shape(MmaForm("f8f6f4", weight_stationary=True), (m, n, instruction_k("f8f6f4")))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: ptx_targets("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem], 48;"), r"R\|32\|64\|128"),
        (lambda: ptx_targets("tcgen05.mma.cta_group::1.kind::f16 [r0], d1, d2, [r3], r2, p0;"), "no target"),
        (lambda: ptx_targets("tcgen05.mma.sp.cta_group::1.kind::f16 [r0], d1, d2, r2, p0;"), "no target"),
        (lambda: ptx_targets("tcgen05.mma.cta_group::1.kind::f16 [r0], d1, d2, r2, p0, 16;"), "no target"),
        (
            lambda: ptx_targets("tcgen05.ld.sync.aligned.32x32b.x4.b32 {r1,r2,r3}, [r0];"),
            r"x4<.pack::16b>.b32 \(R\*4\)",
        ),
        (lambda: ptx_targets("wgmma.fence.sync.aligned;"), "What there is:(?s:.*)tcgen05"),
        (
            lambda: check_ptx("tcgen05.shift.cta_group::1.down [%r4];", "sm_100f"),
            "sm_100f has no .*; sm_100a, sm_103a, sm_110a have it",
        ),
    ],
)
def test_refused_text(make: Callable[[], object], why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        make()


def test_text_as_compilers_write_it() -> None:
    assert ptx_targets("tcgen05.ld.sync.aligned.32x32b.x2.b32  {%r1, %r2},  [%r3];") == TARGETS[:4]
    assert ptx_targets("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, %rq;") == TARGETS
