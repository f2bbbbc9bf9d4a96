"""A kernel family is one module and one row: a made-up one is registered, planned, refused and run; and host code asks
the family, not which class a configuration is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.gemm.naive_family import MOST_K, Naive, naive_entry
from tilewright import Float16, Float32, Int4
from tilewright.errors import ArgumentError
from tilewright.gemm import KernelEntry, gemm, gemm_grouped, kernels, stage
from tilewright.gemm.choice.registry import KERNELS, candidates, mixed_entry, sparse_kernels
from tilewright.gemm.family import FAMILIES
from tilewright.gemm.host.packing import Packing
from tilewright.gemm.host.problem import Problem

GEMM = Path(__file__).parents[2] / "tilewright" / "gemm"
ASKING = ("host", "choice", "operators", "tuning", "schedule")
CLASSES = re.compile(r"(?<!assert )isinstance\([^)]*(Gemm|Hopper|Simt|SmallM)Config|\.math\s*(==|!=|in\b)")


@pytest.fixture
def naive(monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelEntry]:
    monkeypatch.setitem(FAMILIES, "naive", Naive())
    yield naive_entry(Float16)


@pytest.mark.parametrize(("m", "n", "k"), [(5, 7, 9), (3, 200, 64), (130, 1, 1)])
def test_a_new_family_multiplies(naive: KernelEntry, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    report = gemm(a, b, kernel=naive, alpha=2.0)
    np.testing.assert_array_equal(report.d, 2 * (a.astype(np.float32) @ b.astype(np.float32)))
    assert report.kernel == "naive" and report.decomposition == "data_parallel"


def test_new_family_states_its_refusals(naive: KernelEntry) -> None:
    a = np.ones((8, MOST_K + 1), np.float16)
    with pytest.raises(ArgumentError, match="kernel naive: it is for at most 64 k elements, not 65"):
        gemm(a, a.T, kernel=naive)
    short = a[:, :8]
    for decomposition, reason in (("stream_k", "a thread adds up alone"), ("dynamic", "no warp that could draw tiles")):
        with pytest.raises(ArgumentError, match=reason):
            gemm(short, short.T, kernel=naive, decomposition=decomposition)
    with pytest.raises(ArgumentError, match="it takes no groups of problems"):
        gemm_grouped([(short, short.T)], kernel=naive)


def test_a_new_family_is_staged_without_arrays(naive: KernelEntry) -> None:
    assert stage(naive.config).kind == "kernel"


def test_every_kernel_has_a_family() -> None:
    entries = *(kernels() | sparse_kernels()).values(), mixed_entry(Int4, Float16)
    assert {entry.config.math for entry in entries} == set(FAMILIES)


def test_host_code_asks_the_family() -> None:
    """Which class a configuration is, only its own family and its kernel know."""
    asked = [
        f"{path.relative_to(GEMM)}: {line.strip()}"
        for path in sorted(GEMM.rglob("*.py"))
        if path.parent.name in ASKING
        for line in path.read_text(encoding="utf-8").splitlines()
        if CLASSES.search(line)
    ]
    assert asked == []


@pytest.mark.parametrize("name", [name for name, entry in kernels().items() if entry.config.a.dtype is Float16])
def test_only_families_that_gain_by_it_are_given_copies_of_unaligned_rows(name: str) -> None:
    entry = kernels()[name]
    a, b = np.ones((64, 67), np.float16), np.ones((67, 64), np.float16)
    assert (Packing.of(Problem.of(a, b, out_dtype=Float16), entry) is not None) == entry.family.packs


def test_each_row_of_the_registry_says_the_dtype_that_its_kernel_takes() -> None:
    for name, entry in KERNELS.items():
        assert entry.name == name and entry.config.a.dtype is KERNELS.dtypes[name]
        assert KERNELS[name] is entry and entry in candidates(
            Float32 if name.endswith("tf32") else KERNELS.dtypes[name], None
        )
    assert len(KERNELS) == len(list(KERNELS)) and "no kernel" not in KERNELS
