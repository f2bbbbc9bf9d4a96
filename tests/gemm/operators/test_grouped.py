"""Products of different sizes in one launch: exact, whatever their sizes and majors; errors before a launch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import sim
from tilewright.cuda import compile as cross_compile
from tilewright.errors import ArgumentError
from tilewright.gemm import gemm_grouped, kernels
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators import group_launch
from tilewright.gemm.schedule.group_shares import EvenShares

torch = pytest.importorskip("torch")


def integers(seed: int, *shape: int, turned: bool = False, dtype: Any = np.float16) -> np.ndarray:
    drawn = np.random.default_rng(seed).integers(-3, 4, shape[::-1] if turned else shape).astype(dtype)
    return drawn.T if turned else drawn


SIZE = st.integers(0, 150)


@settings(max_examples=4, deadline=None)
@given(st.lists(st.tuples(SIZE, SIZE, SIZE, st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_any_sizes_and_majors(sizes: list[tuple[int, int, int, bool, bool]]) -> None:
    problems = [
        (integers(i, m, k, turned=s), integers(i + 9, k, n, turned=t)) for i, (m, n, k, s, t) in enumerate(sizes)
    ]
    for (a, b), d in zip(problems, gemm_grouped(problems), strict=True):
        np.testing.assert_array_equal(d.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


def test_problems_of_one_kind_are_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = []
    run = group_launch.Launch.run
    monkeypatch.setattr(group_launch.Launch, "run", lambda self: launches.append(self) or run(self))
    sizes = ((8, 64, 32), (264, 136, 72), (16, 8, 200))
    problems = [
        (torch.from_numpy(integers(i, m, k)), torch.from_numpy(integers(i + 5, k, n)), torch.ones(m, n).half())
        for i, (m, n, k) in enumerate(sizes)
    ]
    out = [torch.empty(m, n).half() for m, n, _ in sizes]
    found = gemm_grouped(problems, out, alpha=2.0, beta=-1.0)
    assert len(launches) == 1 and all(x is y for x, y in zip(found, out, strict=True))
    for (a, b, c), d in zip(problems, found, strict=True):
        assert torch.equal(d.double(), 2 * (a.double() @ b.double()) - c.double())
    gemm_grouped([(integers(0, 8, 16), integers(1, 16, 8)), (integers(0, 8, 16, turned=True), integers(1, 16, 8))])
    assert len(launches) == 3


def test_grouped_outputs_in_place_and_of_other_types() -> None:
    c = integers(2, 70, 40, dtype=np.float32)
    expected = integers(0, 70, 24, dtype=np.float32) @ integers(1, 24, 40, dtype=np.float32) + c
    (d,) = gemm_grouped(
        [(integers(0, 70, 24, dtype=np.float32), integers(1, 24, 40, dtype=np.float32), c)], [c], beta=1.0
    )
    assert d is c and (c == expected).all()
    assert gemm_grouped([]) == []
    (d,) = gemm_grouped([(integers(0, 8, 32, dtype=np.int8), integers(1, 32, 16, dtype=np.int8))])
    assert d.dtype == np.int32


PINGPONG = kernels()["hopper_f16"].only(
    replace(kernels()["hopper_f16"].config, tile=(128, 128, 64), pingpong=True, epilogue_columns=32)
)
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
        (lambda: gemm_grouped([(x, y)], kernel="small_m_f16"), "takes no groups"),
        (
            lambda: gemm_grouped([(x, y), (x[:, :3].copy(), y[:3])], kernel="hopper_f16"),
            "problem 1: kernel hopper_f16: TMA wants rows",
        ),
        (lambda: gemm_grouped([(x, y)], kernel=PINGPONG), "single blocks"),
        (lambda: gemm_grouped([(x, y)], bias=[]), "bias has 0 vectors for 1 problems"),
        (lambda: gemm_grouped([(x, y)], bias=[y[0, :4]]), "problem 0: bias must be a contiguous vector of 8"),
        (lambda: gemm_grouped([(x, y)], bias=[y[:8, 0]]), "problem 0: bias must be a contiguous vector of 8"),
        (lambda: gemm_grouped([(x, y)] * 2, bias=[y[0], y[0].astype(np.float32)]), "problem 1: bias is"),
        (lambda: gemm_grouped([(x, y)], activation="swish"), "there is no activation"),
        (lambda: gemm_grouped([(x, y)], alpha=float("inf")), "alpha"),
        (lambda: gemm_grouped(7), "a list of problems"),
        (lambda: gemm_grouped([(x, "y")]), "problem 0: b must be a matrix"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_grouped_kernels_do_not_spill(arch: str) -> None:
    from tilewright import Float32, Int32, cute
    from tilewright.cute.runtime import from_dlpack
    from tilewright.gemm.kernel.group_offsets import HostGroups
    from tilewright.gemm.kernel.group_table import COLUMNS
    from tilewright.gemm.kernel.grouped import GroupedGemm

    table = from_dlpack(np.zeros((3, COLUMNS), np.int64)).mark_layout_dynamic()
    function = LinearCombination(Float32(1), Float32(0))
    kernel = GroupedGemm(kernels()["tensorop_f16"].config)
    artifact = cross_compile(cute.compile(kernel, table, Int32(1), HostGroups(), function, None).kernels[0], arch)
    assert artifact.spills == 0


def entry_in(*tile: int, **more: Any) -> Any:
    entry = kernels()["hopper_f16"]
    return entry.only(
        next(
            replace(c, **more)
            for c in (entry.config, *entry.small)
            if c.tile[:2] == tile and c.cluster_size == 1 and not c.transposed
        )
    )


@pytest.mark.parametrize(
    ("tile", "more", "turned"),
    [
        ((64, 32), {"stages": 3, "raster": "hilbert"}, False),
        ((128, 64), {"transposed": True}, True),
        ((128, 320), {}, False),
    ],
)
def test_the_hopper_kernel_in_several_sizes(tile: tuple[int, int], more: dict[str, Any], turned: bool) -> None:
    """``turned``: A is contiguous along M and B along N, else both along K."""
    sizes = ((8, 64, 32), (200, 136, 72), (16, 8, 200), (8 if turned else 1, 8, 8), (136 if turned else 130, 328, 64))
    problems = [
        (integers(i, m, k, turned=turned), integers(i + 5, k, n, turned=not turned), integers(i + 8, m, n))
        for i, (m, n, k) in enumerate(sizes)
    ]
    vectors = [integers(i + 20, n) for i, (_, n, _) in enumerate(sizes)]
    found = gemm_grouped(
        problems, alpha=2.0, beta=-1.0, bias=vectors, activation="relu", kernel=entry_in(*tile, **more)
    )
    (launch,) = found.launches
    assert launch.kernel == "hopper_f16" and launch.tile[:2] == tile and launch.problems == tuple(range(5))
    for (a, b, c), v, d in zip(problems, vectors, found, strict=True):
        expected = np.maximum(2 * (a.astype(float) @ b.astype(float)) - c + v, 0)
        np.testing.assert_array_equal(d, expected)


def test_problems_that_tma_cannot_load_use_the_fallback_kernel() -> None:
    shapes = ((16, 24, 32), (16, 24, 33), (16, 24, 0), (0, 24, 32), (40, 23, 32), (1, 8, 8))
    problems = [(integers(i, m, k), integers(i + 9, k, n)) for i, (m, n, k) in enumerate(shapes)]
    vectors = [integers(i + 20, n) for i, (_, n, _) in enumerate(shapes)]
    found = gemm_grouped(problems, bias=vectors)
    kernels_of = {launch.kernel: launch for launch in found.launches}
    assert kernels_of["hopper_f16"].problems == (0, 5) and not kernels_of["hopper_f16"].passed_over
    assert sorted(sum((x.problems for x in found.launches if x.kernel == "tensorop_f16"), ())) == [1, 2, 4]
    assert "TMA wants rows" in kernels_of["tensorop_f16"].passed_over["hopper_f16"]
    for (a, b), v, d in zip(problems, vectors, found, strict=True):
        np.testing.assert_array_equal(d, a.astype(float) @ b.astype(float) + v)


def test_other_types_on_the_hopper_kernel() -> None:
    for dtype, name in (("int8", "hopper_i8"), ("float8_e4m3fn", "hopper_e4m3"), ("bfloat16", "hopper_bf16")):
        cls = np.dtype(getattr(ml_dtypes, dtype, dtype))
        problems = [
            (integers(m, m, 64, dtype=cls), integers(n, 64, n, turned=True, dtype=cls)) for m, n in ((40, 16), (8, 72))
        ]
        found = gemm_grouped(problems)
        assert [launch.kernel for launch in found.launches] == [name]
        for (a, b), d in zip(problems, found, strict=True):
            np.testing.assert_array_equal(d.astype(float), (a.astype(float) @ b.astype(float)).astype(d.dtype))


def test_the_hopper_kernel_issues_its_wgmma_back_to_back() -> None:
    a, b, d = (torch.zeros(256, 256, dtype=torch.float16) for _ in range(3))
    made: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        compiled = group_launch.cute.compile
        patch.setattr(group_launch, "_COMPILED", {})
        patch.setattr(group_launch.cute, "compile", lambda *args: made.append(compiled(*args)) or made[-1])
        gemm_grouped([(a, b)], [d], kernel=entry_in(128, 256))
    first, second = made[0].kernels
    assert cross_compile(first, "sm_90a").spills == 0
    artifact = cross_compile(second, "sm_90a")
    assert artifact.spills == 0 and artifact.registers <= 168 and "wgmma.mma_async" in artifact.ptx
    assert "serializ" not in artifact.log.lower()
    assert "d.shared::cluster.global" in artifact.ptx and "d.global.shared::cta" in artifact.ptx
    assert "st.global" not in artifact.ptx


@pytest.mark.gpu
def test_grouped_products_on_a_gpu() -> None:
    rng = np.random.default_rng(0)
    for turned in (False, True):
        problems = []
        for m, n, k in rng.integers(1, 700, (40, 3)).tolist():
            a, b = (torch.randint(-3, 4, s, device="cuda").half() for s in ((m, k), (k, n)))
            problems.append((a.mT.contiguous().mT if turned else a, b))
        for (a, b), d in zip(problems, gemm_grouped(problems), strict=True):
            assert torch.equal(d, (a.double() @ b.double()).half())


@pytest.mark.gpu
@pytest.mark.parametrize("turned", [False, True])
def test_the_hopper_kernel_on_a_gpu(turned: bool) -> None:
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("no Hopper GPU")
    rng = np.random.default_rng(1)
    for _ in range(3):  # tensor maps of other problems take the place of these
        problems, vectors = [], []
        for m, n, k in (8 * rng.integers(1, 120, (50, 3))).tolist():
            a, b, c = (torch.randint(-3, 4, s, device="cuda").half() for s in ((m, k), (k, n), (m, n)))
            problems.append((a, b.mT.contiguous().mT if turned else b, c))
            vectors.append(torch.randint(-3, 4, (n,), device="cuda").half())
        found = gemm_grouped(problems, alpha=2.0, beta=-1.0, bias=vectors, activation="relu")
        assert [launch.kernel for launch in found.launches] == ["hopper_f16"]
        for (a, b, c), v, d in zip(problems, vectors, found, strict=True):
            assert torch.equal(d, (2 * (a.double() @ b.double()) - c + v).relu().half())


def test_a_bias_of_one_element_has_any_stride() -> None:
    torch = pytest.importorskip("torch")
    a, b, bias = torch.ones(4, 8).half(), torch.ones(8, 1).half(), torch.full((4, 4), 3.0).half()[:1, 1]
    assert bias.stride() == (4,)
    assert torch.equal(gemm_grouped([(a, b)], bias=[bias])[0], torch.full((4, 1), 11.0).half())


@settings(max_examples=4, deadline=None)
@given(
    st.sampled_from(["tensorop_f16", "hopper_f16", "tensorop_f16_f16"]),
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 18), st.integers(0, 70)), min_size=1, max_size=4),
    st.integers(1, 7),
    st.booleans(),
)
def test_shares_of_all_problems(kernel: str, sizes: Any, sms: int, added: bool) -> None:
    """Blocks share tiles of problems with other numbers of k tiles, some of which are empty or have no K."""
    rng, problems = np.random.default_rng(len(sizes)), []
    for m, n, k in sizes:
        k = max(k, 1) if kernel == "hopper_f16" else k
        shapes = ((8 * m, 8 * k), (8 * k, 8 * n), *(((8 * m, 8 * n),) if added else ()))
        problems.append(tuple(rng.integers(-2, 3, shape).astype(np.float16) for shape in shapes))
    bias = [rng.integers(-2, 3, 8 * n).astype(np.float16) for _, n, _ in sizes]
    with sim.options(sms=sms):
        found = gemm_grouped(
            problems, alpha=2, beta=-1.0 if added else 0.0, bias=bias, kernel=kernel, decomposition="stream_k"
        )
    for d, (a, b, *c), vector in zip(found, problems, bias, strict=True):
        exact = 2 * (a.astype(float) @ b.astype(float)) + vector - (c[0] if c else 0)
        np.testing.assert_array_equal(d, exact)


@pytest.mark.gpu
def test_shares_of_all_problems_on_a_gpu() -> None:
    sizes = ((512, 384, 8192), (64, 64, 128), (128, 2048, 4096), (8, 8, 64))
    for kernel in ("hopper_f16", "tensorop_f16"):
        for _ in range(3):
            problems = [
                tuple(torch.randint(-2, 3, shape, device="cuda").half() for shape in ((m, k), (k, n)))
                for m, n, k in sizes
            ]
            found = gemm_grouped(problems, kernel=kernel, decomposition="stream_k")
            for d, (a, b) in zip(found, problems, strict=True):
                assert torch.equal(d, (a.double() @ b.double()).half())


def test_how_k_tiles_are_dealt_out() -> None:
    """Every iteration is one block's; a decomposition that there is not is refused."""
    for total, blocks in ((1, 1), (7, 3), (100, 7), (5, 9)):
        shares = EvenShares(total, blocks)
        ranges = [range(shares.begin(block), shares.begin(block + 1)) for block in range(blocks)]
        assert [i for one in ranges for i in one] == list(range(total))
        assert all(shares.block_of(i) == block for block, one in enumerate(ranges) for i in one)
    sizes = ((512, 384, 16384), (8, 8, 64))
    drawn = [
        (np.empty((m, k), np.float16), np.empty((k, n), np.float16), np.empty((m, n), np.float16)) for m, n, k in sizes
    ]
    problems = [Problem.of(a, b, None, out) for a, b, out in drawn]
    for kernel in ("hopper_f16", "tensorop_f16"):  # the tiles of the longest K do not decide: they can be large
        whole, shared = (
            math.prod(group_launch.fastest(problems, kernels()[kernel], (132, 232448), "gpu", sharing).tile[:2])
            for sharing in (False, True)
        )
        assert shared >= 2 * whole
    x = np.ones((16, 16), np.float16)
    with pytest.raises(ArgumentError, match="no decomposition 'split' of groups: it is one of auto, data_parallel"):
        gemm_grouped([(x, x)], decomposition="split")
