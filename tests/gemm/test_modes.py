"""Every mode of GemmUniversal with every decomposition and reduction on both main loops: right, or refused for a
reason that names what does not go together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import GemmUniversal, SplitK, kernels

M, N, K, L = 40, 72, 264, 2
HOPPER = kernels()["hopper_f16"]
LOOPS = {
    "ampere": kernels()["tensorop_f16"],
    "hopper": HOPPER.only(next(c for c in HOPPER.small if c.tile[:2] == (64, 32) and c.cluster_size == 1)),
}
MODES: dict[str, tuple[str, int]] = {
    "gemm": ("gemm", 1), "gemm, split": ("gemm", 2), "parallel": ("gemm_split_k_parallel", 2),
    "batched": ("batched", 1), "array": ("array", 1),
}  # fmt: skip
SINGLE, CLUSTERS = "split-K is for a single product", "its blocks do not form clusters"
DRAW, POINTERS = "its blocks have no warp that could draw", "not by index or pointer"
SPLITS = "splits K in mode 'gemm'"
PARALLEL = r"is SplitK\(slices=2, mode='parallel'\), not"
DECOMPOSITIONS: dict[str, Any] = {
    "auto": "auto", "data_parallel": "data_parallel", "dynamic": "dynamic", "stream_k": "stream_k",
    "serial": SplitK(2), "parallel": SplitK(2, "parallel"), "cluster": SplitK(2, "cluster"),
}  # fmt: skip


def reason(loop: str, mode: str, how: str) -> str | None:
    """Why this cannot be; None where it can."""
    splits = how in ("serial", "parallel", "cluster")
    if mode == "gemm, split" and how not in ("auto", "data_parallel", "stream_k"):
        return SPLITS
    if mode == "parallel" and how not in ("auto", "parallel"):
        return PARALLEL
    if mode in ("batched", "array") and splits:
        return SINGLE
    if loop == "ampere":
        return {"dynamic": DRAW, "cluster": CLUSTERS}.get(how)
    return POINTERS if mode == "array" else None


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


def run(loop: str, mode: str, how: Any, reduction: str) -> None:
    name, count = MODES[mode]
    lead = (L,) if mode in ("batched", "array") else ()
    a, b, c = (integers(i, *lead, *s) for i, s in enumerate(((M, K), (K, N), (M, N))))
    d = np.full_like(c, 9)
    given: dict[str, Any] = {"A": a, "B": b, "C": c, "D": d}
    if mode == "array":
        given = {key: list(x) for key, x in given.items()}
    handle = GemmUniversal(LOOPS[loop], how, reduction)
    arguments = GemmUniversal.Arguments(**given, alpha=2.0, beta=-1.0, mode=name, batch_count=count)
    try:
        handle.initialize(arguments, np.zeros(handle.workspace_size(arguments) + 16, np.uint8))
    except ArgumentError:
        assert not handle.can_implement(arguments) and (d == 9).all()
        raise
    handle.run()
    np.testing.assert_array_equal(d, 2 * (a.astype(float) @ b.astype(float)) - c)


@pytest.mark.parametrize("how", DECOMPOSITIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loop", LOOPS)
def test_right_or_refused(loop: str, mode: str, how: str) -> None:
    expected = reason(loop, mode, how)
    if expected is None:
        run(loop, mode, DECOMPOSITIONS[how], "atomic" if loop == "ampere" else "mixed")
    else:
        with pytest.raises(ArgumentError, match=expected):
            run(loop, mode, DECOMPOSITIONS[how], "mixed")
