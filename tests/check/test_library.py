"""The library's GEMMs pass all checks."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import sim
from tilewright.gemm import gemm


@pytest.mark.parametrize("decomposition", ["data_parallel", "stream_k"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_gemm(dtype: type, decomposition: str) -> None:
    a, b = np.ones((130, 96), dtype), np.ones((96, 136), dtype)
    with sim.options(check="all"):
        report = gemm(a, b, machine="cpu", decomposition=decomposition)
    assert (np.asarray(report.d) == 96).all()
