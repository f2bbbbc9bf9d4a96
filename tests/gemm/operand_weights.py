"""Cases of ``mixed_matmul`` and ``sparse_matmul`` for the search of :mod:`.operand_cases`: weights that are arranged or
compressed once, from memory in every layout."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.gemm.operand_draws import EXTENTS, Case, drawn_array, drawn_rows
from tilewright.gemm import compress_2_4, mixed_matmul, prepare_weight, sparse_matmul

ROWS = (*EXTENTS, 33, 65)
E2M1 = np.array([sign * x for sign in (1, -1) for x in (0, 0.5, 1, 1.5, 2, 3, 4, 6)])


def by_mixed(case: Case) -> np.ndarray:
    """``mixed_matmul`` by a weight with scales: of integers of 4 bits, also with zero points, of 8 bits, or of floats
    of 4 or 8 bits; often with a bias, and with rows of 8-bit floats that have scales."""
    rng, dtype = case.rng, case.a.view.dtype
    m, n, k = (int(rng.choice(sizes)) for sizes in (ROWS, (8, 16, 40, 72, 128, 136), (128, 256, 384)))
    group = int(rng.choice([32, 64, 128]))
    rows = np.dtype(ml_dtypes.float8_e4m3fn) if rng.random() < 0.3 else dtype
    case.a, case.d = drawn_array(rng, (m, k), rows), drawn_array(rng, (m, n), np.float32, result=True)
    kind = str(rng.choice(["int4", "zeros", "int8", "e2m1", "e4m3"]))
    elements = np.dtype(ml_dtypes.float8_e4m3fn if kind == "e4m3" else np.int8)
    weight = drawn_array(rng, (n, k // 2 if kind == "e2m1" else k), elements)
    scales = drawn_array(rng, (n, k // group), np.dtype(np.float32) if rng.random() < 0.5 else dtype)
    scales.view[...] = (np.float32(2) ** np.clip(scales.view.astype(np.float32), -2, 1)).astype(scales.view.dtype)
    scales.before = scales.memory.copy()
    case.b, case.c, case.alpha, case.beta, case.in_place = weight, None, 1.0, 0.0, False
    case.named, case.more = False, {"scales": scales}
    zeros = drawn_array(rng, (n, k // group), np.int8) if kind == "zeros" else None
    if zeros is not None:  # then both are of 0 to 15
        case.more["zeros"] = zeros
        for x in (weight, zeros):
            x.view[...] = np.abs(x.view)
            x.before = x.memory.copy()
    numbers, given = weight.view.astype(float), weight.view
    if kind == "e2m1":  # the bits of what was drawn
        given = weight.view.view(np.uint8)
        numbers = E2M1[np.stack((given & 15, given >> 4), -1).reshape(n, k)]
    if zeros is not None:
        numbers = numbers - np.repeat(zeros.view.astype(float), group, 1)
    case.expected = case.a.view.astype(float) @ (numbers * np.repeat(scales.view.astype(float), group, 1)).T
    scale_a = None
    if rows is not dtype and rng.random() < 0.7:
        scale_a = drawn_array(rng, [(m, 1), (m,), ()][rng.integers(3)], np.float32)
        scale_a.view[...] = np.float32(2) ** np.clip(scale_a.view, -2, 1)
        scale_a.before = scale_a.memory.copy()
        case.more["scale_a"] = scale_a
        case.expected = case.expected * scale_a.view.astype(float).reshape(-1, 1)
    if rng.random() < 0.4:
        case.bias = drawn_array(rng, (n,), dtype)
        case.expected = case.expected + case.bias.view.astype(float)
    points = None if zeros is None else zeros.view
    prepared = prepare_weight(given, scales.view, points, bits=8 if kind in ("int8", "e4m3") else 4)
    bias, of_rows = (None if x is None else x.view for x in (case.bias, scale_a))
    return mixed_matmul(case.a.view, prepared, bias, scale_a=of_rows, out=case.d.view)


def by_sparse(case: Case) -> np.ndarray:
    """``sparse_matmul`` of a matrix of which two of four neighbours are zero."""
    rng, dtype = case.rng, case.a.view.dtype
    step = 16 if dtype.itemsize == 2 else 32
    m, n = (int(rng.choice(EXTENTS[1:])) for _ in range(2))
    k = step * int(rng.integers(1, 6))
    case.a = drawn_array(rng, (m, k), dtype, result=True)  # nothing is broadcast: neighbours would share their zeros
    kept = rng.permuted(np.tile([True, True, False, False], (m, k // 4, 1)), axis=2).reshape(m, k)
    case.a.view[...] = np.where(kept, case.a.view, np.zeros((), dtype))
    case.a.before = case.a.memory.copy()
    # Elements of 8 bits have contiguous columns.
    case.b = drawn_array(rng, (k, n), dtype) if dtype.itemsize == 2 else drawn_rows(rng, (k, n), dtype, 0, 1.0)
    case.d = drawn_array(rng, (m, n), np.int32 if dtype == np.int8 else np.float32, result=True)
    case.c, case.alpha, case.beta, case.in_place, case.named = None, 1.0, 0.0, False, False
    case.expected = case.product()
    return sparse_matmul(compress_2_4(case.a.view), case.b.view, case.d.view)
