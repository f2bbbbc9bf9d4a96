"""quack's Hadamard transform, and its products with weights of 4 bits as of 0.6: one line a form."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import torch
import without_triton  # noqa: F401  # before what imports Triton
from quack.transform.hadamard import hadamard_transform

import tilewright.sim


def hadamard(rows: int = 5, n: int = 256, dtype: torch.dtype = torch.bfloat16) -> bool:
    """The transform and its gradient, which is the same transform, beside the matrix of scipy's convention."""
    padded = 1 << (n - 1).bit_length()
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < padded:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    x, weight = (torch.randn(rows, n, device="cuda", dtype=dtype) for _ in range(2))
    x.requires_grad_()
    y = hadamard_transform(x, n**-0.5)
    y.backward(weight)
    turn = matrix[:n, :n].to("cuda") * n**-0.5
    return all(bool((a.double() - b.double() @ turn).abs().max() < 3e-2) for a, b in ((y, x), (x.grad, weight)))


def product(form: str, check: str = "all") -> bool:
    """64 rows of bf16 by a weight of 128 x 256 in a form of 4 bits, beside the weight that its numbers stand for."""
    from quack.gemm_w4 import gemm_w4a16, prepare_w4_weight
    from quack.operand_transform.formats import decode_format

    known = decode_format(form)
    numbers, scales = known.quantize_reference(torch.randn(128, 256, device="cuda") / 16)
    x = torch.randn(64, 256, device="cuda", dtype=torch.bfloat16)
    with tilewright.sim.options(check=check):
        y = gemm_w4a16(x, *prepare_w4_weight(numbers, scales, form), wformat=form)
    return bool((y.double() - x.double() @ known.dequant_reference(numbers, scales).double().T).abs().max() < 2e-2)


FORMS: dict[str, Callable[[], bool]] = {
    "Hadamard transform": hadamard,
    "Hadamard transform, fp32, 3 rows of 1000": lambda: hadamard(3, 1000, torch.float32),
}
if find_spec("quack.gemm_w4") is not None:
    FORMS |= {
        "weights of int4": lambda: product("int4"),
        "weights of int4, as AWQ": lambda: product("int4awq"),
        "weights of mxfp4": lambda: product("mxfp4"),
        "weights of nvfp4": lambda: product("nvfp4"),
    }

torch.manual_seed(0)
for name, form in FORMS.items():
    try:
        print(f"{name}: {'right' if form() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
