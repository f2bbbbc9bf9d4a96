"""``tilewright product``: the products that models run, from files; one line of complaint for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.cli.npy import read_array
from tilewright.cli.product import from_torch, to_torch

E4M3 = ml_dtypes.float8_e4m3fn


def integers(*shape: int, least: int = -3, most: int = 3, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(0).integers(least, most + 1, shape).astype(dtype)


def drawn(kind: str) -> tuple[list[np.ndarray], dict[str, np.ndarray], list[str], np.ndarray]:
    """The two operands, the other arrays by their options, more words of the command, and the exact result."""
    bias, scales = integers(24, dtype=np.float32), np.exp2(integers(24, 2)).astype(np.float16)
    if kind == "mixed":
        a, weight, scale = integers(5, 256, dtype=E4M3), integers(24, 256, least=-128, most=127, dtype=np.int8), 0.5
        exact = scale * (a.astype(np.float64) @ (weight * np.repeat(scales.astype(np.float64), 128, 1)).T) + bias
        arrays = {"scales": scales, "scale-a": np.full((), scale, np.float32), "bias": bias}
        return [a, weight], arrays, ["--bits", "8", "--activation", "relu"], np.maximum(exact, 0)
    if kind == "scaled":
        a, b = integers(5, 256, dtype=E4M3), integers(256, 24, dtype=E4M3)
        rows, columns = np.exp2(integers(5, 2)).astype(np.float32), np.exp2(integers(2, 1)).astype(np.float32)
        exact = (a.astype(np.float64) * np.repeat(rows, 128, 1)) @ (b.astype(np.float64) * np.repeat(columns, 128, 0))
        return [a, b], {"scale-a": rows, "scale-b": columns, "bias": bias}, [], exact + bias
    if kind == "sparse":
        a, b = integers(40, 64), integers(64, 24)
        a[:, ::2] = 0
        return [a, b], {"bias": bias}, [], a.astype(np.float64) @ b + bias
    a, b, ends = integers(9, 32, dtype=np.int8), integers(2, 32, 24, dtype=np.int8), np.array([4, 9], np.int32)
    scale = np.full(9, 0.5, np.float32), np.full((2, 24), 2, np.float32)
    if kind == "counted":
        a = integers(2, 9, 32, dtype=np.int8)
        exact = a.astype(np.float64) @ b
        exact[0, 4:] = 0
        more = {"counts": np.array([4, 9], np.int32), "scale-a": np.full((2, 9), 0.5, np.float32), "scale-b": scale[1]}
        return [a, b], more, [], exact
    exact = np.concatenate([a[:4].astype(np.float64) @ b[0], a[4:].astype(np.float64) @ b[1]])
    return [a, b], {"offsets": ends, "scale-a": scale[0], "scale-b": scale[1]}, [], exact


@pytest.mark.parametrize("kind", ["mixed", "scaled", "sparse", "grouped", "counted"])
def test_products_of_files(kind: str, command: Any, save: Any, tmp_path: Path) -> None:
    operands, arrays, more, exact = drawn(kind)
    kind = "grouped" if kind == "counted" else kind
    paths = [save(f"{i}.npy", x) for i, x in enumerate(operands)]
    given = [word for name, x in arrays.items() for word in (f"--{name}", save(f"{name}.npy", x))]
    out = tmp_path / "d.npy"
    found = command("product", kind, *paths, "-o", out, *given, *more, "--out-dtype", "float32", "--machine", "cpu")
    assert found.code == 0 and found.out.startswith(f"{kind}: "), found
    np.testing.assert_array_equal(read_array(out), exact)


def test_results_of_16_bits(command: Any, save: Any, tmp_path: Path) -> None:
    """The usual type of scaled products, which NumPy has no name for."""
    operands, arrays, _, exact = drawn("scaled")
    paths = [save(f"{i}.npy", x) for i, x in enumerate(operands)]
    given = [word for name, x in arrays.items() for word in (f"--{name}", save(f"{name}.npy", x))]
    assert command("product", "scaled", *paths, "-o", tmp_path / "d.npy", *given, "--machine", "cpu").code == 0
    np.testing.assert_array_equal(read_array(tmp_path / "d.npy"), exact.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mixed"], "a product of kind mixed needs --scales"),
        (["sparse", "--scale-a", "a.npy"], "a product of kind sparse has no --scale-a"),
        (["grouped", "--offsets", "o.npy", "--scale-a", "a.npy"], "groups have --scale-a and --scale-b, or none"),
        (["grouped"], "groups have --offsets, where they end, or --counts of their rows"),
        (["sparse", "--out-dtype", "float17"], "there is no dtype 'float17'"),
        (["sparse", "--bits", "8"], "a product of kind sparse has no --bits"),
    ],
)
def test_complaints(words: list[str], message: str, command: Any, save: Any, tmp_path: Path) -> None:
    path, out = save("a.npy", np.eye(64, dtype=np.float16)), tmp_path / "d.npy"
    save("o.npy", np.array([64], np.int32))
    more = [tmp_path / word if word.endswith(".npy") else word for word in words]
    found = command("product", more[0], path, path, "-o", out, *more[1:], "--machine", "cpu")
    assert message in found.complaint and not out.exists()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint8, np.int32, ml_dtypes.bfloat16, E4M3])
def test_arrays_as_tensors_and_back(dtype: Any) -> None:
    pytest.importorskip("torch")
    x = integers(5, 7, least=0, dtype=dtype)
    for array in (x, x.T, x[0], x[:1, :1].reshape(())):
        tensor = to_torch(array)
        assert tuple(tensor.shape) == array.shape
        found = from_torch(tensor)
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_a_gpu_that_pytorch_does_not_see(
    monkeypatch: pytest.MonkeyPatch, command: Any, save: Any, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (a, b), *_ = drawn("sparse")
    done = command("product", "sparse", save("a.npy", a), save("b.npy", b), "-o", tmp_path / "d", "--machine", "gpu")
    assert done.code == 2 and "which sees none: give --machine cpu" in done.err
