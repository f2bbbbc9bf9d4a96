"""Products of groups that offsets cut: exact in all forms, wherever groups begin and end; gradients; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import sim
from tilewright.cuda import compile as cross_compile
from tilewright.errors import ArgumentError
from tilewright.gemm import grouped_matmul, kernels
from tilewright.gemm.operators import group_launch

torch = pytest.importorskip("torch")

FORMS = "mnk"
ROWS, X, Y = 40, 24, 16
"""The extent of the mode that is cut, and the two others."""


def integers(rng: np.random.Generator, *shape: int, turned: bool = False, dtype: Any = np.float16) -> np.ndarray:
    """Small integers; ``turned``: the last mode but one is contiguous."""
    drawn = rng.integers(-3, 4, (*shape[:-2], shape[-1], shape[-2]) if turned else shape).astype(dtype)
    return drawn.swapaxes(-1, -2) if turned else drawn


def operands(
    form: str, groups: int, sizes: tuple[int, int, int], turned: tuple[bool, bool], seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng, (cut, x, y) = np.random.default_rng(seed), sizes
    a, b = {"m": ((cut, x), (groups, x, y)), "n": ((groups, x, y), (y, cut)), "k": ((x, cut), (cut, y))}[form]
    return integers(rng, *a, turned=turned[0]), integers(rng, *b, turned=turned[1])


def expected(a: Any, b: Any, ends: list[int]) -> np.ndarray:
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    parts = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    if a.ndim == b.ndim:
        return np.stack([a[:, part] @ b[part] for part in parts])
    result = np.zeros((a.shape[-2], b.shape[-1]))
    for i, part in enumerate(parts):
        if a.ndim == 2:
            result[part] = a[part] @ b[i]
        else:
            result[:, part] = a[i] @ b[:, part]
    return result


TURNED = st.tuples(st.booleans(), st.booleans())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", [None, "tensorop_f16"])
@settings(max_examples=4, deadline=None)
@given(st.lists(st.integers(0, ROWS), min_size=1, max_size=5), TURNED, st.sampled_from((1, 8)), st.integers(0, 99))
def test_any_groups(form: str, kernel: str | None, cuts: list[int], turned: Any, step: int, seed: int) -> None:
    """``step`` 8: groups begin at multiples of 16 bytes, and the Hopper kernel takes them in all layouts."""
    ends = sorted(cut // step * step for cut in cuts)
    if kernel is not None and any(turned):
        turned = (turned[0], not turned[0])  # fewer kernels
    a, b = operands(form, len(ends), (ROWS, X, Y), turned, seed)
    found = grouped_matmul(a, b, np.array(ends, np.int32), kernel=kernel)
    np.testing.assert_array_equal(found, expected(a, b, ends))


@pytest.mark.parametrize("transposed", [False, True])
def test_warpgroups_without_rows_and_groups_that_are_passed_over(transposed: bool) -> None:
    """One block has the tiles of 75 groups: 70 empty ones after each other, more than the lanes of a warp, and groups
    that end in either part of a tile of two warpgroups. The ring of stages goes on behind a part that is left out."""
    entry = kernels()["hopper_f16"]
    sizes = (x for x in entry.sizes if x.tile[:2] == (128, 64) and x.cluster_size == 1 and x.transposed is transposed)
    rows = [1, *[0] * 70, 64, 65, 128, 150]
    ends = np.cumsum(rows).tolist()
    rng = np.random.default_rng(0)
    a, b = integers(rng, ends[-1] + 3, 72), integers(rng, len(rows), 72, 80)
    with sim.options(arch="sm_90a", sms=1):
        found = grouped_matmul(a, b, np.array(ends, np.int32), kernel=entry.only(next(sizes)))
    np.testing.assert_array_equal(found, expected(a, b, ends))


@settings(max_examples=4, deadline=None)
@given(st.sampled_from(FORMS), st.tuples(*[st.integers(0, 150)] * 3), st.lists(st.floats(0, 1), max_size=3), TURNED)
def test_any_extents(form: str, sizes: tuple[int, int, int], cuts: list[float], turned: Any) -> None:
    ends = sorted(int(cut * sizes[0]) for cut in cuts)
    a, b = operands(form, len(ends), sizes, turned)
    found = grouped_matmul(a, b, np.array(ends, np.int32))
    np.testing.assert_array_equal(found, expected(a, b, ends) if ends else np.zeros(found.shape))


@pytest.mark.unchecked
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_as_pytorch(form: str, dtype: Any) -> None:
    ends = [8, 8, 32, 40]
    a, b = (torch.from_numpy(x.copy()).to(dtype) for x in operands(form, 4, (ROWS, X, Y), (False, False)))
    offsets = torch.tensor(ends, dtype=torch.int32)
    assert torch.equal(grouped_matmul(a, b, offsets), torch._grouped_mm(a, b, offs=offsets))
    wide = grouped_matmul(a, b, offsets, out_dtype=torch.float32)
    np.testing.assert_array_equal(wide.numpy(), expected(a.float(), b.float(), ends))


def launches_of(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    launches: list[Any] = []
    run = group_launch.TableLaunch.run
    monkeypatch.setattr(group_launch.TableLaunch, "run", lambda self, *more: launches.append(self) or run(self, *more))
    return launches


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("form", "turned", "maths"),
    [
        ("m", (False, False), ["wgmma"]),
        ("m", (True, False), ["wgmma", "tensorop"]),
        ("n", (False, False), ["wgmma", "tensorop"]),
        ("k", (True, False), ["wgmma"]),
        ("k", (False, False), ["wgmma", "tensorop"]),
    ],
)
def test_two_launches_only_where_a_contiguous_mode_is_cut(
    monkeypatch: pytest.MonkeyPatch, form: str, turned: Any, maths: list[str]
) -> None:
    """One of them does the work: the other one's table has no tiles."""
    launches = launches_of(monkeypatch)
    tables: list[Any] = []
    table = group_launch.TableLaunch.room
    monkeypatch.setattr(group_launch.TableLaunch, "room", lambda self, *s: tables.append(table(self, *s)) or tables[-1])
    a, b = operands(form, 2, (ROWS, X, Y), turned)
    for ends, worker in (([16, 32], 0), ([16, 31], len(maths) - 1)):
        launches.clear()
        tables.clear()
        grouped_matmul(a, b, np.array(ends, np.int32))
        assert [launch.config.math for launch in launches] == maths
        tiles = [x[-1, group_launch.FIRST] for x in tables if x.ndim == 2]
        assert [n > 0 for n in tiles] == [i == worker for i in range(len(maths))]


def test_rows_of_no_group_are_zero_and_nan_stays_in_its_group() -> None:
    a, b = operands("m", 2, (ROWS, X, Y), (False, False))
    a[30:] = np.nan
    out = np.full((ROWS, Y), 7, np.float16)
    found = grouped_matmul(a, b, np.array([5, 30], np.int32), out=out)
    assert found is out and (out[30:] == 0).all() and np.isfinite(out).all()
    a, b = operands("k", 2, (ROWS, X, Y), (False, False))
    a[:, 3] = np.nan  # in the 16 bytes in which the second group begins
    found = grouped_matmul(a, b, np.array([5, 30], np.int32))
    assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()


def test_three_dimensions_without_offsets() -> None:
    rng = np.random.default_rng(0)
    a, b = integers(rng, 3, 8, 16), integers(rng, 3, 16, 24)
    np.testing.assert_array_equal(grouped_matmul(a, b), a.astype(float) @ b.astype(float))


@pytest.mark.unchecked
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("turned", [False, True])
def test_gradients(form: str, turned: bool) -> None:
    ends = torch.tensor([3, 3, 30], dtype=torch.int32)
    a, b = (torch.from_numpy(x.copy()) for x in operands(form, 3, (ROWS, X, Y), (False, False)))
    if turned:
        b = b.mT.contiguous().mT
    mine = [x.clone().requires_grad_() for x in (a, b)]
    theirs = [x.double().requires_grad_() for x in (a, b)]
    found = grouped_matmul(*mine, ends)
    sums: Any = [0, *ends.tolist()]
    parts = [slice(x, y) for x, y in zip(sums, sums[1:], strict=False)]
    left, right = theirs
    if form == "m":
        want = torch.cat([left[p] @ right[i] for i, p in enumerate(parts)] + [left[30:] @ right[0] * 0])
    elif form == "n":
        want = torch.cat([left[i] @ right[:, p] for i, p in enumerate(parts)] + [left[0] @ right[:, 30:] * 0], 1)
    else:
        want = torch.stack([left[:, p] @ right[p] for p in parts])
    grad = torch.from_numpy(integers(np.random.default_rng(9), *found.shape))
    found.backward(grad)
    want.backward(grad.double())
    for x, y in zip((found, *[x.grad for x in mine]), (want, *[x.grad for x in theirs]), strict=True):
        assert torch.equal(x.double(), y)
    assert mine[1].grad.stride() == b.stride()


def test_under_compile() -> None:
    a, b = (torch.from_numpy(x.copy()) for x in operands("m", 3, (ROWS, X, Y), (False, False)))
    offsets = torch.tensor([3, 20, 40], dtype=torch.int32)

    @torch.compile(backend="aot_eager", fullgraph=True)
    def layer(x: Any, weight: Any, offsets: Any) -> Any:
        return grouped_matmul(x, weight, offsets).relu()

    weight = b.clone().requires_grad_()
    found = layer(a, weight, offsets)
    assert torch.equal(found, torch.from_numpy(expected(a, b, [3, 20, 40])).relu().half())
    found.sum().backward()
    assert weight.grad is not None and weight.grad.shape == b.shape
    with torch.no_grad():  # no gradient is asked for: it is the compiler that has to see the product
        assert torch.equal(layer(a, b, offsets), found)
    torch.library.opcheck(
        torch.ops.tilewright.grouped_matmul.default, (a, b, offsets), test_utils=["test_schema", "test_faketensor"]
    )


A, B, ENDS = np.ones((16, 8), np.float16), np.ones((2, 8, 8), np.float16), np.array([4, 16], np.int32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: grouped_matmul(A, B, np.array([9, 4], np.int32)), "group 1 has the elements 9 to 4 of 16"),
        (lambda: grouped_matmul(A, B, np.array([4, 17], np.int32)), "group 1 has the elements 4 to 17 of 16"),
        (lambda: grouped_matmul(A, B, np.array([-1, 4], np.int32)), "group 0 has the elements 0 to -1"),
        (lambda: grouped_matmul(A, B, ENDS.astype(np.int64)), "offsets must be int32, got Int64"),
        (lambda: grouped_matmul(A, B, ENDS[None]), "a vector with a number for each group"),
        (lambda: grouped_matmul(A, B, ENDS[:1]), "offsets has 1 numbers, for 2 matrices"),
        (lambda: grouped_matmul(A, B), "without offsets"),
        (lambda: grouped_matmul(B, B, ENDS), "with offsets"),
        (lambda: grouped_matmul(A, B[:, :4], ENDS), "inner dimensions differ"),
        (lambda: grouped_matmul(A, B.astype(np.float32), ENDS), "both must have one dtype"),
        (lambda: grouped_matmul(A, B, ENDS, out=A), r"out (must be|overlaps)"),
        (lambda: grouped_matmul(A, B, ENDS, out=np.zeros((16, 8), np.int32)), "cannot be written as"),
        (lambda: grouped_matmul(A, torch.ones(2, 8, 8).half(), ENDS), "b of torch"),
        (lambda: grouped_matmul(A, B, ENDS, kernel="small_m_f16"), "takes no groups"),
        (
            lambda: (
                grouped_matmul(A.T, A, ENDS, kernel="hopper_f16") is None
                or grouped_matmul(np.ones((8, 16), np.float16), A, ENDS, kernel="hopper_f16")
            ),
            "contiguous mode of a matrix",
        ),
        (lambda: grouped_matmul(A, B[:1], np.zeros(1, np.int32), out_dtype=np.int8), "cannot be written as"),
        (lambda: grouped_matmul(A, B, [4, 16]), "offsets"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_the_device_computes_nothing_for_offsets_that_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, whose offsets the host does not see."""
    monkeypatch.setattr("tilewright.gemm.operators.offsets.check_offsets", lambda *_: None)
    for form in FORMS:
        for kernel in (None, "tensorop_f16"):
            a, b = operands(form, 3, (ROWS, X, Y), (form == "k", False))
            for ends in ([9, 4, 12], [9, 12, 41], [-8, 0, 40], [2**31 - 1, 0, 5]):
                assert not grouped_matmul(a, b, np.array(ends, np.int32), kernel=kernel).any()


@pytest.mark.parametrize("tile", [(128, 256), (64, 256), (128, 128)])
def test_the_hopper_kernel_does_not_spill(monkeypatch: pytest.MonkeyPatch, tile: tuple[int, int]) -> None:
    made: list[Any] = []
    compiled, entry = group_launch.cute.compile, kernels()["hopper_bf16"]
    sizes = (size for size in entry.sizes if size.tile[:2] == tile and size.cluster_size == 1 and not size.pingpong)
    monkeypatch.setattr(group_launch, "_COMPILED", {})
    monkeypatch.setattr(group_launch.cute, "compile", lambda *args: made.append(compiled(*args)) or made[-1])
    a, b = torch.zeros(64, 64).bfloat16(), torch.zeros(1, 64, 256).bfloat16()
    grouped_matmul(a, b, torch.tensor([64], dtype=torch.int32), kernel=entry.only(next(sizes)))
    for kernel in made[0].kernels:
        artifact = cross_compile(kernel, "sm_90a")
        assert artifact.spills == 0 and artifact.registers <= 168 and "serializ" not in artifact.log.lower()


@pytest.mark.gpu
@pytest.mark.parametrize("form", FORMS)
def test_grouped_matmul_by_offsets_on_a_gpu(form: str) -> None:
    rng = np.random.default_rng(1)
    for seed in range(6):
        sizes = (int(rng.integers(1, 3000)), *(8 * rng.integers(1, 60, 2)).tolist())
        if seed % 2:
            sizes = (-(-sizes[0] // 8) * 8, *sizes[1:])
        ends = np.sort(rng.integers(0, sizes[0] + 1, 9))
        ends = (ends // 8 * 8 if seed % 3 == 0 else ends).tolist()
        a, b = operands(form, len(ends), sizes, (seed % 2 == 0, seed < 3), seed)
        left, right = (torch.from_numpy(np.ascontiguousarray(x)).cuda() for x in (a, b))
        left, right = (x.mT.contiguous().mT if t else x for x, t in ((left, seed % 2 == 0), (right, seed < 3)))
        found = grouped_matmul(left, right, torch.tensor(ends, dtype=torch.int32, device="cuda"))
        np.testing.assert_array_equal(found.cpu().numpy(), expected(a, b, ends).astype(np.float16))


@pytest.mark.gpu
def test_a_graph_is_replayed_with_other_offsets() -> None:
    a, b = (torch.from_numpy(x.copy()).cuda() for x in operands("m", 4, (512, 64, 128), (False, False)))
    offsets = torch.tensor([512] * 4, dtype=torch.int32, device="cuda")
    out = torch.empty(512, 128, device="cuda", dtype=torch.float16)
    grouped_matmul(a, b, offsets, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        grouped_matmul(a, b, offsets, out=out)
    for ends in ([0, 1, 300, 512], [100, 100, 100, 101], [9, 4, 5, 6], [1, 2, 3, 600]):
        offsets.copy_(torch.tensor(ends, dtype=torch.int32))
        out.fill_(7)
        graph.replay()
        valid = ends == sorted(ends) and ends[-1] <= 512
        want = expected(a.cpu(), b.cpu(), ends) if valid else np.zeros((512, 128))
        np.testing.assert_array_equal(out.cpu().numpy(), want.astype(np.float16))


@pytest.mark.gpu
def test_offsets_on_the_host_are_refused() -> None:
    a, b = torch.ones(16, 8).half().cuda(), torch.ones(2, 8, 8).half().cuda()
    with pytest.raises(ArgumentError, match="put them there"):
        grouped_matmul(a, b, torch.tensor([4, 16], dtype=torch.int32))
