"""Calls of the products of models with one mistake each: one ArgumentError that says what, and the result untouched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tilewright import sim
from tilewright.errors import ArgumentError
from tilewright.gemm import (
    CompressedMatrix,
    PreparedWeight,
    block_scaled_matmul,
    combine_rows,
    compress_2_4,
    grouped_matmul,
    mixed_matmul,
    prepare_weight,
    scaled_grouped_matmul,
    scaled_matmul,
    sparse_matmul,
)

torch = pytest.importorskip("torch")

M, N, K, GROUPS = 32, 64, 256, 2
E4M3, E8M0 = torch.float8_e4m3fn, torch.float8_e8m0fnu


def operands(dtype: Any) -> dict[str, Any]:
    return {"a": torch.ones(M, K).to(dtype), "b": torch.ones(N, K).to(dtype).T, "out": torch.full((M, N), 7.0)}


def groups(dtype: Any) -> dict[str, Any]:
    ends = torch.tensor([9, M], dtype=torch.int32)
    return operands(dtype) | {"b": torch.ones(GROUPS, N, K).to(dtype).mT, "offsets": ends}


def sparse(**changed: Any) -> Any:
    given = operands(torch.float16) | {"out": torch.full((M, N), 7.0).half(), "beta": 1.0} | changed
    values, metadata = compress_2_4(torch.zeros(M, K).half())
    parts = CompressedMatrix(given.pop("values", values), given.pop("metadata", metadata))
    return sparse_matmul(parts, given.pop("b"), **{name: x for name, x in given.items() if name != "a"})


WEIGHT = prepare_weight(torch.ones(N, K, dtype=torch.int8), torch.ones(N, 2).half())
VALID: dict[str, tuple[Callable[..., Any], Callable[[], dict[str, Any]]]] = {
    "rows": (
        scaled_matmul,
        lambda: operands(E4M3) | {"scale_a": torch.ones(M, 1), "scale_b": torch.ones(1, N), "bias": torch.ones(N)},
    ),
    "blocks": (scaled_matmul, lambda: operands(E4M3) | {"scale_a": torch.ones(M, 2), "scale_b": torch.ones(2, 1)}),
    "mixed": (
        mixed_matmul,
        lambda: {"a": torch.ones(M, K).half(), "weight": WEIGHT, "bias": torch.ones(N), "out": torch.full((M, N), 7.0)},
    ),
    "sparse": (sparse, dict),
    "groups": (grouped_matmul, lambda: groups(torch.float16) | {"out": torch.full((M, N), 7.0).half()}),
    "scaled groups": (
        scaled_grouped_matmul,
        lambda: groups(E4M3) | {"scale_a": torch.ones(M), "scale_b": torch.ones(GROUPS, N)},
    ),
    "sums": (
        combine_rows,
        lambda: {
            "source": torch.ones(M, N),
            "places": torch.zeros(8, 2, dtype=torch.int32),
            "weights": torch.ones(8, 2),
            "out": torch.full((8, N), 7.0),
        },
    ),
    "factors": (
        block_scaled_matmul,
        lambda: operands(E4M3) | {"scale_a": torch.ones(M, 8).to(E8M0), "scale_b": torch.ones(N, 8).to(E8M0).T},
    ),
}
MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("rows", {"scale_a": torch.ones(M + 1, 1)}, "scale_a"),
    ("rows", {"scale_b": torch.ones(1, N).half()}, "scale_b must be float32"),
    ("rows", {"scale_a": torch.ones(M, 3)}, "scale_a"),
    ("rows", {"scale_b": torch.ones(N, 1)}, "scale_b"),
    ("rows", {"use_fast_accum": "no"}, "use_fast_accum is True or False"),
    ("rows", {"out_dtype": 3}, "there is no dtype 3"),
    ("rows", {"bias": torch.ones(N + 1)}, "bias must be a vector of 64"),
    ("rows", {"scale_a": None}, "scale_a is builtins.NoneType"),
    ("blocks", {"a": torch.ones(M, K, dtype=torch.int8), "b": torch.ones(N, K, dtype=torch.int8).T}, "not of blocks"),
    ("blocks", {"scale_b": torch.ones(1, 2)}, "scale"),
    ("blocks", {"kernel": "tensorop_e4m3"}, "cannot apply scales of blocks"),
    ("mixed", {"bias": 1.0}, "bias is builtins.float"),
    ("mixed", {"a": torch.ones(M, K).half().numpy()}, "give all of one framework"),
    ("mixed", {"weight": torch.ones(N, K, dtype=torch.int8)}, "prepare_weight first"),
    ("mixed", {"weight": PreparedWeight(WEIGHT.words, torch.ones(N, 4).half())}, "prepared for other settings"),
    ("mixed", {"weight": PreparedWeight(WEIGHT.words[:-1], WEIGHT.scales)}, "prepared for other settings"),
    ("mixed", {"a": torch.ones(M, 2 * K).half()}, "elements of K"),
    ("mixed", {"scale_a": torch.ones(M - 1)}, "scale_a is one number"),
    ("mixed", {"out_dtype": torch.int32}, "out"),
    ("sparse", {"metadata": torch.zeros(2, 4, 128, dtype=torch.int32)}, "metadata of a sparse matrix"),
    ("sparse", {"metadata": torch.zeros(4, 128)}, "metadata of a sparse matrix"),
    ("sparse", {"values": torch.zeros(K // 2).half()}, "the stored elements of a are a matrix"),
    ("sparse", {"c": torch.ones(M, N).to_sparse()}, "c"),
    ("sparse", {"c": torch.ones(M, N, dtype=torch.int32)}, "c is Int32"),
    ("groups", {"offsets": torch.tensor([20, 9], dtype=torch.int32)}, "do not fall"),
    ("groups", {"offsets": torch.tensor([9, M + 1], dtype=torch.int32)}, "at most the extent"),
    ("groups", {"offsets": torch.tensor([9, M])}, "offsets must be int32"),
    ("groups", {"offsets": torch.tensor([9, 20, M], dtype=torch.int32)}, "one for each group"),
    ("groups", {"b": None}, "b is builtins.NoneType"),
    ("groups", {"rows": torch.tensor(3, dtype=torch.int32)}, "rows is a vector of int32"),
    ("groups", {"rows": torch.full((M,), M, dtype=torch.int32)}, "a has 32 rows"),
    ("groups", {"out": torch.full((1, M, N), 7.0).half()}, "out must have the shape"),
    ("scaled groups", {"scale_a": torch.ones(M, 3)}, "scale_a"),
    ("scaled groups", {"scale_b": torch.ones(N)}, "scale_b"),
    ("scaled groups", {"b": None}, "b is builtins.NoneType"),
    ("scaled groups", {"use_fast_accum": 2}, "use_fast_accum is True or False"),
    ("sums", {"places": None}, "places is builtins.NoneType"),
    ("sums", {"weights": torch.ones(8, 3)}, "weights"),
    ("sums", {"out": torch.full((1, 8, N), 7.0)}, "out must have the shape"),
    ("factors", {"alpha": "1"}, "alpha must be a number"),
    ("factors", {"alpha": float("nan")}, "alpha is nan"),
    ("factors", {"scale_a": torch.ones(M, 7).to(E8M0)}, "scale_a has the shape"),
    ("factors", {"scale_b": torch.ones(N, 8).T}, "scale_a is Float8E8M0FNU, scale_b Float32"),
    ("factors", {"out_dtype": torch.bfloat16}, "out is Float32, and out_dtype BFloat16"),
    ("factors", {"out": torch.full((1, M, N), 7.0)}, "out must have the shape"),
]


@pytest.mark.parametrize(
    ("kind", "changed", "message"), MISTAKES, ids=[f"{x[0]}-{[*x[1]][0]}-{x[2]}" for x in MISTAKES]
)
def test_one_mistake_is_one_error(kind: str, changed: dict[str, Any], message: str) -> None:
    function, valid = VALID[kind]
    given = valid() | changed
    out = given.get("out")
    with sim.options(arch="sm_100a" if kind == "factors" else "sm_90a", sms=4):
        with pytest.raises(ArgumentError, match=message):
            function(**given)
    assert out is None or bool((out == 7).all())


def test_a_c_of_another_type_is_added_to_a_sparse_product() -> None:
    """By a function of the epilogue, as matmul does; it was read past the operands of the launch."""
    a, b = torch.zeros(M, K).half(), torch.randint(-2, 3, (K, N)).half()
    a[:, ::4] = torch.randint(-2, 3, (M, K // 4)).half()
    c, wanted = torch.randint(-2, 3, (M, N)).float(), a.double() @ b.double()
    for factor in (1.0, 2.0):
        for beta in (1.0, 0.5):
            found = sparse_matmul(compress_2_4(a * factor), b, torch.empty(M, N).half(), c, beta=beta)
            assert torch.equal(found.double(), (factor * wanted + beta * c).half().double())
