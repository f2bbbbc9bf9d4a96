"""quack's GEMMs as of 0.6, by the functions of ``quack.gemm_interface``, each form against PyTorch in double precision:
one line a form."""

from __future__ import annotations

from collections.abc import Callable

import torch
import without_triton  # noqa: F401  # before what imports Triton
from quack.gemm_interface import gemm, gemm_act, gemm_add, gemm_symmetric


def draw(*shape: int) -> torch.Tensor:
    return torch.randint(-2, 3, shape, device="cuda").half()


def product(m: int = 256, n: int = 256, k: int = 128, batch: tuple[int, ...] = (), **how: object) -> bool:
    a, b = draw(*batch, m, k), draw(*batch, k, n)
    return torch.equal(gemm(a, b, tuned=False, **how).double(), a.double() @ b.double())


def with_c() -> bool:
    a, b, c = draw(128, 64), draw(64, 128), draw(128, 128)
    return torch.equal(gemm_add(a, b, c, tuned=False).double(), a.double() @ b.double() + c.double())


def with_bias() -> bool:
    a, b, bias = draw(128, 64), draw(64, 128), draw(128).float()
    return torch.equal(gemm(a, b, bias=bias, tuned=False).double(), a.double() @ b.double() + bias.double())


def with_relu() -> bool:
    a, b = draw(128, 64), draw(64, 128)
    before, after = gemm_act(a, b, activation="relu", tuned=False, store_preact=True)
    expected = a.double() @ b.double()
    return torch.equal(before.double(), expected) and torch.equal(after.double(), expected.clamp(min=0))


def symmetric() -> bool:
    a = draw(256, 64)
    return torch.equal(gemm_symmetric(a, a.mT).double(), a.double() @ a.double().T)


FORMS: dict[str, Callable[[], bool]] = {
    "GEMM, cluster (2, 1)": product,
    "GEMM, ragged": lambda: product(200, 136, 72),
    "GEMM, three batches": lambda: product(128, 128, 64, batch=(3,)),
    "GEMM with C": with_c,
    "GEMM with a bias": with_bias,
    "GEMM with relu": with_relu,
    "symmetric GEMM": symmetric,
}

for name, form in FORMS.items():
    try:
        print(f"{name}: {'right' if form() else 'WRONG'}", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
