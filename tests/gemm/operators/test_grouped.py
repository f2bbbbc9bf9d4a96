"""Products of different sizes in one launch: exact, whatever their sizes and majors; errors before a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.cuda import compile as cross_compile
from tilewright.errors import ArgumentError
from tilewright.gemm import gemm_grouped, kernels
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.operators import grouped

torch = pytest.importorskip("torch")


def integers(seed: int, *shape: int, turned: bool = False, dtype: Any = np.float16) -> np.ndarray:
    drawn = np.random.default_rng(seed).integers(-3, 4, shape[::-1] if turned else shape).astype(dtype)
    return drawn.T if turned else drawn


SIZE = st.integers(0, 150)


@settings(max_examples=4, deadline=None)
@given(st.lists(st.tuples(SIZE, SIZE, SIZE, st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_any_sizes_and_majors(sizes: list[tuple[int, int, int, bool, bool]]) -> None:
    problems = [(integers(i, m, k, turned=s), integers(i + 9, k, n, turned=t))
                for i, (m, n, k, s, t) in enumerate(sizes)]  # fmt: skip
    for (a, b), d in zip(problems, gemm_grouped(problems), strict=True):
        np.testing.assert_array_equal(d.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


def test_all_of_one_kind_are_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = []
    run = grouped.Launch.run
    monkeypatch.setattr(grouped.Launch, "run", lambda self: launches.append(self) or run(self))
    sizes = ((8, 64, 32), (264, 136, 72), (16, 8, 200))
    problems = [(torch.from_numpy(integers(i, m, k)), torch.from_numpy(integers(i + 5, k, n)), torch.ones(m, n).half())
                for i, (m, n, k) in enumerate(sizes)]  # fmt: skip
    out = [torch.empty(m, n).half() for m, n, _ in sizes]
    found = gemm_grouped(problems, out, alpha=2.0, beta=-1.0)
    assert len(launches) == 1 and all(x is y for x, y in zip(found, out, strict=True))
    for (a, b, c), d in zip(problems, found, strict=True):
        assert torch.equal(d.double(), 2 * (a.double() @ b.double()) - c.double())
    gemm_grouped([(integers(0, 8, 16), integers(1, 16, 8)), (integers(0, 8, 16, turned=True), integers(1, 16, 8))])
    assert len(launches) == 3


def test_in_place_and_other_types() -> None:
    c = integers(2, 70, 40, dtype=np.float32)
    expected = integers(0, 70, 24, dtype=np.float32) @ integers(1, 24, 40, dtype=np.float32) + c
    (d,) = gemm_grouped(
        [(integers(0, 70, 24, dtype=np.float32), integers(1, 24, 40, dtype=np.float32), c)], [c], beta=1.0
    )  # fmt: skip
    assert d is c and (c == expected).all()
    assert gemm_grouped([]) == []
    (d,) = gemm_grouped([(integers(0, 8, 32, dtype=np.int8), integers(1, 32, 16, dtype=np.int8))])
    assert d.dtype == np.int32


x, y = np.ones((8, 16), np.float16), np.ones((16, 8), np.float16)
many = np.ones((16, 16), np.float16)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gemm_grouped([(x, y), (x, x)]), "problem 1: inner dimensions differ"),
        (lambda: gemm_grouped([(x,)]), "problem 0 must be"),
        (lambda: gemm_grouped([(x, y)], []), "out has 0 arrays for 1 problems"),
        (lambda: gemm_grouped([(x, y), (x.astype(np.float32), y.astype(np.float32))]), "problem 1: a is"),
        (lambda: gemm_grouped([(x, y)], beta=1.0), "problem 0: beta = 1.0 needs a matrix c"),
        (lambda: gemm_grouped([(x[None], y)]), "must be matrices"),
        (lambda: gemm_grouped([(x, y), (x, y)], [many[:8, :8], many[4:12, :8]]), "of problems 0 and 1 overlap"),
        (lambda: gemm_grouped([(x, y), (many, y)], [many[:8, :8], many.copy()[:, :8]]), "overlaps a of problem 1"),
        (lambda: gemm_grouped([(x, y)], kernel="hopper_f16"), "takes no groups"),
        (lambda: gemm_grouped([(x, "y")]), "problem 0: b must be a matrix"),
    ],
)  # fmt: skip
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_nothing_spills(arch: str) -> None:
    from tilewright import Float32, Int32, cute
    from tilewright.cute.runtime import from_dlpack
    from tilewright.gemm.kernel.grouped import COLUMNS, GroupedGemm

    table = from_dlpack(np.zeros((3, COLUMNS), np.int64)).mark_layout_dynamic()
    function = LinearCombination(Float32(1), Float32(0))
    kernel = GroupedGemm(kernels()["tensorop_f16"].config)
    artifact = cross_compile(cute.compile(kernel, table, Int32(1), Int32(1), function).kernels[0], arch)
    assert artifact.spills == 0


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    rng = np.random.default_rng(0)
    for turned in (False, True):
        problems = []
        for m, n, k in rng.integers(1, 700, (40, 3)).tolist():
            a, b = (torch.randint(-3, 4, s, device="cuda").half() for s in ((m, k), (k, n)))
            problems.append((a.mT.contiguous().mT if turned else a, b))
        for (a, b), d in zip(problems, gemm_grouped(problems), strict=True):
            assert torch.equal(d, (a.double() @ b.double()).half())
