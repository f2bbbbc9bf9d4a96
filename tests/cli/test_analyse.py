"""``tilewright analyse``: names, options and what is printed; the report itself is a stand-in's or made up."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from typing import Any

import pytest

from tilewright.cuda import Artifact


@dataclass
class Entry:
    title: str
    config: Any
    arch: str = "sm_80"


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel that spills and is already compiled, of 128 threads."""
    log = "8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\nUsed 244 registers\n"
    made = Artifact("tiles", "sm_90a", "", b"", log, 64 << 10)
    gemm: Any = types.ModuleType("tilewright.gemm")
    gemm.kernels = lambda: {"tensorop_f16": Entry("fp16 tensor cores", made)}
    gemm.stage = lambda config: config
    monkeypatch.setitem(sys.modules, "tilewright.gemm", gemm)
    import tilewright.analysis.kernel as module

    real = module.analyse_kernel
    monkeypatch.setattr(
        "tilewright.analysis.analyse_kernel", lambda kernel, arch, **more: real(kernel, arch, threads=128, **more)
    )


def test_without_a_name_the_kernels_are_listed(command: Any) -> None:
    assert "fp16 tensor cores" in command("analyse").out


def test_resources_occupancy_and_spills(command: Any) -> None:
    out = command("analyse", "tensorop_f16").out
    assert "tensorop_f16 for sm_90a" in out and "244" in out
    assert "2 blocks on a multiprocessor of sm_90a" in out and "limited by registers" in out
    assert "28 bytes spilled: fewer values" in out and "wave" not in out


def test_waves_of_a_grid(command: Any) -> None:
    assert (
        "1 wave of 20 for 15 blocks: 75% full, on 10 multiprocessors"
        in command("analyse", "tensorop_f16", "--grid", 15, "--sms", 10).out
    )


def test_an_unknown_kernel(command: Any) -> None:
    assert "did you mean tensorop_f16?" in command("analyse", "tensorop_f61").complaint
