"""What TMA programs compile to, without a GPU."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.hopper.test_tma import smem
from tests.hopper.tma_programs import Grouped, Multicast, Reduce, Through
from tilewright import cute, utils
from tilewright.cuda import compile as compile_cuda
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError


def kernel(program: Any, *arrays: np.ndarray) -> Any:
    views = [from_dlpack(x, assumed_align=16).mark_layout_dynamic() for x in arrays]
    return cute.compile(program, *views).kernels[0]


def compiled(program: Any, *arrays: np.ndarray) -> tuple[str, str]:
    artifact = compile_cuda(kernel(program, *arrays), "sm_90a")
    assert artifact.spills == 0
    return artifact.cuda, artifact.sass


def test_load_and_store() -> None:
    a = np.zeros((128, 256), np.float16)
    cuda, sass = compiled(Through((64, 128), smem("K", "SW128", "f16", (64, 128))), a, a.copy())
    assert cuda.count("tma_load_2d(&") == cuda.count("tma_store_2d(&") == 2  # the tile is two atoms wide
    assert len(re.findall(r"UTMALDG\.2D", sass)) == len(re.findall(r"UTMASTG\.2D", sass)) == 2
    assert "const __grid_constant__ tw::tensor_map load" in cuda


def test_multicast_prefetch_and_descriptor_prefetch() -> None:
    a, out = np.zeros((64, 64), np.float16), np.zeros((4, 2048), np.float16)
    cuda, sass = compiled(Multicast((32, 64), smem("K", "SW128", "f16", (32, 64)), 2), a, out)
    assert ".multicast::cluster" in cuda
    assert re.search(r"UTMALDG\.2D\.MULTICAST", sass)
    assert "UTMAPF.L2" in sass and "UTMACCTL.PF" in sass


@pytest.mark.parametrize("kind", ["ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"])
def test_reductions(kind: str) -> None:
    op = cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp[kind])
    _, sass = compiled(Reduce((8, 16), op), np.zeros((6, 16), np.uint32), np.zeros((5, 128), np.uint32))
    assert "UTMAREDG" in sass


@pytest.mark.parametrize("mode", list(utils.TensorMapUpdateMode), ids=lambda mode: mode.name)
def test_tensor_maps_changed_on_the_device(mode: utils.TensorMapUpdateMode) -> None:
    matrices = [from_dlpack(np.zeros((64, 64), np.float16)).mark_layout_dynamic(leading_dim=1) for _ in range(4)]
    space = cute.runtime.make_fake_compact_tensor(cute.Int64, (8, 16), stride_order=(1, 0), assumed_align=128)
    program = cute.compile(Grouped((16, 64), mode), matrices[:2], matrices[2:], space)
    artifact = compile_cuda(program.kernels[0], "sm_90a")
    where = "shared::cta" if mode is utils.TensorMapUpdateMode.SMEM else "global"
    for field in ("global_address", "global_dim", "global_stride"):
        assert f"tensormap.replace.tile.{field}.{where}.b1024" in artifact.cuda
    assert artifact.spills == 0


def test_older_gpus_have_no_tma() -> None:
    a = np.zeros((128, 256), np.float16)
    with pytest.raises(ConstraintError, match="needs sm_90"):
        compile_cuda(kernel(Through((64, 128), smem("K", "SW128", "f16", (64, 128))), a, a.copy()), "sm_80")
