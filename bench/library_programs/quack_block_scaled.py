"""quack's GEMMs of block-scaled operands (mxfp8, mxfp6, mxfp4, nvfp4), for sm_100 and sm_120, each pair of formats
against PyTorch in double precision: one line a form."""

from __future__ import annotations

import os

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # its quantizers are compiled otherwise

import torch
import without_triton  # noqa: F401  # before what imports Triton
from quack.blockscaled.operand import BlockScaledOperand
from quack.gemm_interface import gemm

FORMS = (
    ("mxfp8", "mxfp8"),
    ("mxfp4", "mxfp4"),
    ("nvfp4", "nvfp4"),
    ("mxfp8_e4m3", "mxfp4"),
    ("mxfp4", "mxfp8_e5m2"),
    ("mxfp8_e4m3", "mxfp6_e3m2_packed"),
    ("mxfp6_e2m3_packed", "mxfp6_e2m3_packed"),
)


def right(of_a: str, of_b: str) -> bool:
    a, b = (
        BlockScaledOperand.quantize(torch.randn(rows, 256, device="cuda").bfloat16(), form)
        for rows, form in ((256, of_a), (128, of_b))
    )
    found = gemm(a, b.mT, tuned=False, out_dtype=torch.float32)
    wanted = a.dequantize(torch.float32).double() @ b.dequantize(torch.float32).double().T
    return bool((found.double() - wanted).abs().max() <= 1e-5 * wanted.abs().max())


for form in FORMS:
    try:
        said = "right" if right(*form) else "WRONG"
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
    print(f"block-scaled GEMM, {' by '.join(form)}: {said}", flush=True)
