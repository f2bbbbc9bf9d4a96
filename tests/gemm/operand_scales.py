"""Cases of ``scaled_matmul`` and ``grouped_matmul`` for the search of :mod:`.operand_cases`: scales and offsets lie as
people make them, too."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.gemm.operand_draws import EXTENTS, Case, Drawn, drawn_array, drawn_rows
from tilewright.gemm import grouped_matmul, scaled_matmul

BLOCK = 128


def drawn_scales(rng: np.random.Generator, kind: str | int, extent: int, k: int, columns: bool) -> tuple[Drawn, Any]:
    """Powers of two, and what each element of the operand (extent, k) is multiplied by. ``columns``: those of B, which
    has K first."""
    lines, deep = {"all": (1, 1), "line": (extent, 1)}.get(str(kind), (0, 0))
    if isinstance(kind, int):
        lines, deep = -(-extent // kind), -(-k // BLOCK)
    shape: tuple[int, ...] = (deep, lines) if columns else (lines, deep)
    if kind == "line" and rng.random() < 0.4:
        shape = (lines,)
    elif kind == "all" and rng.random() < 0.6:
        shape = ((), (1,))[int(rng.integers(2))]
    scales = drawn_array(rng, shape, np.float32)
    scales.view[...] = np.float32(2) ** np.clip(scales.view, -2, 2)
    scales.before = scales.memory.copy()
    whole = scales.view.astype(float).reshape((deep, lines) if columns else (lines, deep))
    whole = whole.T if columns else whole
    of_line = np.arange(extent) // kind if isinstance(kind, int) else np.minimum(np.arange(extent), lines - 1)
    return scales, whole[np.ix_(of_line, np.arange(k) // BLOCK if isinstance(kind, int) else np.zeros(k, int))]


def by_scaled(case: Case) -> np.ndarray:
    """``scaled_matmul`` with scales of the whole, of lines or of blocks, often with a bias."""
    rng, dtype = case.rng, case.a.view.dtype
    of_blocks = rng.random() < 0.4 and dtype.name != "int8"
    out = [np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)][int(rng.integers(3))]
    if of_blocks:
        m, n, k = (int(rng.choice(sizes)) for sizes in ((1, 5, 40, 136), (16, 64, 144), (16, 128, 144, 272)))
        case.a, case.b, case.d = (
            drawn_rows(rng, shape, kind, inner, 1.0)
            for shape, kind, inner in (((m, k), dtype, 1), ((k, n), dtype, 0), ((m, n), out, 1))
        )
    else:
        m, n, k = *case.d.view.shape, case.a.view.shape[1]
        case.d = drawn_array(rng, (m, n), out, result=True)
    case.c, case.alpha, case.beta, case.in_place = None, 1.0, 0.0, False
    kinds = [("all", "line"), ("line", "all"), ("line", "line"), ("all", "all")]
    of_a, of_b = [(1, 128), (1, 1), (128, 128)][int(rng.integers(3))] if of_blocks else kinds[int(rng.integers(4))]
    scale_a, left = drawn_scales(rng, of_a, m, k, False)
    scale_b, right = drawn_scales(rng, of_b, n, k, True)
    case.more = {"scale_a": scale_a, "scale_b": scale_b}
    case.expected = (case.a.view.astype(float) * left) @ (case.b.view.astype(float) * right.T)
    if rng.random() < 0.4:
        case.bias = drawn_array(rng, (n,), np.float32)
        case.expected = case.expected + case.bias.view
    return scaled_matmul(
        case.a.view,
        case.b.view,
        scale_a.view,
        scale_b.view,
        None if case.bias is None else case.bias.view,
        out=case.d.view,
        use_fast_accum=bool(rng.random() < 0.5),
        kernel=case.kernel,
    )


def by_offsets(case: Case) -> np.ndarray:
    """``grouped_matmul``, with the rows of A, the columns of B or K cut by offsets anywhere."""
    rng, mode = case.rng, int(case.rng.integers(3))
    m, n, k = (int(rng.choice(EXTENTS[1:])) for _ in range(3))
    cut, groups = (m, n, k)[mode], int(rng.integers(1, 5))
    offsets = drawn_array(rng, (groups,), np.int32)
    if offsets.view.strides[0] == 0:
        groups = 1
        offsets = Drawn(offsets.view[:1], offsets.memory)
    ends = np.sort(rng.integers(0, cut + 1, groups)).astype(np.int32)
    offsets.view[:] = ends
    offsets.before = offsets.memory.copy()
    stacks = [(groups,) if stacked else () for stacked in (mode == 1, mode == 0, mode == 2)]
    shapes = [(*stack, *shape) for stack, shape in zip(stacks, ((m, k), (k, n), (m, n)), strict=True)]
    ab, cd = case.a.view.dtype, case.d.view.dtype
    case.a, case.b = (drawn_array(rng, shape, ab) for shape in shapes[:2])
    case.d = drawn_array(rng, shapes[2], cd, result=True)
    case.c, case.alpha, case.beta, case.in_place, case.more = None, 1.0, 0.0, False, {"offsets": offsets}
    case.expected = np.zeros(shapes[2])
    a, b = case.a.view.astype(float), case.b.view.astype(float)
    for i, part in enumerate(slice(int(begin), int(end)) for begin, end in zip([0, *ends], ends, strict=False)):
        if mode == 0:
            case.expected[part] = a[part] @ b[i]
        elif mode == 1:
            case.expected[:, part] = a[i] @ b[:, part]
        else:
            case.expected[i] = a[:, part] @ b[part]
    return grouped_matmul(case.a.view, case.b.view, offsets.view, out=case.d.view, kernel=case.kernel)
