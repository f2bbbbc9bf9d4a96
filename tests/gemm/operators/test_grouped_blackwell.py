"""Groups of products by the kernels of sm_100 and sm_120: exact wherever groups begin; their texts; refusals."""

from __future__ import annotations

import importlib.util
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.gemm.operators.test_offsets import expected
from tests.gemm.operators.test_scaled_offsets import drawn
from tilewright import Float32, cute, sim
from tilewright.cuda import compile as cross_compile
from tilewright.errors import ArgumentError
from tilewright.gemm import LinearCombination, gemm_grouped, grouped_matmul, kernels, scaled_grouped_matmul
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators import group_launch, offsets
from tilewright.gemm.operators.group_launch import Launch
from tilewright.ir.target import architecture

ARCHS = {"sm_100a": "blackwell", "sm_120a": "sm120"}


@settings(max_examples=3, deadline=None)
@given(
    arch=st.sampled_from(sorted(ARCHS)),
    mode=st.sampled_from([0, 1, 2]),
    extents=st.tuples(st.integers(1, 300), st.integers(1, 20), st.integers(1, 12)),
    parts=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    dtype=st.sampled_from([np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]),
    seed=st.integers(0, 9),
)
@example("sm_100a", 0, (300, 9, 9), [0.3, 0.3, 0.9], np.float16, 0)  # rows of no group, an empty one
@example("sm_100a", 2, (40, 9, 9), [0.2, 0.2, 0.9], np.float16, 0)
def test_any_groups(arch: str, mode: int, extents: Any, parts: list[float], dtype: Any, seed: int) -> None:
    """In all three forms, with all checks; one- and two-byte types."""
    m, n, k = extents[0], 8 * extents[1], 16 * extents[2]
    ends = [int(x * (m, n, k)[mode]) // (8 if mode else 1) * (8 if mode else 1) for x in sorted(parts)]
    (a, b, *_, cut), _ = drawn(mode, m, n, k, ends, dtype, seed)
    exact = expected(a, b, ends)
    with sim.options(arch=arch, check="all", sms=4, seed=seed):
        found = grouped_matmul(a, b, cut, out_dtype=np.float32)
    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("arch", ARCHS)
def test_scales_biases_and_shared_tiles(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[str] = []
    run = group_launch.TableLaunch.run
    monkeypatch.setattr(group_launch.TableLaunch, "run", lambda x: launches.append(x.config.math) or run(x))
    operands, exact = drawn(0, 70, 48, 64, [8, 8, 60], ml_dtypes.float8_e4m3fn, 0)
    rng, shapes = np.random.default_rng(0), ((40, 48, 512), (130, 24, 64), (8, 8, 72))
    problems = [tuple(rng.integers(-2, 3, s).astype(np.float16) for s in ((m, k), (k, n))) for m, n, k in shapes]
    bias = [np.arange(n, dtype=np.float32) for _, n, _ in shapes]
    with sim.options(arch=arch, check="all", sms=4):
        scaled = scaled_grouped_matmul(*operands, out_dtype=Float32)
        shared = gemm_grouped(problems, bias=bias, decomposition="stream_k")
    np.testing.assert_array_equal(scaled, exact)
    for (a, b), found, vector in zip(problems, shared, bias, strict=True):
        np.testing.assert_array_equal(found, (a.astype(np.float32) @ b.astype(np.float32) + vector).astype(np.float16))
    assert launches == [{"blackwell": "tcgen05"}.get(ARCHS[arch], "sm120")] * 2


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.float8_e4m3fn])
def test_rows_by_index(arch: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four rows by an instruction of TMA: in any order, of groups that end anywhere, of no group; some are not there,
    which is refused where it can be seen, and else counts as zeros."""
    ends, rng = [130, 130, 145, 290], np.random.default_rng(4)
    a, b = (rng.integers(-2, 3, shape).astype(dtype) for shape in ((70, 80), (4, 48, 80)))
    rows = rng.integers(0, 70, 300).astype(np.int32)
    rows[[0, 131, 289]] = -1, 70, 1 << 30
    there = (rows >= 0) & (rows < 70)
    exact = expected(np.where(there[:, None], a[rows.clip(0, 69)].astype(np.float32), 0), b.swapaxes(1, 2), ends)
    kernel = f"{ARCHS[arch]}_{'f16' if dtype is np.float16 else 'e4m3'}"
    given = a, b.swapaxes(1, 2), np.array(ends, np.int32)
    with sim.options(arch=arch, check="all", sms=4):
        with pytest.raises(ArgumentError, match="rows has numbers of -1 to 1073741824, and a has 70 rows"):
            grouped_matmul(*given, rows=rows, kernel=kernel)
        monkeypatch.setattr(offsets, "check_rows", lambda rows, problem: None)
        found = grouped_matmul(*given, rows=rows, kernel=kernel, out_dtype=np.float32)
    np.testing.assert_array_equal(found, exact)
    if importlib.util.find_spec("cuda") is None:
        return
    launches: list[Any] = []
    monkeypatch.setattr(group_launch.TableLaunch, "run", lambda launch: launches.append(launch))
    with sim.options(arch=arch):
        grouped_matmul(*given, rows=rows, kernel=kernel, out_dtype=np.float32)
        (launch,) = launches
        made = cross_compile(cute.compile(launch.kernel(), *launch.arguments()).kernels[1], arch)
    assert made.spills == 0 and not made.warnings and "tile::gather4" in made.ptx


@pytest.mark.parametrize(
    ("arch", "names"),
    [
        ("sm_100a", {"UTCHMMA", "UTMALDG.3D", "UTMASTG.3D", "LDTM.16"}),
        ("sm_120a", {"HMMA.16816.F32.BF16", "UTMALDG.3D", "UTMASTG.3D"}),
    ],
)
def test_the_text_is_assembled(arch: str, names: set[str]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    entry = kernels()[f"{ARCHS[arch]}_bf16"]
    fitting = next(size for size in entry.sizes if entry.family.grouped.fits(size))
    a, b = np.zeros((64, 64), ml_dtypes.bfloat16), np.zeros((64, 256), ml_dtypes.bfloat16)
    A, B, D = (Matrix.of("x", x) for x in (a, b, a @ b))
    function = LinearCombination(Float32(1), Float32(0))
    for sharing in (False, True):
        with sim.options(arch=arch):
            limits = 4, architecture(arch).smem
            launch = Launch([Problem(A, B, D, D, False)], entry.only(fitting), lambda _: function, [0], limits, sharing)
            made = cross_compile(cute.compile(launch.kernel(), *launch.arguments()).kernels[1], arch)
        assert made.spills == 0 and not made.warnings and names <= set(made.mnemonics())


def test_what_is_refused() -> None:
    a, b, ends = np.ones((16, 64), np.float16), np.ones((2, 64, 64), np.float16), np.array([8, 16], np.int32)
    with pytest.raises(ArgumentError, match="it needs tcgen05"):
        grouped_matmul(a, b, ends, kernel="blackwell_f16")
