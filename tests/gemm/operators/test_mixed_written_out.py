"""Many rows of 8-bit floats on sm_90: the weight is written out as Float8E4M3FN, the sums of its groups are scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.gemm.operators.test_mixed_hopper import DEVICES, drawn, on
from tilewright import Int4, sim
from tilewright.errors import ConstraintError
from tilewright.gemm import mixed_matmul, prepare_weight
from tilewright.gemm.choice.registry import KERNELS
from tilewright.gemm.epilogue.scales import ColumnBlockScales, fits_block_scales
from tilewright.gemm.family import compile as staged
from tilewright.gemm.kernel.decomposition_check import check_block_scales
from tilewright.gemm.operators import mixed
from tilewright.gemm.operators.mixed import MixedProduct
from tilewright.lang.arguments.dlpack import from_dlpack

KINDS = [
    ("int4", "float8_e4m3fn", "bfloat16"),
    ("zeros", "float8_e5m2", "float16"),
    ("e2m1", "float8_e4m3fn", "float32"),
    ("e4m3", "float8_e5m2", "bfloat16"),
]


def by(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the methods that multiply, as they are called."""
    called: list[str] = []

    def noted(name: str, method: Any) -> Any:
        def run(*args: Any, **more: Any) -> Any:
            called.append(name)
            return method(*args, **more)

        return run

    for name in ("with_narrow_weight_written_out", "by_wgmma", "of_16_bits"):
        monkeypatch.setattr(MixedProduct, name, noted(name, getattr(MixedProduct, name)))
    return called


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("kind", "name", "scale_dtype"), KINDS, ids=str)
def test_exact(kind: str, name: str, scale_dtype: str, device: str) -> None:
    """Ragged rows and columns, several k tiles and tiles for each block, and all checks; on a GPU also with the memory
    of the product before, whose numbers were others."""
    torch = pytest.importorskip("torch")
    for m, n, k in ((70, 208, 384),) if device == "cpu" else ((1000, 2064, 2048), (1100, 264, 512), (8200, 1032, 256)):
        a, given, exact = drawn(kind, (m, n, k), 128, np.float32)
        prepared = prepare_weight(**on(device, given, scale_dtype))
        out = torch.full((m, n), float("nan"), device=device)
        call = MixedProduct.of(torch.from_numpy(a).to(device, getattr(torch, name)), prepared, None, out, None)
        with sim.options(check="all", sms=2):
            assert call.with_narrow_weight_written_out()
        np.testing.assert_array_equal(out.cpu().numpy(), exact)


@pytest.mark.parametrize("device", DEVICES)
def test_repeated_with_bias_scales_and_activation(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In columns of a larger matrix; other weights, scales and numbers of rows by the launches of the first call."""
    torch = pytest.importorskip("torch")
    monkeypatch.setitem(mixed.MOST_NARROWED, Int4, 64)
    called = by(monkeypatch)
    for i, m in enumerate((66, 66, 72, 66, 65)):
        a, given, exact = drawn("int4", (m, 128, 256), 128, np.float32)
        parts = on(device, given, "bfloat16")
        parts["scales"] = parts["scales"] * 2.0**i
        bias, scale_a = (
            torch.arange(128, device=device).bfloat16() - i,
            2.0 ** torch.arange(m, device=device).float() / 8,
        )
        scale_a = scale_a.clamp(max=16)
        out = torch.full((m, 192), float("nan"), device=device)
        mixed_matmul(
            torch.from_numpy(a).to(device, torch.float8_e4m3fn),
            prepare_weight(**parts),
            bias,
            scale_a=scale_a,
            out=out[:, 64:],
            activation="relu",
        )
        wanted = exact * 2.0**i * scale_a.double().cpu().numpy()[:, None] + bias.float().cpu().numpy()
        np.testing.assert_array_equal(out[:, 64:].cpu().numpy(), np.maximum(wanted, 0))
        assert out[:, :64].isnan().all()
    assert set(called) == {"with_narrow_weight_written_out"} and len(called) < 5


def test_what_is_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter groups than a k tile, weights that the loop converts beside the tensor cores, few rows; and a result that
    TMA cannot write."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(mixed, "MOST_NARROWED", {Int4: 64})
    called = by(monkeypatch)
    for kind, group, m, columns, wanted in (
        ("int4", 128, 72, 64, ["with_narrow_weight_written_out"]),
        ("int4", 128, 64, 64, ["by_wgmma"]),
        ("int4", 64, 72, 64, ["by_wgmma"]),
        ("e4m3", 128, 72, 64, ["by_wgmma"]),
        ("int4", 128, 72, 65, ["with_narrow_weight_written_out", "by_wgmma", "of_16_bits", "by_wgmma"]),
    ):
        a, given, exact = drawn(kind, (m, 64, 128), group, np.float32)
        out = torch.zeros((m, columns))
        rows, prepared = torch.from_numpy(a).to(torch.float8_e4m3fn), prepare_weight(**on("cpu", given, "bfloat16"))
        mixed_matmul(rows, prepared, out=out[:, :64])
        np.testing.assert_array_equal(out[:, :64].numpy(), exact)
        assert called == wanted
        called.clear()


def test_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They compute the transposed product, whose rows have the scales; the largest ones have no spills."""
    entry = KERNELS["hopper_e4m3_promoted"].for_block_scales(None, 1)
    assert entry is not None and all(size.transposed and size.promote == 1 for size in entry.sizes)
    assert not any(fits_block_scales(size) or size.part[0] > 64 for size in entry.sizes)
    assert not any(fits_block_scales(size, None, 1) for size in KERNELS["hopper_e4m3"].sizes)
    scales = ColumnBlockScales(from_dlpack(np.zeros((2, 4), np.float16).T).mark_layout_dynamic(leading_dim=0))
    plain = KERNELS["hopper_e4m3_promoted"].for_block_scales(1, 128)
    assert plain is not None
    with pytest.raises(ConstraintError, match="scales of blocks are applied to the sums of 128 elements of K"):
        check_block_scales(plain.config, scales)
    pytest.importorskip("tilewright.cuda")
    monkeypatch.setattr(staged, "LinearCombination", lambda *numbers: scales)
    for tile in ((192, 128), (128, 192)):
        size = next(size for size in entry.sizes if size.tile[:2] == tile)
        made = staged.cross_compile(size, "sm_90a")
        assert made.spills == 0 and not made.warnings
