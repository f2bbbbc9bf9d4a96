"""The same kernels as CUDA C++, compiled for real architectures; no GPU is needed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.tiled.test_kernels import Predicated, SharedGemm, simt
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

pytest.importorskip("cuda.bindings.nvrtc")


def artifact(program: Any, shapes: list[Any], dtype: Any, arch: str, *more: Any) -> Any:
    from tilewright.cuda import compile as build

    arrays = [np.zeros(shape, t) for shape, t in zip(shapes, dtype, strict=True)]
    executor = cute.compile(program, *[from_dlpack(x, assumed_align=16) for x in arrays], *more)
    return build(executor.kernels[0], arch)


HALF, SINGLE = np.float16, np.float32


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_shared_gemm_uses_the_instructions(arch: str) -> None:
    made = artifact(SharedGemm(False), [(64, 64)] * 3, [HALF, HALF, SINGLE], arch)
    text = made.ptx
    assert "cp.async" in text
    assert made.spills == 0
    # 4 (K blocks) x 2 (M) x 4 (N) instructions a warp, each once
    assert text.count("mma.sync.aligned.m16n8k16.row.col.f32") == 32
    assert text.count("ldmatrix.sync") == 4 * (2 + 2)


def test_stmatrix_needs_sm_90() -> None:
    program = SharedGemm(False, "stmatrix")
    assert "stmatrix.sync" in artifact(program, [(64, 64)] * 3, [HALF, HALF, SINGLE], "sm_90a").ptx
    with pytest.raises(ConstraintError, match="sm_90"):
        artifact(program, [(64, 64)] * 3, [HALF, HALF, SINGLE], "sm_80")


def test_universal_gemm_is_fused() -> None:
    text = artifact(simt, [(16, 6), (8, 6), (16, 8)], [SINGLE] * 3, "sm_80").ptx
    assert text.count("fma.rn.f32") >= 2 * 2 * 6


@pytest.mark.parametrize("way", ["registers", "memory", "async"])
def test_predicated_copies_are_wide(way: str) -> None:
    from tilewright import Int32

    text = artifact(Predicated(way), [128, 128], [SINGLE] * 2, "sm_80", Int32(90)).ptx
    assert re.search(r"cp\.async\.ca\S* \S+ \[\S+\], 8" if way == "async" else r"ld\.global\S*\.(b64|v2)", text)
