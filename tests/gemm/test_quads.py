"""The result of a gate in whole vectors: exact in every form of the exchange, at edges, and for matrices that cannot be
stored so; the stores of the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.gemm.test_compiled import mnemonics
from tests.gemm.test_epilogue_functions import KERNELS
from tests.gemm.test_hopper import sized
from tilewright import cuda, cute
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm import gemm, grouped_matmul, matmul
from tilewright.gemm.epilogue import quads
from tilewright.gemm.epilogue.activations import Gated
from tilewright.gemm.host import handle
from tilewright.gemm.operators import group_launch

PARTS = {
    "parts of 64 columns": {"kernel": sized((128, 128), epilogue_columns=64)},
    "parts of 32 columns": KERNELS["hopper, turns"],
    "warps side by side": KERNELS["tensorop"],
}
WIDEST = {
    ("parts of 64 columns", "float16"): {8},
    ("parts of 32 columns", "float16"): {4},
    ("warps side by side", "float16"): {4},
}
"""Elements of a vector; of Float32 they are 4."""


def product(kernel: dict[str, Any], gated: np.ndarray, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers that differ from element to element, so that each has its own place; and what they should be."""
    rng = np.random.default_rng(m + n)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, 16), (16, n)))
    sums = a.astype(np.float64) @ b.astype(np.float64)
    found = matmul(a, b, epilogue=Gated("relu", gated), **kernel)
    np.testing.assert_array_equal(found, sums)
    return gated, (np.maximum(sums[:, ::2], 0) * sums[:, 1::2]).astype(gated.dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("parts", PARTS)
def test_vectors_are_exact(parts: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and columns end within a tile and within a part."""
    widths = set()

    def seen(*args: Any) -> Any:
        widths.update(quads.vector_of(one) for one in args[-1])
        return original(*args)

    original = quads.store_vectors
    monkeypatch.setattr("tilewright.gemm.epilogue.tile.store_vectors", seen)
    monkeypatch.setattr(handle, "_COMPILED", {})
    gated, wanted = product(PARTS[parts], np.full((130, 88), np.nan, dtype), 130, 176)
    np.testing.assert_array_equal(gated, wanted)
    assert widths == WIDEST.get((parts, dtype), {4})


@pytest.mark.parametrize("which", ["a part of a row", "columns contiguous", "rows that are not whole vectors"])
def test_matrices_that_take_no_vectors(which: str) -> None:
    whole = np.full((130, 96), np.nan, np.float16, "F" if which == "columns contiguous" else "C")
    columns = {"a part of a row": slice(1, 89), "columns contiguous": slice(0, 88)}.get(which)
    given = np.full((130, 92), np.nan, np.float16) if columns is None else whole[:, columns]
    gated, wanted = product(PARTS["parts of 64 columns"], given, 130, 2 * given.shape[1])
    np.testing.assert_array_equal(gated, wanted)
    if columns is not None:
        assert np.isnan(np.delete(whole, np.arange(96)[columns], 1)).all()


def sectors(exchanges: Any, layout: Any, first: tuple[int, ...], width: int) -> tuple[int, float]:
    """Store instructions of a thread, and the bytes that one of a warp writes for each byte of the sectors of 32 bytes
    that it touches, in a matrix with rows of 256 bytes."""
    stores = []
    if exchanges is None:
        for i in first:
            row, column = layout(i)
            stores.append([(row + lane // 4, (column // 2 + lane % 4) * width // 8, width // 8) for lane in range(32)])
    else:
        for one in exchanges:
            size = quads.vector_of(one) * width // 8
            for number in one.rows:
                row, column = layout(first[number])
                stores.append(
                    [(row + lane // 4, (column + lane % 4 * one.apart) // 2 * width // 8, size) for lane in range(32)]
                )
    shares = []
    for lanes in stores:
        touched = {(256 * row + byte + i) // 32 for row, byte, size in lanes for i in range(size)}
        shares.append(sum(size for *_, size in lanes) / (32 * len(touched)))
    return len(stores), min(shares)


def test_every_byte_of_a_sector_is_written_by_one_instruction() -> None:
    one, row, eight = cute.ScaledBasis(1, 1), cute.ScaledBasis(8, 0), cute.ScaledBasis(8, 1)
    for columns, stores, share in ((64, 2, 1.0), (32, 2, 1.0)):
        layout = cute.make_layout((2, 2, columns // 8), stride=(one, row, eight))
        first = tuple(range(0, columns // 2, 2))
        assert sectors(None, layout, first, 16) == (columns // 4, 0.25)
        assert sectors(quads.exchanges_of(layout, first, 16, 1), layout, first, 16) == (stores, share)


def test_the_program_has_no_store_of_single_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    made: list[Any] = []
    compiled = group_launch.cute.compile
    monkeypatch.setattr(group_launch, "_COMPILED", {})
    monkeypatch.setattr(group_launch.cute, "compile", lambda *args: made.append(compiled(*args)) or made[-1])
    a, b = torch.zeros(16, 64, dtype=torch.float16), torch.zeros(1, 64, 128, dtype=torch.float16)
    gated, ends = torch.zeros(16, 64, dtype=torch.float16), torch.tensor([16], dtype=torch.int32)
    grouped_matmul(a, b, ends, kernel=PARTS["parts of 64 columns"]["kernel"], epilogue=Gated("silu", gated))
    artifact = cuda.compile(made[0].kernels[-1], "sm_90a")
    found = mnemonics(artifact.sass)
    assert artifact.spills == 0 and "HGMMA" in artifact.sass
    assert {name for name in found if name.startswith("STG")} == {"STG.E.128"}


def test_a_vector_does_not_reach_beyond_the_columns() -> None:
    """Rows that begin at multiples of a vector, and are not multiples of one."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((130, 16), (16, 184)))
    whole = np.full((130, 96), np.nan, np.float16)
    tensor = from_dlpack(whole[:, :92], assumed_align=16)
    gemm(a, b, epilogue=Gated("relu", tensor), **PARTS["parts of 64 columns"])
    sums = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(whole[:, :92], (np.maximum(sums[:, ::2], 0) * sums[:, 1::2]).astype(np.float16))
    assert np.isnan(whole[:, 92:]).all()
