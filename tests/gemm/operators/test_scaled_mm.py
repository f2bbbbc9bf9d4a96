"""``scaled_mm``: each recipe in PyTorch's shapes and strides against float64, on a GPU also against its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import sim
from tilewright.errors import ArgumentError
from tilewright.gemm import blocked_scales, scaled_mm
from tilewright.gemm.operators.scaled_mm import RECIPES, seen

torch = pytest.importorskip("torch")
functional = torch.nn.functional
M, N, K = 144, 272, 400
DEEP = 4
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def powers(*shape: int) -> Any:
    return torch.exp2(torch.randint(-2, 2, shape).float())


def eight(*shape: int) -> Any:
    return torch.randint(-2, 3, shape).float().to(torch.float8_e4m3fn)


def along_k(scale: Any) -> Any:
    """(lines, K / 128) to (lines, K)."""
    return scale.repeat_interleave(128, 1)[:, :K]


def blocks(scale: Any, lines: int) -> Any:
    """(K / 128, lines / 128) to (lines, K)."""
    return along_k(scale[:DEEP].T.repeat_interleave(128, 0)[:lines])


def rows_inside(x: Any) -> Any:
    """The same numbers, columns contiguous."""
    return x.T.contiguous().T


ONE, ROWS, COLUMNS = powers(1), powers(M, 1), powers(1, N)
OF_A, OF_B = powers(M, DEEP), powers(N, DEEP)
BLOCKS_A, BLOCKS_B = powers(DEEP, 2), powers(DEEP, 3)
CASES = {
    "tensor": ("TensorWise", ONE, ONE, "TensorWise", ONE.reshape(()), ONE),
    "row": ("RowWise", ROWS, ROWS, "RowWise", COLUMNS, COLUMNS.T),
    "row, numbers": (1, [ROWS], ROWS, 1, COLUMNS.reshape(-1), COLUMNS.T),
    "1x128": ("BlockWise1x128", rows_inside(OF_A), along_k(OF_A), "BlockWise1x128", rows_inside(OF_B), along_k(OF_B)),
    "1x128, of _scaled_mm": (4, OF_A, along_k(OF_A), 4, OF_B.T, along_k(OF_B)),
    "128x128 of b": (4, rows_inside(OF_A), along_k(OF_A), 5, rows_inside(BLOCKS_B), blocks(BLOCKS_B, N)),
    "128x128 of a": (5, rows_inside(BLOCKS_A), blocks(BLOCKS_A, M), 4, rows_inside(OF_B), along_k(OF_B)),
    "128x128 of a, of _scaled_mm": (5, BLOCKS_A.T, blocks(BLOCKS_A, M), 4, OF_B.T, along_k(OF_B)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES)
def test_exact_for_each_recipe(case: str, device: str) -> None:
    recipe_a, scale_a, full_a, recipe_b, scale_b, full_b = CASES[case]
    a, b = eight(M, K), eight(N, K)
    exact = (a.double() * full_a.double()) @ (b.double() * full_b.double()).T

    def there(x: Any) -> Any:
        return [y.to(device) for y in x] if isinstance(x, list) else x.to(device)

    result = scaled_mm(there(a), there(b).T, there(scale_a), recipe_a, there(scale_b), recipe_b)
    assert result.dtype is torch.bfloat16 and torch.equal(result.cpu(), exact.to(torch.bfloat16))
    if device == "cuda" and "," not in case:  # PyTorch's own takes no other shapes and strides
        recipes = [
            getattr(functional.ScalingType, RECIPES[x] if isinstance(x, int) else x) for x in (recipe_a, recipe_b)
        ]
        theirs = functional.scaled_mm(
            there(a), there(b).T, there(scale_a), recipes[0], there(scale_b), recipes[1], use_fast_accum=False
        )
        assert torch.equal(
            scaled_mm(there(a), there(b).T, there(scale_a), recipes[0], there(scale_b), recipes[1]), theirs
        )


def test_a_shape_that_is_both_ways_round_is_the_first_one() -> None:
    scale = np.arange(4.0).reshape(2, 2)
    assert seen("scale_a", scale, "BlockWise128x128", 256, 256, True).tolist() == scale.T.tolist()
    assert seen("scale_b", scale, "BlockWise128x128", 256, 256, False).tolist() == scale.tolist()
    assert seen("scale_b", scale, "BlockWise1x128", 2, 256, False).tolist() == scale.T.tolist()


def test_rows_that_fill_up_scales_are_not_read() -> None:
    a, b, deep = eight(M, 272), eight(N, 272), 3
    scale = torch.full((4, 3), float("nan"))
    scale[:deep] = 2
    result = scaled_mm(a, b.T, powers(M, deep) * 0 + 1, "BlockWise1x128", scale, "BlockWise128x128")
    assert torch.equal(result, (2 * a.double() @ b.double().T).to(torch.bfloat16))


def test_factors_and_the_scales_of_whole_operands() -> None:
    """Of 4-bit floats in the order of tensor cores, beside a number each."""
    a, b = (torch.randint(0, 256, (x, 64), dtype=torch.uint8) for x in (M, 48))
    numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
    numbers = torch.cat([numbers, -numbers])
    exact = [torch.stack([numbers[(x & 15).long()], numbers[(x >> 4).long()]], -1).reshape(len(x), 128) for x in (a, b)]
    factor_a, factor_b = (powers(x, 8).to(torch.float8_e4m3fn) for x in (M, 48))
    whole = [x * f.double().repeat_interleave(16, 1) for x, f in zip(exact, (factor_a, factor_b), strict=True)]
    recipe, order = ["BlockWise1x16", "TensorWise"], functional.SwizzleType.SWIZZLE_32_4_4
    with sim.options(arch="sm_100a"):
        result = scaled_mm(
            a,
            b.T,
            [blocked_scales(factor_a), ONE],
            recipe,
            [blocked_scales(factor_b), ONE * 4],
            recipe,
            [order, 0],
            [order, 0],
            bias=torch.arange(48.0),
            output_dtype=torch.float32,
        )
        one = scaled_mm(a, b.T, factor_a, 2, factor_b.view(torch.uint8).T.view(torch.float8_e4m3fn), 2, None, None)
    product = whole[0] @ whole[1].T
    assert torch.equal(result.double(), product * (ONE * ONE * 4).double() + torch.arange(48.0))
    assert torch.equal(one, product.to(torch.bfloat16))


FACTORS_AND_NUMBER = {"scale": [ONE, ONE], "scale_recipe": ["BlockWise1x16", "TensorWise"], "swizzle": [1, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale_recipe_a": "Rows"}, "scale_recipe_a is one of TensorWise, .* not 'Rows'"),
        ({"scale_recipe_b": 6}, "scale_recipe_b is one of .* not 6"),
        ({"scale_recipe_a": None}, "scale_recipe_a is one of .* not None with 1"),
        ({"scale_recipe_a": []}, "scale_recipe_a is one of .* with 1"),
        ({"scale_a": [ONE, ONE]}, "scale_recipe_a is one of .* not TensorWise with 2"),
        ({"scale_a": ROWS}, r"scale_a of recipe TensorWise has the shape \(1,\), not \(144, 1\)"),
        ({"scale_a": ROWS.T, "scale_recipe_a": 1}, r"scale_a of recipe RowWise has the shape \(144, 1\), not"),
        ({"scale_b": OF_A, "scale_recipe_b": 4}, r"BlockWise1x128 has the shape \(272, 4\) or \(4, 272\), not"),
        ({"scale_a": OF_A, "scale_recipe_a": 4}, "belong to both operands or to none"),
        ({"scale_recipe_a": 3}, "both operands have factors of one recipe, not BlockWise1x32 and TensorWise"),
        ({"swizzle_b": 1}, "swizzle_b is for factors of 8 bits"),
        ({"contraction_dim": 0}, r"contraction_dim is empty or \(-1, -2\), not 0"),
        ({"use_fast_accum": 1}, "use_fast_accum is True or False"),
        ({"scale_recipe_a": 3, "scale_recipe_b": 3, "use_fast_accum": True}, "use_fast_accum is not for factors"),
        (
            {f"{name}_{of}": x for name, x in FACTORS_AND_NUMBER.items() for of in "ab"},
            "swizzle_a: the scale of the whole operand has no order of factors",
        ),
        ({"mat_a": eight(2, M, K)}, "mat_a is a matrix, not of shape"),
        ({"scale_a": 1.0}, "scale_a is builtins.float, not an array"),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    usual = {"mat_a": eight(M, K), "mat_b": eight(N, K).T, "scale_a": ONE, "scale_b": ONE}
    with pytest.raises(ArgumentError, match=message):
        scaled_mm(**{**usual, "scale_recipe_a": 0, "scale_recipe_b": 0, **change})


def test_numpy_and_torch_compile() -> None:
    a, b = eight(M, K), eight(N, K)
    exact = scaled_mm(a, b.T, OF_A, 4, BLOCKS_B, 5, output_dtype=torch.float32)
    arrays = (x.float().numpy() for x in (a, b))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    left, right = (x.astype(ml_dtypes.float8_e4m3fn) for x in arrays)
    found = scaled_mm(left, right.T, OF_A.numpy(), 4, BLOCKS_B.numpy(), 5, output_dtype=np.float32)
    np.testing.assert_array_equal(found, exact.numpy())
    kinds = functional.ScalingType
    compiled = torch.compile(
        lambda *x: scaled_mm(x[0], x[1].T, x[2], kinds.BlockWise1x128, x[3], kinds.BlockWise128x128),
        backend="aot_eager",
        fullgraph=True,
    )
    assert torch.equal(compiled(a, b, OF_A, BLOCKS_B), exact.to(torch.bfloat16))
