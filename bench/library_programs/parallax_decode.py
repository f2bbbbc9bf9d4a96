"""Parallax's decode kernel for Hopper (TMA, wgmma, splits of the keys) against its formula in PyTorch: a line a form.

The kernel leaves out the fence before wgmma reads rows that threads wrote, and multiplies rows that nothing writes,
whose results it does not use: the second run of each form passes over these checks.
"""

from __future__ import annotations

import math

import torch
import without_triton  # noqa: F401  # the package imports Triton
from parallax.cute import parallax_decode
from parallax.reference import parallax_reference

import tilewright


def form(
    heads: int = 2,
    of_keys: int = 2,
    rows: int = 256,
    dtype: torch.dtype = torch.bfloat16,
    window: int = -1,
) -> bool:
    q, r = (torch.randn(2, 1, heads, 128, device="cuda", dtype=dtype) for _ in range(2))
    k, v = (torch.randn(2, rows, of_keys, 128, device="cuda", dtype=dtype) for _ in range(2))
    r *= 0.1
    scale = 1 / math.sqrt(128)
    found = parallax_decode(q, r, k, v, scale, window_size_left=window).cpu().float()
    wanted = parallax_reference(*(t.cpu().float() for t in (q, r, k, v)), scale, window_size_left=window)
    return bool((found - wanted).abs().max() < 1e-2 * wanted.abs().max())


FORMS = {
    "decode": lambda: form(),
    "decode, fp16, 300 keys": lambda: form(rows=300, dtype=torch.float16),
    "decode, four heads for one of the keys": lambda: form(heads=4, of_keys=1),
    "decode, a window of 100": lambda: form(rows=384, window=100),
}
PASSED_OVER = "-races,-proxies,-uninitialised"

torch.manual_seed(0)
for ending, checks in (("", {}), (f", {PASSED_OVER}", {"check": f"all,{PASSED_OVER}"})):
    for name, run in FORMS.items():
        try:
            with tilewright.sim.options(**checks):
                print(f"{name}{ending}: {'right' if run() else 'WRONG'}", flush=True)
        except Exception as error:
            print(f"{name}{ending}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
