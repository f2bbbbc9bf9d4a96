"""Programs in the style of the CuTe DSL's documentation run as they are: ``tilewright run --cpu``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tilewright import cuda
from tilewright.cli import main
from tilewright.sim.machine import machine

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
COMPILED = {
    "hopper_gated_mlp": ("sm_90a", "wgmma.mma_async.sync.aligned.m64n128k16.f32"),
    "hopper_im2col_convolution": ("sm_90a", "cp.async.bulk.tensor.4d.shared::cluster.global.im2col"),
    "hopper_fp8_promotion": ("sm_90a", "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"),
    "varlen_attention": ("sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    "mixture_of_experts": ("sm_80", "cp.async.cg.shared.global"),
    "blackwell_task_scheduling": ("sm_100a", "tcgen05.mma.cta_group::1.kind::f16"),
    "blackwell_fmha": ("sm_100a", "tcgen05.mma.cta_group::1.kind::f16"),
    "blackwell_mixed_input_gemm": ("sm_100a", "tcgen05.mma.cta_group::1.kind::f16"),
    "blackwell_scaled_gemm": ("sm_100a", "d.global.shared::cta.bulk_group"),
    "blackwell_grouped_gemm": ("sm_100a", "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group"),
    "blackwell_geforce_block_scaled_gemm": ("sm_120a", "block_scale.scale_vec"),
    "blackwell_paged_attention": ("sm_100a", "tcgen05.mma.cta_group::2.kind::f16 [d], [a]"),
}
"""Programs whose kernels are compiled, too: for what, and an instruction of each. test_programs_compiled has more."""


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The kernels that the simulator is given."""
    found: list[Any] = []
    load = type(machine()).load

    def noted(self: Any, function: Any, *rest: Any) -> Any:
        if not any(function is other for other in found):
            found.append(function)
        return load(self, function, *rest)

    monkeypatch.setattr(type(machine()), "load", noted)
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_runs_without_a_gpu(program: Path, capsys: pytest.CaptureFixture[str], launched: list[Any]) -> None:
    """And what it launches compiles without spills."""
    pytest.importorskip("torch")
    code = main(["run", "--cpu", str(program)])
    shown = capsys.readouterr()
    assert code == 0, shown.out + shown.err
    assert shown.out.rstrip().endswith("PASS")
    assert "no GPU was used" in shown.err and "ran in the simulator" in shown.err
    architecture, instruction = COMPILED.get(program.stem, ("", ""))
    for kernel in launched if architecture else ():
        artifact = cuda.compile(kernel, architecture)
        assert artifact.spills == 0 and artifact.warnings == []
        # The operands of tcgen05.mma by their names in PTX's documentation, not by their registers.
        text = re.sub(r"(tcgen05\.mma\S+)\s+\[[^]]*\], \[", r"\1 [d], [a]", artifact.ptx)
        assert instruction in text, text
    assert launched


@pytest.mark.gpu
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_runs_on_a_gpu(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if "hopper" in program.stem or "grouped" in program.stem:
        if torch.cuda.get_device_capability()[0] != 9:
            pytest.skip("needs Hopper")
    if "blackwell" in program.stem and torch.cuda.get_device_capability()[0] != 10:
        pytest.skip("needs a GPU with tcgen05")
    code = main(["run", str(program)])
    shown = capsys.readouterr()
    assert code == 0, shown.out + shown.err
    assert shown.out.rstrip().endswith("PASS") and "simulator" not in shown.err
