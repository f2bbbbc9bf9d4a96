"""``tilewright show``: stages of a kernel; the compiler is a stand-in here."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass

import pytest


@dataclass
class Compiled:
    arch: str
    registers: int = 168
    spills: int = 12

    def __getattr__(self, stage: str) -> str:
        return f"// {stage} for {self.arch}"


@dataclass
class Entry:
    title: str

    def compile(self, arch: str = "sm_80") -> Compiled:
        return Compiled(arch)

    def printed(self, arch: str = "sm_80") -> dict[str, str]:
        return {stage: f"// {stage} for {arch}" for stage in ("ir", "cuda")}


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("tilewright.gemm")
    module.kernels = lambda: {"tensorop_f16": Entry("fp16 tensor cores"), "simt_f32": Entry("fp32 FMA")}
    monkeypatch.setitem(sys.modules, "tilewright.gemm", module)


def test_without_a_name_the_kernels_are_listed(command) -> None:
    out = command("show").out
    assert "tensorop_f16" in out and "fp32 FMA" in out


@pytest.mark.parametrize("stage", ["ir", "cuda", "ptx", "sass"])
def test_stages(command, stage: str) -> None:
    done = command("show", "simt_f32", f"--{stage}", "--arch", "sm_90a")
    assert (done.code, done.out) == (0, f"// {stage} for sm_90a\n")


def test_cuda_is_shown_unless_something_else_is_asked_for(command) -> None:
    assert command("show", "simt_f32").out == "// cuda for sm_80\n"
    assert command("show", "simt_f32", "--ir", "--ptx").out == "// ir for sm_80\n// ptx for sm_80\n"


def test_resources(command) -> None:
    out = command("show", "simt_f32", "--resources").out
    assert "168" in out and "12" in out and "cuda" not in out


def test_an_unknown_kernel(command) -> None:
    assert "did you mean simt_f32?" in command("show", "simt_f23").complaint
    assert "the kernels are tensorop_f16, simt_f32" in command("show", "zzz").complaint
