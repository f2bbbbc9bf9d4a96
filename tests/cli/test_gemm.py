"""``tilewright gemm``: files in, file out, or one line of complaint."""

from __future__ import annotations

import os
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.cli import gemm as gemm_command
from tilewright.cli.report import compare
from tilewright.errors import ArgumentError, MachineError, SimulationError


@dataclass
class Report:
    d: np.ndarray
    kernel: str = "stand-in"
    tile: tuple[int, ...] = (128, 128, 32)
    decomposition: str = "data_parallel"
    grid: tuple[int, ...] = (2, 1, 1)
    instructions: dict[str, int] = field(default_factory=lambda: {"mma": 4096, "ldmatrix": 512, "add": 7, "mul": 4})
    bank_conflicts: int | None = 0
    seconds: float = 0.25
    machine: str = "cpu"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], None]:
    """Put a function in place of tilewright.gemm.gemm: these tests are about the command, not the kernels."""

    def use(function: Callable[..., Any]) -> None:
        module = types.ModuleType("tilewright.gemm")
        module.gemm = function
        monkeypatch.setitem(sys.modules, "tilewright.gemm", module)
        monkeypatch.setattr("tilewright.gemm", module, raising=False)

    return use


def product(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None, *, alpha: float, beta: float, **_: Any
) -> Report:
    d = alpha * (a.astype(np.float32) @ b.astype(np.float32))
    return Report((d if c is None else d + beta * c.astype(np.float32)).astype(a.dtype))


def normal(*shape: int, seed: int = 0, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_the_product_is_written_and_the_table_shown(command, save, library, tmp_path) -> None:
    library(product)
    a, b = normal(40, 30), normal(30, 20, seed=1)
    done = command("gemm", save("a.npy", a), save("b.npy", b), "-o", tmp_path / "d.npy", "--check")
    assert done.code == 0 and done.err == ""
    assert np.array_equal(np.load(tmp_path / "d.npy"), (a.astype(np.float32) @ b).astype(np.float16))
    for text in (
        "stand-in",
        "128 x 128 x 32",
        "2 x 1 x 1",
        "mma",
        "4,096",
        "bank conflicts",
        "250 ms",
        "largest error",
    ):
        assert text in done.out, text


def test_a_check_needs_no_file(command, save, library, tmp_path) -> None:
    library(product)
    a, before = save("a.npy", normal(8, 8)), sorted(tmp_path.iterdir())
    done = command("gemm", a, a, "--check")
    assert done.code == 0 and "largest error" in done.out
    library(lambda *args, **kwargs: product(*args, **{**kwargs, "alpha": 3.0}))
    done = command("gemm", a, a, "--check")
    assert done.code == 1 and "is wrong" in done.err and "written" not in done.err
    assert sorted(tmp_path.iterdir()) == before


def test_a_result_that_would_be_dropped_is_refused(command, save, library) -> None:
    library(product)
    a = save("a.npy", normal(8, 8))
    done = command("gemm", a, a)
    assert done.code == 2 and "give -o D.npy to write it, or --check" in done.err


def test_c_is_added_with_factor_one_unless_told(command, save, library, tmp_path) -> None:
    library(product)
    a, b, c = (save(f"{n}.npy", normal(8, 8, seed=i, dtype=np.float32)) for i, n in enumerate("abc"))
    plain = np.load(a) @ np.load(b)
    assert command("gemm", a, b, "--c", c, "-o", tmp_path / "d.npy").code == 0
    assert np.allclose(np.load(tmp_path / "d.npy"), plain + np.load(c))
    assert command("gemm", a, b, "--c", c, "--alpha", "-2", "--beta", "0.5", "-o", tmp_path / "d.npy").code == 0
    assert np.allclose(np.load(tmp_path / "d.npy"), -2 * plain + 0.5 * np.load(c))


def test_auto_takes_the_gpu_if_there_is_one(command, save, library, tmp_path, monkeypatch) -> None:
    asked: list[str] = []
    library(lambda *args, machine, **kwargs: (asked.append(machine), product(*args, **kwargs))[1])
    a = save("a.npy", normal(4, 4))

    def no_gpu(device: str) -> None:
        raise MachineError("no driver")

    for machine_of in (no_gpu, lambda device: object()):
        monkeypatch.setattr("tilewright.lang.launch.machine.machine_of", machine_of)
        assert command("gemm", a, a, "-o", tmp_path / "d.npy").code == 0
    assert command("gemm", a, a, "-o", tmp_path / "d.npy", "--machine", "cpu").code == 0
    assert asked == ["cpu", "gpu", "cpu"]


def test_bfloat16_files(command, save, library, tmp_path) -> None:
    library(product)
    a = save("a.npy", normal(8, 8).astype(ml_dtypes.bfloat16))
    done = command("gemm", a, a, "-o", tmp_path / "d.npy", "--check")
    assert done.code == 0 and "bfloat16" in done.out


@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_empty_and_single_extents_are_valid(command, save, library, tmp_path, m: int, k: int) -> None:
    library(product)
    a, b = save("a.npy", normal(m, k)), save("b.npy", normal(k, 1, seed=1))
    assert command("gemm", a, b, "-o", tmp_path / "d.npy", "--check").code == 0
    assert np.load(tmp_path / "d.npy").shape == (m, 1)


def test_the_output_may_replace_an_input(command, save, library) -> None:
    library(product)
    path = save("a.npy", np.eye(4, dtype=np.float32) * 3)
    assert command("gemm", path, path, "-o", path).code == 0
    assert np.array_equal(np.load(path), np.eye(4) * 9)


def refused(*_: Any, **__: Any) -> Report:
    raise ArgumentError("float64 is not a dtype\n  of any kernel")


def absent(*_: Any, **__: Any) -> Report:
    raise MachineError("no NVIDIA GPU here")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["missing.npy", "b.npy"], "cannot read missing.npy: No such file"),
        (["cut.npy", "b.npy"], "cut.npy is truncated"),
        (["text.npy", "b.npy"], "text.npy is not a .npy file"),
        (["cube.npy", "b.npy"], r"cube.npy has the shape \(2, 2, 2\)"),
        (["b.npy", "a.npy"], "inner dimensions 5 and 4 differ"),
        (["a.npy", "b.npy", "--c", "a.npy"], "the product is 4 x 5"),
        (["a.npy", "b.npy", "--beta", "2"], "--beta 2 needs a matrix"),
        (["a.npy", "b.npy", "--machine", "abacus"], "abacus"),
        (["a.npy"], "Missing argument"),
        (["a.npy", "b.npy", "--alpha", "x"], "--alpha"),
        (["a.npy", "b.npy", "--nope"], "--nope"),
    ],
)
def test_bad_input_is_one_line_and_leaves_the_output_alone(
    command, save, library, tmp_path, monkeypatch, arguments: list[str], reason: str
) -> None:
    library(product)
    monkeypatch.chdir(tmp_path)
    save("a.npy", normal(4, 4))
    cut = save("cut.npy", normal(4, 4))
    cut.write_bytes(cut.read_bytes()[:-1])
    save("b.npy", normal(4, 5))
    save("cube.npy", normal(2, 2, 2))
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "d.npy").write_bytes(b"old")
    assert re.search(reason, command("gemm", *arguments, "-o", "d.npy").complaint)
    assert (tmp_path / "d.npy").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("failing", "reason"), [(refused, "float64 is not a dtype of any kernel"), (absent, "no NVIDIA GPU")]
)
def test_library_refusals_leave_no_output_file(command, save, library, tmp_path, failing: Any, reason: str) -> None:
    library(failing)
    a = save("a.npy", normal(4, 4))
    assert reason in command("gemm", a, a, "-o", tmp_path / "d.npy").complaint
    assert os.listdir(tmp_path) == ["a.npy"]


def test_an_unwritable_output_is_refused_before_any_work(command, save, library, tmp_path) -> None:
    library(lambda *_, **__: pytest.fail("the product was computed"))
    a = save("a.npy", normal(4, 4))
    assert "cannot write" in command("gemm", a, a, "-o", tmp_path / "no" / "d.npy").complaint
    assert "not a regular file" in command("gemm", a, a, "-o", "/dev/null").complaint
    assert Path("/dev/null").is_char_device()


def test_a_wrong_product_is_caught_and_not_written(command, save, library, tmp_path) -> None:
    def wrong(*args: Any, **kwargs: Any) -> Report:
        report = product(*args, **kwargs)
        report.d[2, 3] += np.float16(0.25)
        return report

    library(wrong)
    a, b = save("a.npy", normal(16, 16)), save("b.npy", normal(16, 16, seed=1))
    done = command("gemm", a, b, "-o", tmp_path / "d.npy", "--check")
    assert done.code == 1 and "largest error 0.25" in done.err and not (tmp_path / "d.npy").exists()


def test_a_finding_of_the_simulator_is_shown_whole(command, save, library, tmp_path) -> None:
    def race(*_: Any, **__: Any) -> Report:
        raise SimulationError("race on shared memory\n  written at kernel.py:3\n  read at kernel.py:9")

    library(race)
    a = save("a.npy", normal(4, 4))
    done = command("gemm", a, a, "-o", tmp_path / "d.npy")
    assert done.code == 1 and done.err.splitlines()[-1] == "  read at kernel.py:9"


def test_a_bar_appears_only_when_the_work_takes_long(command, save, library, tmp_path, monkeypatch) -> None:
    def ticking(*args: Any, progress: Callable[[float], None], **kwargs: Any) -> Report:
        for done in range(3):
            progress(done / 3)
        return product(*args, **kwargs)

    library(ticking)
    a = save("a.npy", normal(4, 4))
    assert command("gemm", a, a, "-o", tmp_path / "d.npy").err == ""
    monkeypatch.setattr(gemm_command.ProgressBar, "PATIENCE", -1.0)
    assert command("gemm", a, a, "-o", tmp_path / "d.npy").err == ""  # standard error is not a terminal
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "simulating" in command("gemm", a, a, "-o", tmp_path / "d.npy").err


def test_the_bound_of_the_check_knows_overflow_and_nan() -> None:
    a = np.array([[300.0, np.nan]], np.float16)
    b = np.array([[300.0, 0.0], [0.0, 1.0]], np.float16)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert compare(exact.astype(np.float16), a, b, None, 1.0, 0.0).passed
    assert not compare(np.zeros((1, 2), np.float16), a, b, None, 1.0, 0.0).passed
    big = np.array([[300.0]], np.float16)
    assert compare(np.array([[np.inf]], np.float16), big, big, None, 1.0, 0.0).passed
    assert not compare(np.array([[np.inf]], np.float32), big, big, None, 1.0, 0.0).passed


def test_the_check_says_that_elements_are_nan() -> None:
    a = np.full((2, 2), np.nan, np.float16)
    found = compare(a, a, a, None, 1.0, 0.0)
    assert found.passed and "4 elements are NaN, as in float64" in str(found)


def test_the_table_counts_elements_that_are_nan(command, save, library, tmp_path) -> None:
    library(lambda a, *rest, **given: product(a if given["alpha"] else np.zeros_like(a), *rest, **given))
    a, b = np.ones((16, 16), np.float16), save("b.npy", np.ones((16, 16), np.float16))
    a[0, 0] = np.nan
    for given, options, said in ((a, (), True), (a, ("--alpha", "0"), False), (np.ones_like(a), (), False)):
        done = command("gemm", save("a.npy", given), b, "-o", tmp_path / "d.npy", "--check", *options)
        assert done.code == 0
        assert (re.search(r"elements that are NaN, as in float64 *│ *16 ", done.out) is not None) is said
