"""``examples/blackwell_gemm.py``: a GEMM for clusters of sm_100a, by MMAs of one block or of pairs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import cute, sim
from tilewright.cute.runtime import from_dlpack

PROGRAM = runpy.run_path(str(Path(__file__).parents[2] / "examples/blackwell_gemm.py"))
Gemm, operands = PROGRAM["Gemm"], PROGRAM["operands"]

CASES = [
    ((256, 64, 64), (2, 1), 2),
    ((128, 32, 64), (2, 1), 2),
    ((256, 32, 64), (4, 2), 2),
    ((128, 32, 64), (2, 2), 1),
]


@pytest.mark.parametrize("tile, cluster, ctas", CASES)
def test_products_of_integers(tile: Any, cluster: Any, ctas: int) -> None:
    gemm = Gemm(tile, cluster, ctas)
    a, b, d = operands(gemm)
    with sim.options(check="all"):
        gemm(*(from_dlpack(x, assumed_align=16) for x in (a, b, d)))
    np.testing.assert_array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_the_text_is_assembled(arch: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    gemm = Gemm((256, 64, 64), (4, 2), 2)
    compiled = cute.compile(gemm, *(from_dlpack(x, assumed_align=16) for x in operands(gemm)))
    made = build(compiled.kernels[0], arch)
    assert made.spills == 0 and not made.warnings
    assert "tcgen05.mma.cta_group::2.kind::f16" in made.ptx
    assert re.search(r"cp\.async\.bulk\.tensor\.\dd\.cta_group::2\.shared::cluster\.global", made.ptx)
