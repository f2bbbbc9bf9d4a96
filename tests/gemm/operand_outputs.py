"""Cases of ``matmul`` with matrices beside D for the search of :mod:`.operand_cases`: one that is added, one that is
written."""

from __future__ import annotations

import numpy as np

from tests.gemm.operand_draws import Case, drawn_array, drawn_rows
from tilewright.gemm import matmul
from tilewright.gemm.epilogue.activations import Activation
from tilewright.gemm.epilogue.functions import Residual, Store


def by_outputs(case: Case) -> np.ndarray:
    """D = relu(sums + residual), and the sums before it, of D's type or of float32."""
    rng, shape, dtype = case.rng, case.d.view.shape, case.d.view.dtype
    case.c, case.beta, case.in_place = None, 0.0, False
    floats = np.issubdtype(case.entry.config.acc_dtype.dtype, np.floating)
    residual = drawn_array(rng, shape, dtype)
    other = np.dtype(np.float32) if floats and rng.random() < 0.2 else dtype
    before = drawn_rows(rng, shape, other, 1) if rng.random() < 0.6 else drawn_array(rng, shape, other, result=True)
    case.more |= {"residual": residual, "before": before}
    case.written.append(before)
    case.expected = case.product() + residual.view.astype(float)
    functions = Residual(residual.view, case.entry.config.acc_dtype(1)), Store(before.view), Activation("relu")
    found = matmul(case.a.view, case.b.view, case.d.view, alpha=case.alpha, epilogue=functions, **case.by)
    np.testing.assert_array_equal(before.view.astype(float), case.expected.astype(other).astype(float), "before")
    case.expected = np.maximum(case.expected, 0)
    return found
