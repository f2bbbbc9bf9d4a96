"""Groups of block-scaled products in the simulator of an sm_100a and an sm_120a, and their kernels as text."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.blackwell.test_block_scaled_gemm import E2M1, E4M3, E5M2, E8M0, FORMS, pairs
from tilewright import BFloat16, cute, sim
from tilewright.cuda import compile as cross_compile
from tilewright.errors import ArgumentError
from tilewright.gemm import blocked_group_scales, blocked_scales, scaled_grouped_matmul
from tilewright.gemm.operators import block_scaled_offsets
from tilewright.gemm.operators.block_scaled_offsets import FactorsLaunch, FactorsProduct

BULK = ("d.shared::cluster.global", "d.global.shared::cta")


def drawn(m: int, n: int, k: int, ends: list[int], form: Any, seed: int = 0) -> tuple[list[Any], np.ndarray]:
    """a, b, scale_a, scale_b and offsets; and the exact result."""
    (types, factor), rng, groups = form, np.random.default_rng(seed), len(ends)
    vector = 16 if factor is E4M3 else 32
    numbers = [rng.integers(-2, 3, (*rows, k)).astype(np.float32) for rows in ((m,), (groups, n))]
    factors = [2.0 ** rng.integers(-1, 2, (*rows, -(-k // vector))) for rows in ((m,), (groups, n))]
    wide = [x * np.repeat(s, vector, -1)[..., :k] for x, s in zip(numbers, factors, strict=True)]
    exact = np.zeros((m, n))
    for i, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        exact[begin:end] = wide[0][begin:end] @ wide[1][i].T
    a, b = (pairs(x) if t is E2M1 else x.astype(t) for x, t in zip(numbers, types, strict=True))
    scale_a, scale_b = (s.astype(factor) for s in factors)
    return [a, b.swapaxes(-1, -2), scale_a, scale_b.swapaxes(-1, -2), np.array(ends, np.int32)], exact


@given(
    arch=st.sampled_from(["sm_100a", "sm_103a", "sm_120a"]),
    form=st.sampled_from(FORMS),
    extents=st.tuples(st.integers(1, 400), st.integers(1, 34), st.integers(1, 9)),
    parts=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    gpu=st.booleans(),
    seed=st.integers(0, 9),
)
@example("sm_100a", FORMS[3], (300, 26, 9), [0.01, 0.01, 0.5, 0.9], True, 0)  # halves of blocks of factors
@example("sm_120a", FORMS[1], (300, 9, 9), [0.01, 0.01, 0.5, 0.9], False, 0)
@settings(max_examples=3, deadline=None)
def test_any_groups(arch: str, form: Any, extents: Any, parts: list[float], gpu: bool, seed: int) -> None:
    """Groups that begin anywhere, with all checks; ``gpu``: in the size of a GPU. Factors of no row are NaN."""
    m, n, k = extents[0], 8 * extents[1], extents[2] * (32 if form[0][0] is E2M1 else 16)
    (a, b, scale_a, scale_b, offsets), exact = drawn(m, n, k, [int(x * m) for x in sorted(parts)], form, seed)
    ordered = np.ascontiguousarray(blocked_group_scales(scale_a, offsets))
    known = np.ones(scale_a.shape, np.uint8).view(form[1])  # any number but 0
    ordered.view(np.uint8)[blocked_group_scales(known, offsets).view(np.uint8) == 0] = 0xFF if form[1] is E8M0 else 0x7F
    whole = scale_a.shape[1] % 4 == 0  # else there are factors beyond K
    with sim.options(arch=arch, check="all", sms=4, seed=seed, sizes="gpu" if gpu else "simulator"):
        found = scaled_grouped_matmul(a, b, ordered if whole else scale_a, scale_b, offsets, out_dtype=np.float32)
    np.testing.assert_array_equal(found, exact)


def test_factors_in_the_order_of_groups() -> None:
    """As those of each group, one after the other, whatever offsets the device finds."""
    scale = np.random.default_rng(0).integers(1, 9, (300, 5)).astype(E4M3)
    ends = np.array([5, 5, 140, 280], np.int32)
    found = blocked_group_scales(scale, ends)
    parts = [blocked_scales(scale[begin:end]) for begin, end in ((0, 5), (5, 140), (140, 280))]
    np.testing.assert_array_equal(found[: sum(map(len, parts))].view(np.uint8), np.concatenate(parts).view(np.uint8))
    assert not found[sum(map(len, parts)) :].view(np.uint8).any()
    for wrong in ([9, 4, 400, 2], [-5, 2**31 - 1, -(2**31), 7]):
        assert len(blocked_group_scales(scale, np.array(wrong, np.int32))) == len(found)
    for bad in ((scale[0], ends), (scale, ends.astype(np.int64)), (scale.astype(np.float32), ends), (scale, ends[:0])):
        with pytest.raises(ArgumentError, match=r"(scale|offsets) is a"):
            blocked_group_scales(*bad)
    torch = pytest.importorskip("torch")
    seen = torch.from_numpy(scale.view(np.uint8)).view(torch.float8_e4m3fn)
    same = blocked_group_scales(seen, torch.from_numpy(ends)).view(torch.uint8).numpy()
    np.testing.assert_array_equal(same, found.view(np.uint8))


def test_an_operator_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    operands, exact = drawn(72, 40, 64, [8, 70], FORMS[0])
    kinds = torch.float8_e4m3fn, torch.float8_e4m3fn, torch.float8_e8m0fnu, torch.float8_e8m0fnu
    a, b, scale_a, scale_b = (
        torch.from_numpy(np.ascontiguousarray(x if x.ndim == 2 else x.swapaxes(1, 2)).view(np.uint8)).view(kind)
        for x, kind in zip(operands[:4], kinds, strict=True)
    )
    given = a, b.mT, scale_a, scale_b.mT, torch.from_numpy(operands[4])
    compiled = torch.compile(
        lambda *x: scaled_grouped_matmul(*x, out_dtype=torch.float32), backend="eager", fullgraph=True
    )
    import_module("tilewright.gemm.operators.torch_scaled_offsets")  # registers it
    with sim.options(arch="sm_100a"):
        torch.library.opcheck(torch.ops.tilewright.scaled_grouped_matmul, given, test_utils="test_faketensor")
        np.testing.assert_array_equal(compiled(*given).numpy(), exact)


@pytest.mark.parametrize(
    ("arch", "form", "names"),
    [
        ("sm_100a", FORMS[1], {"tcgen05.cp.", "kind::mxf8f6f4.block_scale", *BULK}),
        ("sm_103a", FORMS[3], {"tcgen05.cp.", "kind::mxf4nvf4.block_scale", *BULK}),
        ("sm_120a", FORMS[3], {"kind::mxf4nvf4.block_scale", "ldmatrix.sync", *BULK}),
    ],
)
def test_the_text_is_assembled(arch: str, form: Any, names: set[str]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    operands, _ = drawn(64, 256, 256, [64], form)
    with sim.options(arch=arch, sizes="gpu", sms=148):
        launch = FactorsLaunch(FactorsProduct.of(*operands, None, BFloat16))
        made = cross_compile(cute.compile(launch.kernel(), *launch.arguments()).kernels[1], arch)
    assert made.spills == 0 and not made.warnings
    assert not [name for name in names if name not in made.ptx]


def test_operands_that_do_not_go_together() -> None:
    (a, b, scale_a, scale_b, ends), _ = drawn(64, 64, 128, [8, 64], FORMS[0])
    with pytest.raises(ArgumentError, match="which sm_100a, .* have and sm_90 does not; the simulator"):
        scaled_grouped_matmul(a, b, scale_a, scale_b, ends)
    with sim.options(arch="sm_100a"):
        for changed, why in (
            ({"a": a[None]}, "groups of rows, a matrix times a stack; not for shapes"),
            ({"scale_a": scale_a[:, :3]}, r"it is \(64, 4\), or a vector of 1024 numbers or more"),
            ({"scale_a": blocked_scales(scale_a)}, "each of 2 groups fills whole blocks of 128 rows"),
            ({"scale_b": scale_b[:1]}, "in 2 matrices"),
            ({"scale_b": scale_b.astype(np.float32)}, "scale_b Float32; both are Float8E8M0FNU"),
            ({"offsets": ends[::-1]}, "offsets do not fall"),
            ({"b": np.ascontiguousarray(b)}, "b has contiguous bytes along K"),
            ({"kernel": "blackwell_e4m3"}, "one kernel on each GPU: leave out kernel"),
            ({"out": np.zeros((64, 64), E5M2)}, "write BFloat16, Float16, Float32"),
        ):
            given = {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "offsets": ends, **changed}
            with pytest.raises(ArgumentError, match=why):
                scaled_grouped_matmul(**given)
        assert not scaled_grouped_matmul(a, b, scale_a, scale_b, np.zeros(2, np.int32)).any()
        # As on a GPU, whose offsets the host does not see.
        with mock.patch.object(block_scaled_offsets, "check_offsets", lambda *_: None):
            for wrong in ([64, 8], [-8, 64], [8, 65]):
                assert not scaled_grouped_matmul(a, b, scale_a, scale_b, np.array(wrong, np.int32)).any()
