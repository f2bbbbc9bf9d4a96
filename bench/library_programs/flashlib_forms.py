"""flashlib's kernels for Hopper, of its back end for the CuTe DSL, against PyTorch: one line a form.

Most of its functions catch every exception and go on without these kernels: such a form says what was caught.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
import without_triton  # noqa: F401  # before what imports Triton

import tilewright.sim
from tilewright.errors import TilewrightError


def draw(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def near(got: torch.Tensor, wanted: torch.Tensor, bound: float) -> bool:
    return bool((got.double() - wanted.double()).abs().max() <= bound * wanted.double().abs().max())


def of(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"flashlib.{module}"), name)


def split(x: torch.Tensor, dtype: torch.dtype, parts: int) -> list[torch.Tensor]:
    found = []
    for _ in range(parts):
        found.append(x.to(dtype))
        x = x - found[-1].float()
    return found


def bf16_gemm(m: int = 256, n: int = 512, k: int = 128) -> bool:
    a, b = draw(m, k, dtype=torch.bfloat16), draw(k, n, dtype=torch.bfloat16)
    return near(of("linalg.gemm.cutedsl.bf16_chained", "gemm_bf16")(a, b), a.double() @ b.double(), 1e-5)


def bf16_in_three() -> bool:
    a, b = draw(256, 128), draw(256, 128)
    gemm = of("linalg.gemm.cutedsl.bf16x3_fused", "matmul_bf16x3_cute_fused_presplit")
    return near(gemm(*split(a, torch.bfloat16, 2), *split(b, torch.bfloat16, 2)), a.double() @ b.double().T, 1e-4)


def fp16_in_nine(ragged: bool = False) -> bool:
    a, b = draw(200 if ragged else 128, 100 if ragged else 64), draw(128, 100 if ragged else 64)
    return near(of("linalg.gemm.cutedsl.fp16x9", "matmul_fp16x9_cute_fused")(a, b), a.double() @ b.double().T, 1e-6)


def int8_gemm() -> bool:
    a, b = (torch.randint(-127, 128, (n, 128), device="cuda", dtype=torch.int8) for n in (256, 512))
    out = torch.empty(256, 512, device="cuda", dtype=torch.int32)
    of("linalg.gemm.cutedsl.int8_gemm", "cute_int8_mm")(a, b, out)
    return torch.equal(out.double(), a.double() @ b.double().T)


def kmeans(warp_specialized: bool) -> bool:
    x, c = draw(1, 256, 64, dtype=torch.bfloat16), draw(1, 128, 64, dtype=torch.bfloat16)
    assign = of("primitives.kmeans.cutedsl.assign", "cutedsl_assign_euclid")
    found = assign(x, c, cute_tile=(128, 128, warp_specialized), autotune=False)[0].long()
    far = torch.cdist(x[0].double(), c[0].double())
    return bool((far.gather(1, found[:, None])[:, 0] - far.min(1).values).max() < 1e-2)


def knn(check: str = "all", k: int = 8) -> bool:
    x, c = draw(1, 128, 64, dtype=torch.bfloat16), draw(1, 1024, 64, dtype=torch.bfloat16)
    # Triton computes these sums in flashlib; here it need not be there.
    impl = importlib.import_module("flashlib.primitives.knn.cutedsl.impl")
    with (
        mock.patch.object(impl, "_get_or_compute_csq", lambda c: c.float().square().sum(-1)),
        tilewright.sim.options(check=check),
    ):
        found = impl.cutedsl_flash_knn(x, c, k)[0].long().sort(1).values
    wanted = torch.cdist(x[0].double(), c[0].double()).topk(k, largest=False).indices.sort(1).values
    return bool((found == wanted).float().mean() > 0.99)


def scaler() -> bool:
    x = draw(300, 64) * 3 + 5
    out, _ = of("primitives.standard_scaler.cutedsl.scaler", "cutedsl_standard_scaler_fit_transform")(x)
    return near(out, (x.double() - x.double().mean(0)) / x.double().std(0, correction=0), 1e-5)


def naive_bayes() -> bool:
    x, weight, prior = draw(256, 128).abs(), -draw(10, 128).abs(), -draw(10).abs()
    predict = of("primitives.multinomial_nb.cutedsl.nb", "cutedsl_multinomial_nb_predict_argmax")
    found = predict(x, {"feature_log_prob": weight, "class_log_prior": prior})
    scores = x.bfloat16().double() @ weight.bfloat16().double().T + prior.double()
    return bool((scores.max(1).values - scores.gather(1, found.long()[:, None])[:, 0]).max() < 1e-2)


def ridge() -> bool:
    x, y = draw(512, 64), draw(512)
    wanted = torch.linalg.solve(x.double().T @ x.double() + torch.eye(64).double(), x.double().T @ y.double())
    return near(of("primitives.ridge.cutedsl.ridge", "cutedsl_ridge_regression")(x, y), wanted.cpu(), 1e-2)


def covariance(across: bool) -> bool:
    x = draw(128, 64)
    name = "cutedsl_gram_gemm_simt" if across else "cutedsl_cov_gemm_simt"
    got, half = of("primitives.truncated_svd.cutedsl.svd", name)(x), x.bfloat16().double()
    wanted = half @ half.T if across else half.T @ half
    return near(got.triu(), wanted.triu(), 1e-2)


def perplexity() -> bool:
    d = draw(32, 32).abs() * 3
    d -= d.min(1, keepdim=True).values
    beta = of("primitives.tsne.cutedsl.tsne", "cutedsl_tsne_perplex_bisect")(d, 8.0).double()[:, None]
    p = torch.softmax((-d.double() * beta).fill_diagonal_(float("-inf")), 1)
    return bool(((-p * p.clamp_min(1e-300).log()).sum(1).exp() - 8.0).abs().max() < 1e-2)


def umap_distances() -> bool:
    d = draw(64, 15).abs().sort(1).values
    sigma, rho = of("primitives.umap.cutedsl.umap", "cutedsl_smooth_knn_dist")(d)
    total = torch.exp(-(d.double() - rho.double()[:, None]).clamp_min(0) / sigma.double()[:, None]).sum(1)
    return bool((total - torch.log2(torch.tensor(15.0))).abs().max() < 1e-2)


def edges() -> bool:
    squares, core = draw(64, 8).square(), draw(64).abs()
    places = torch.randint(0, 64, (64, 8), device="cuda", dtype=torch.int32)
    out = of("primitives.hdbscan.cutedsl.mrd_edges", "cutedsl_fused_mrd_edges")(squares, places, core)
    return near(out, torch.maximum(squares.sqrt(), torch.maximum(core[:, None], core[places.long()])), 1e-6)


def spectral(name: str) -> bool:
    q, e = draw(300, 16), draw(16, 16)
    function = of("primitives.spectral_clustering.cutedsl.spectral", name)
    out = function(q) if name == "cutedsl_row_l2_normalize" else function(q, e)
    wanted = q.double() if name == "cutedsl_row_l2_normalize" else q.double() @ e.double()
    return near(out, wanted if name == "cutedsl_qmul_eigvecs" else wanted / wanted.norm(dim=1, keepdim=True), 1e-5)


def radius_search() -> bool:
    x = torch.rand(200, 2, device="cuda")
    counts, _ = of("primitives.dbscan.cutedsl.grid_radius", "cutedsl_grid_radius_search")(x, 0.2, 128)
    return torch.equal(counts.long(), (torch.cdist(x, x) <= 0.2).sum(1))


FORMS: dict[str, Callable[[], bool]] = {
    "GEMM, bf16": bf16_gemm,
    "GEMM, fp32 as 2 x bf16": bf16_in_three,
    "GEMM, fp32 as 3 x fp16": fp16_in_nine,
    "GEMM, fp32 as 3 x fp16, ragged": lambda: fp16_in_nine(True),
    "GEMM, int8": int8_gemm,
    "k-means": lambda: kmeans(False),
    "k-means, warp-specialised": lambda: kmeans(True),
    "nearest neighbours": knn,
    "nearest neighbours, -races": lambda: knn("all,-races"),
    "standard scaler": scaler,
    "naive Bayes": naive_bayes,
    "ridge regression": ridge,
    "covariance": lambda: covariance(False),
    "Gram matrix": lambda: covariance(True),
    "t-SNE, perplexity": perplexity,
    "UMAP, distances": umap_distances,
    "HDBSCAN, edges": edges,
    "DBSCAN, radius search": radius_search,
    "spectral, product": lambda: spectral("cutedsl_qmul_eigvecs"),
    "spectral, product with unit rows": lambda: spectral("cutedsl_qmul_rownorm"),
    "spectral, unit rows": lambda: spectral("cutedsl_row_l2_normalize"),
}

caught: list[str] = []


def note(frame: Any, event: str, given: Any) -> Any:
    """The first error of ours that a frame of flashlib meets, for forms that catch it."""
    if event == "exception" and issubclass(given[0], TilewrightError) and not caught:
        caught.append(f"{given[0].__name__}: {' '.join(str(given[1]).split())[:200]}")
    return note


torch.manual_seed(0)
for name, form in FORMS.items():
    caught.clear()
    sys.settrace(lambda frame, *_: note if "flashlib" in frame.f_code.co_filename else None)
    try:
        found = "right" if form() else "WRONG"
    except Exception as error:
        found = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    sys.settrace(None)
    fell = f"; without the kernel: {caught[0]}" if caught and found in ("right", "WRONG") else ""
    print(f"{name}: {found}{fell}", flush=True)
