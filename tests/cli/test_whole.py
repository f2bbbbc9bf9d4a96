"""The commands with the real library behind them: files, kernels, simulator and compiler together."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.cli.npy import read_array
from tilewright.gemm import kernels

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


def matrices(m: int, n: int, k: int, dtype: type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Small integers: every product and sum is exact in every dtype."""
    rng = np.random.default_rng(m + 10 * n + 100 * k)
    return tuple(rng.integers(-2, 3, shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))


PRODUCTS = [
    ((40, 24, 16), "f16"),
    ((5, 1, 33), "bf16"),
    ((1, 1, 1), "f32"),
    ((0, 4, 4), "f16"),
    ((4, 0, 4), "bf16"),
    ((4, 5, 0), "f16"),
    ((4, 5, 0), "f32"),
]
"""Every shape, every type; where K is 0, the product is of zeros."""


@pytest.mark.parametrize(("shape", "dtype"), PRODUCTS, ids=str)
def test_gemm(command, save, tmp_path, shape: tuple[int, int, int], dtype: str) -> None:
    a, b, c = matrices(*shape, DTYPES[dtype])
    files = [save(f"{name}.npy", matrix) for name, matrix in zip("abc", (a, b, c), strict=True)]
    arguments = [*files[:2], "--c", files[2], "--alpha", "2", "--beta", "-1", "--check"]
    done = command("gemm", *arguments, "--machine", "cpu", "-o", tmp_path / "d.npy")
    assert (done.code, done.err) == (0, "")
    d = read_array(tmp_path / "d.npy")
    assert d.dtype == a.dtype
    assert np.array_equal(d.astype(np.float64), 2 * a.astype(np.float64) @ b.astype(np.float64) - c.astype(np.float64))


def test_the_table_of_a_simulated_product(command, save, tmp_path) -> None:
    a, b, _ = matrices(64, 64, 64, np.float16)
    files = save("a.npy", a), save("b.npy", b)
    out = command("gemm", *files, "-o", tmp_path / "d.npy", "--machine", "cpu", "--kernel", "hopper_f16", "--check").out
    for text in ("hopper_f16", "cpu", "thread blocks", "wgmma", "scalar: ", "bank conflicts", "largest error"):
        assert text in out, text


@pytest.mark.parametrize("decomposition", ["data_parallel", "stream_k"])
def test_the_decomposition_is_chosen(command, save, tmp_path, decomposition: str) -> None:
    a, b, _ = matrices(64, 64, 4096, np.float16)
    files = save("a.npy", a), save("b.npy", b)
    arguments = ["--machine", "cpu", "--check", "--decomposition", decomposition]
    assert decomposition in command("gemm", *files, "-o", tmp_path / "d.npy", *arguments).out


def test_operands_that_no_kernel_takes(command, save, tmp_path) -> None:
    a = save("a.npy", np.eye(4, dtype=np.int16))
    assert "int16" in command("gemm", a, a, "-o", tmp_path / "d.npy").complaint.lower()
    half, single = save("h.npy", np.eye(4, dtype=np.float16)), save("s.npy", np.eye(4, dtype=np.float32))
    assert "a is Float16, b is Float32" in command("gemm", half, single, "-o", tmp_path / "d.npy").complaint
    assert (
        "there is no kernel 'abacus'"
        in command("gemm", half, half, "-o", tmp_path / "d.npy", "--kernel", "abacus").complaint
    )
    assert not (tmp_path / "d.npy").exists()


ONE_OF_A_FAMILY = {type(entry.config): name for name, entry in kernels().items()}.values()


@pytest.mark.parametrize("kernel", ONE_OF_A_FAMILY)
def test_show_ir_and_cuda(command, kernel: str) -> None:
    out = command("show", kernel, "--ir", "--cuda").out
    assert out.startswith("kernel @") and "__global__" in out


def test_show_a_kernel_that_is_not_there(command) -> None:
    assert "there is no kernel 'hoper_f16'; did you mean hopper_f16?" in command("show", "hoper_f16").complaint
    assert "the kernels are hopper_f16, hopper_bf16" in command("show", "abacus").complaint


def test_show_compiled(command) -> None:
    pytest.importorskip("cuda.bindings")
    done = command("show", "tensorop_f16", "--ptx", "--sass", "--resources", "--arch", "sm_80")
    assert done.code == 0, done.err
    assert ".target sm_80" in done.out and "HMMA" in done.out and "registers a thread" in done.out


def test_show_for_no_architecture(command) -> None:
    assert "sm_12" in command("show", "simt_f32", "--ptx", "--arch", "sm_12").complaint


def test_tilewright_alone_prints_its_help(command) -> None:
    done = command()
    assert "Usage: tilewright" in done.out and done.err == ""


def test_an_unknown_architecture_is_a_mistake(command) -> None:
    assert "unknown architecture 'foo'" in command("show", "simt_f32", "--arch", "foo").complaint
