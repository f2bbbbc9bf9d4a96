"""Every example program runs as its user would run it, on the simulator and (with a GPU) on the GPU."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
ELSEWHERE = {"tensor_parallel", "blackwell_gemm"}
PROGRAMS = sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem not in ELSEWHERE)
"""Those of one process and any GPU. tests/gemm/operators/test_torch_op.py and tests/blackwell run the others."""
MACHINES = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, machine: str):
    """A function that imports an example; ``--gpu`` is on its command line where the machine is a GPU."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", ["example", *(["--gpu"] if machine == "gpu" else [])])
    return importlib.import_module


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_program_runs_and_checks_itself(program: str, load, capsys: pytest.CaptureFixture[str]) -> None:
    load(program).main()
    assert "largest error" in capsys.readouterr().out


def test_each_program_is_one_file_and_says_what_it_needs() -> None:
    for path in EXAMPLES.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not imported & {other.stem for other in EXAMPLES.glob("*.py")}, path
        assert "Needs " in (ast.get_docstring(tree) or ""), path


def arrays(load, *values: np.ndarray) -> list:
    return load("gemm").machine_arrays(*values)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (4096,), (128, 512), (33, 65), (2, 3, 5, 7), (5, 0, 3)], ids=str)
def test_elementwise_is_exact(shape: tuple[int, ...], dtype: type, load) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-50, 50, shape).astype(dtype) for _ in range(2))
    out = load("elementwise").add(*arrays(load, a, b, np.full(shape, -1, dtype)))
    np.testing.assert_array_equal(load("gemm").to_numpy(out), a + b)


@pytest.mark.parametrize("machine", MACHINES)
def test_elementwise_on_views_leaves_the_rest_alone(load) -> None:
    rng = np.random.default_rng(1)
    a, b, store = (rng.integers(0, 9, (40, 60)).astype(np.float32) for _ in range(3))
    before = store.copy()
    a_, b_, s_ = arrays(load, a, b, store)
    load("elementwise").add(a_[3:33:3, 5:45].T, b_[:10, 20:60].T, s_[30:40, :40].T)
    after = load("gemm").to_numpy(s_)
    np.testing.assert_array_equal(after[30:40, :40], a[3:33:3, 5:45] + b[:10, 20:60])
    np.testing.assert_array_equal(after[:30], before[:30])
    np.testing.assert_array_equal(after[30:, 40:], before[30:, 40:])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", ["naive", "padded", "swizzled"])
@pytest.mark.parametrize("shape", [(32, 32), (96, 64), (1, 1), (33, 100)], ids=str)
def test_transpose_is_exact(kind: str, shape: tuple[int, int], load) -> None:
    a = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    out = load("transpose").transpose(*arrays(load, a, np.full(shape[::-1], np.nan, np.float32)), kind)
    np.testing.assert_array_equal(load("gemm").to_numpy(out), a.T)


@pytest.mark.parametrize("kind", ["naive", "padded", "swizzled"])
@pytest.mark.parametrize("machine", ["cpu"])
def test_only_the_naive_transpose_has_bank_conflicts(kind: str, load) -> None:
    from tilewright.lang.launch.machine import machine_of

    a = np.zeros((64, 64), np.float32)
    with machine_of("cpu").profile() as profile:
        load("transpose").transpose(a, np.empty_like(a), kind)
    # Four tiles; in each, 32 warp-wide column reads of which the naive layout serialises all 32 lanes.
    assert profile.bank_conflicts == (4 * 32 * 31 if kind == "naive" else 0)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 127), (9, 128), (5, 1000)], ids=str)
def test_row_reductions(shape: tuple[int, int], load) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(-8, 8, shape).astype(np.float32)
    module = load("softmax")
    sums = load("gemm").to_numpy(module.row_sum(*arrays(load, x, np.empty(shape[0], np.float32))))
    np.testing.assert_array_equal(sums, x.sum(1))
    got = load("gemm").to_numpy(module.softmax(*arrays(load, x, np.empty_like(x))))
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(got, wide / wide.sum(1, keepdims=True), rtol=2e-5, atol=1e-7)
