"""Scales that are infinite or NaN: one rule for all products with scales (docs/matmul.md, "Scales that are not
finite"). A scale multiplies the sum of the products that share it, in float32 as IEEE says; only where a weight of 4 or
8 bits is widened for rows of 16 bits does it multiply each number of the weight."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import sim
from tilewright.gemm import (
    block_scaled_matmul,
    mixed_matmul,
    prepare_weight,
    scaled_grouped_matmul,
    scaled_matmul,
)

E4M3, E8M0, BF16, F16, F32 = (
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e8m0fnu,
    ml_dtypes.bfloat16,
    np.float16,
    np.float32,
)
M, N, K, BLOCK = 80, 48, 256, 128
SPECIAL = np.inf, -np.inf, np.nan, 0.0


def integers(seed: int, *shape: int) -> np.ndarray:
    """Small integers; lines 3 and 9 are zeros, so that sums are 0 there."""
    found = np.random.default_rng(seed).integers(-3, 4, shape)
    found[..., (3, 9), :] = 0
    return found


def scales(seed: int, *shape: int, dtype: Any = F32) -> np.ndarray:
    """Powers of two, of which some are not finite or 0: by the first mode."""
    found = np.exp2(np.random.default_rng(seed).integers(-2, 3, shape)).astype(dtype)
    for i, special in enumerate(SPECIAL):
        found.reshape(shape[0], -1)[1 + i :: 7, i % max(1, found[0].size)] = special
    return found


def spread(scale: np.ndarray, rows: int, k: int) -> np.ndarray:
    """The scale of each element of an operand (rows, K)."""
    (down, across), wide = scale.shape, scale.astype(np.float64)
    return np.repeat(np.repeat(wide, -(-rows // down), 0)[:rows], -(-k // across), 1)[:, :k]


def of_sums(a: np.ndarray, b: np.ndarray, scale_a: np.ndarray, scale_b: np.ndarray, group: int = BLOCK) -> np.ndarray:
    """The sum over groups of K of the group's sum by its two scales; all operands are (rows, K)."""
    (m, k), n = a.shape, b.shape[0]
    spread_a, spread_b = spread(scale_a, m, k), spread(scale_b, n, k)
    with np.errstate(invalid="ignore"):
        parts = [
            (a[:, at : at + group].astype(np.float64) @ b[:, at : at + group].astype(np.float64).T)
            * spread_a[:, at, None]
            * spread_b[None, :, at]
            for at in range(0, k, group)
        ]
        return np.sum(parts, 0)


FORMS = [
    ("whole", E4M3),
    ("whole", np.int8),
    ("lines", E4M3),
    ("lines", np.int8),
    ("blocks", E4M3),
    ("lines of both", E4M3),
]


@pytest.mark.parametrize(("form", "kind"), FORMS, ids=str)
def test_scaled_matmul(form: str, kind: Any) -> None:
    """Of whole operands and lines by the kernels of Hopper and of Ampere; of blocks by those of Hopper."""
    blocks = form in ("blocks", "lines of both")
    a, b = integers(0, M, K), integers(1, N, K)
    shapes = {"whole": ((1, 1), (1, 1)), "lines": ((M, 1), (N, 1)), "blocks": ((M, 2), (1, 2))}
    of_a, of_b = shapes.get(form, ((M, 2), (N, 2)))
    for special in SPECIAL if form == "whole" else [None]:
        scale_a, scale_b = scales(2, *of_a), np.ones(of_b, F32)
        if special is not None:
            scale_a[:] = special
        if form != "whole":
            scale_b = scales(3, *of_b)
        exact = of_sums(a, b, scale_a, scale_b, BLOCK if blocks else K)
        given = (scale_a.reshape(()), scale_b.reshape(())) if form == "whole" else (scale_a, scale_b.T)
        for arch in ("",) if blocks else ("", "sm_89"):
            with sim.options(arch=arch):
                found = scaled_matmul(a.astype(kind), b.astype(kind).T, *given, out_dtype=F32)
            np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("blocks", [False, True])
def test_groups(blocks: bool) -> None:
    """Rows that belong to no group are zeros, whatever their scales are."""
    a, b, offsets = integers(0, M, K), np.stack([integers(i, N, K) for i in (1, 2)]), np.array([30, 70], np.int32)
    scale_a, scale_b = scales(2, M, 2 if blocks else 1), np.stack([scales(i, N, 2 if blocks else 1) for i in (3, 4)])
    group = BLOCK if blocks else K
    exact = np.concatenate(
        [
            of_sums(a[:30], b[0], scale_a[:30], scale_b[0], group),
            of_sums(a[30:70], b[1], scale_a[30:70], scale_b[1], group),
        ]
    )
    given = (scale_a, scale_b.swapaxes(1, 2)) if blocks else (scale_a[:, 0], scale_b[:, :, 0])
    found = scaled_grouped_matmul(a.astype(E4M3), b.astype(E4M3).swapaxes(1, 2), *given, offsets, out_dtype=F32)
    np.testing.assert_array_equal(found[:70], exact)
    np.testing.assert_array_equal(found[70:], 0)


@pytest.mark.parametrize(
    ("m", "rows", "arch", "terms"),
    [(8, F16, "", False), (8, E4M3, "", False), (M, E4M3, "", False), (M, BF16, "", True), (M, BF16, "sm_80", True)],
    ids=["few", "few of 8 bits", "wgmma of 8 bits", "wgmma of 16 bits", "written out"],
)
def test_weights(m: int, rows: Any, arch: str, terms: bool) -> None:
    a, numbers, of_weight = integers(0, M, K)[:m], integers(1, N, K).astype(np.int8), scales(2, N, 2, dtype=BF16)
    scale_a = scales(3, m, 1)
    with np.errstate(invalid="ignore"):
        if terms:
            exact = (a.astype(np.float64) @ (numbers * spread(of_weight, N, K)).T) * scale_a
        else:
            exact = of_sums(a, numbers, np.ones((m, 1)), of_weight) * scale_a
    with sim.options(arch=arch):
        found = mixed_matmul(a.astype(rows), prepare_weight(numbers, of_weight), scale_a=scale_a, out_dtype=F32)
    np.testing.assert_array_equal(found, exact)


def test_factors_of_blocks() -> None:
    """E8M0 has NaN and no infinity."""
    a, b = integers(0, 128, 128), integers(1, 64, 128)
    scale_a, scale_b = np.ones((128, 4), E8M0), np.ones((64, 4), E8M0)
    scale_a[5, 1] = np.nan
    exact = of_sums(a, b, scale_a, scale_b, 32)
    with sim.options(arch="sm_100a"):
        found = block_scaled_matmul(a.astype(E4M3), b.astype(E4M3).T, scale_a, scale_b.T, out_dtype=F32)
    np.testing.assert_array_equal(found, exact)
    assert np.isnan(found[5]).all() and np.isfinite(np.delete(found, 5, 0)).all()
