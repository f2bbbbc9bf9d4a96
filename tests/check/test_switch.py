"""How checks are turned on and off: by default, for a process, a block, a compiled function, a GEMM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.check.pairs import numbers
from tests.cli.test_check import SCRIPT
from tilewright import cute, sim
from tilewright.cuda.machine import CudaMachine
from tilewright.errors import ArgumentError, MachineError, SimulationError
from tilewright.gemm import gemm

X, Y = numbers(64), numbers(64)


@cute.kernel
def reverse(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 64), cute.make_layout(64))
    s[t] = x[t]
    y[t] = s[63 - t]


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor):
    reverse(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def test_a_missing_barrier_is_reported_by_default() -> None:
    with pytest.raises(SimulationError, match=r"data race.*(?s:.*)s\[t\] = x\[t\]"):
        run(X, Y)


@pytest.mark.parametrize("how", ["keyword", "text", "type"])
def test_a_compiled_function_has_its_own(how: str) -> None:
    def compiled(check: str):
        if how == "keyword":
            return cute.compile(run, X, Y, check=check)
        if how == "text":
            return cute.compile(run, X, Y, options=f"--check {check}")
        from tilewright.lang.launch.options import Check

        return cute.compile[Check(check)](run, X, Y)

    compiled("none")(X, Y)
    with sim.options(check="none"), pytest.raises(SimulationError, match="data race"):
        compiled("races")(X, Y)
    with pytest.raises(ArgumentError, match="did you mean 'races'"):
        compiled("race")(X, Y)


def test_the_environment(tmp_path: Path) -> None:
    script = tmp_path / "reverse.py"
    script.write_text(SCRIPT)
    for check, code in (("races", 1), ("all,-races,-uninitialised", 0)):
        environment = os.environ | {"TILEWRIGHT_SIM_CHECK": check}
        done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert ("data race" in done.stderr) == (code == 1)


def test_a_gemm_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("tilewright.sim.machine.observers", lambda program, config, check: asked.append(check) or [])
    a = np.ones((64, 64), np.float16)
    gemm(a, a, machine="cpu", check="all")
    gemm(a, a, machine="cpu")
    assert asked == ["all", "default"]


def test_checks_on_a_gpu_are_refused() -> None:
    with pytest.raises(MachineError, match="checked in the simulator"):
        CudaMachine.checking(None, "all")
