"""What the programs become for sm_90a: no spills, and accumulators that stay in flight from one k tile to the next."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewright import compat

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    compat.install(cpu=True)
    import programs

    yield programs
    compat.uninstall()
    sys.modules.pop("programs", None)


@pytest.mark.parametrize("at", range(9))
def test_products(bench: Any, at: int) -> None:
    assert len(bench.WAYS) == 9
    way = bench.WAYS[at]
    artifact = bench.artifact(way)
    assert artifact.spills == artifact.stack == 0 and artifact.warnings == [], way
    text = artifact.ptx
    if way.dtype == "f32":
        assert text.count("fma.rn.f32") >= 8 * 64  # 8 x 8 numbers of a thread, 8 k elements
    elif way.name.startswith("mma.sync"):
        assert (
            text.count("mma.sync.aligned.m16n8k16.row.col.f32.") >= 2 * 4 * 8
        )  # k blocks of 64 x 64 numbers of a warp
    else:
        columns, cluster = re.search(r"x(\d+) (\dx\d)$", way.name).groups()
        assert text.count(f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.") >= 8
        assert ("bytes.multicast::cluster" in text) == (cluster != "1x1")


def test_the_table_sets_the_same_tiles_side_by_side(bench: Any) -> None:
    record = {"mnk": [4096] * 3, "kernel": "cooperative 128x256 2x1", "dtype": "f16", "us": 200.0, "cublas_us": 192.3}
    record |= {"cutedsl_us": bench.PEER["128x256 2x1"][4096], "cutedsl_cublas_us": bench.CUBLAS[4096]}
    expected = ("4096", "cooperative 128x256 2x1 f16", "200.0", "0.962", "199.0", "0.966", "0.995")
    assert bench.rows_of([record]) == [expected]
    assert sum(8192 in way.peer for way in bench.WAYS) == 6


def attention_arguments(program: Any, d: int) -> tuple[Any, ...]:
    import torch

    from tilewright.cute.runtime import from_dlpack, make_fake_stream

    data = from_dlpack(torch.zeros(1, 128, 1, d, dtype=torch.float16), assumed_align=16).iterator
    return (data, data, data, data, (1, 128, 128, 1, 1, d), None, None, None, 1.0, 1.0, make_fake_stream())


@pytest.mark.parametrize("d, columns", [(64, 128), (128, 128), (128, 64)])
def test_attention(bench: Any, d: int, columns: int) -> None:
    import tilewright as cutlass
    import tilewright.cuda
    from tilewright import cute

    program = bench.load("hopper_fmha")
    fmha = program.HopperFmhaForward(cutlass.Float32, cutlass.Float32, (128, columns, d), columns == 64)
    (kernel,) = cute.compile(fmha, *attention_arguments(program, d)).kernels
    artifact = tilewright.cuda.compile(kernel, "sm_90a")
    assert artifact.spills == 0 and artifact.warnings == []


@pytest.mark.parametrize("a, b", [("Float8E4M3FN", "Float8E4M3FN"), ("Int8", "Float16"), ("Float8E4M3FN", "BFloat16")])
def test_narrow_types(bench: Any, a: str, b: str) -> None:
    """Two sets of accumulators; A that is converted in registers while no product reads them."""
    import torch

    import tilewright as cutlass
    import tilewright.cuda
    from tilewright import cute
    from tilewright.cute.runtime import from_dlpack, make_fake_stream

    def operand(dtype: Any) -> Any:
        tensor = from_dlpack(torch.zeros(256, 256, dtype=dtype.torch_dtype), assumed_align=16)
        if tensor.element_type is not dtype:
            tensor.element_type = dtype
        return tensor.mark_layout_dynamic(leading_dim=1).mark_compact_shape_dynamic(mode=1, divisibility=16)

    operands = [operand(dtype) for dtype in (getattr(cutlass, a), getattr(cutlass, b), cutlass.Float32)]
    gemm = bench.load("hopper_narrow_gemm").NarrowGemm((128, 128), 1, 4)
    (kernel,) = cute.compile(gemm, *operands, make_fake_stream()).kernels
    artifact = tilewright.cuda.compile(kernel, "sm_90a")
    assert artifact.spills == 0 and artifact.warnings == []
    assert artifact.ptx.count("wgmma.mma_async.sync.aligned.m64n128k") >= 4
