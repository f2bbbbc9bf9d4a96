"""Kernels compiled before there are operands are those that operands find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.gemm import SplitK, kernels, launcher
from tilewright.gemm.host import handle
from tilewright.gemm.operators.arrays import unwritten_result
from tilewright.gemm.tuning.ahead import compile_ahead
from tilewright.gemm.tuning.stand_in import stand_in


def test_operands_find_what_was_staged() -> None:
    entry = kernels()["simt_f32"]
    how = SplitK(3, "parallel")
    plan, artifacts = compile_ahead(stand_in((70, 52, 64), "float32", None, "k", "n"), entry.only(entry.config), how)
    assert plan.decomposition == "split_k" and [artifact.spills for artifact in artifacts] == [0, 0]
    before = dict(handle._COMPILED)
    a, b = (np.random.default_rng(0).integers(-3, 4, s).astype(np.float32) for s in ((70, 64), (64, 52)))
    out = np.empty((70, 52), np.float32)
    launcher(a, b, out, kernel=entry.only(entry.config), decomposition=how)()
    np.testing.assert_array_equal(out, a @ b)
    assert handle._COMPILED == before


def test_copies_to_aligned_rows_are_compiled_too() -> None:
    plan, artifacts = compile_ahead(stand_in((3976, 943, 3105), "float16", None, "k", "k"))
    assert plan.packing is not None and plan.packing.names == ("A", "B", "D")
    names = [artifact.name.partition("_")[0] for artifact in artifacts]
    assert names == ["PackMatrices", "WarpSpecializedGemm", "PackMatrices"]


@pytest.mark.parametrize("kind", sorted({entry.config.a.dtype for entry in kernels().values()}, key=str), ids=str)
def test_every_type_has_stand_ins(kind: Any) -> None:
    """Products are planned before there are operands, and results that nothing writes have strides alone."""
    problem = stand_in((16, 48, 32), kind, kind, "m", "k")
    assert problem.shape == (16, 48, 32, 1) and problem.A.dtype is problem.D.dtype
    unwritten = unwritten_result(np.zeros(1), (5, 70), kind)
    assert unwritten.dtype is problem.A.dtype and tuple(unwritten.array.shape) == (5, 70, 1)
