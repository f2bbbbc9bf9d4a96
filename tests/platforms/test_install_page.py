"""docs/install.md is true: its program, its table of GPUs, its extras and versions of CUDA."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tilewright.cuda import toolchain
from tilewright.ir.target import MULTIPROCESSORS, architecture

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_program_prints_what_it_says(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.splitlines() == re.findall(r"# (.*)$", program, re.MULTILINE)


def test_the_table_of_gpus() -> None:
    rows = re.findall(r"^\| (sm_[^|]*) \| ([^|]*) \| (\d+) KB \|", PAGE, re.MULTILINE)
    listed = {}
    for names, gpus, kib in rows:
        for name in names.split(", "):
            listed[architecture(name).capability] = (int(kib), MULTIPROCESSORS[architecture(name).capability].device)
            assert listed[architecture(name).capability][1].removesuffix(" SXM") in gpus
    known = {n: (unit.smem_kib, unit.device) for n, unit in MULTIPROCESSORS.items() if n >= 80 and n != 101}
    assert listed == known


def test_the_first_cuda_of_new_gpus() -> None:
    for names, major, minor in re.findall(r"((?:sm_\d+(?: and )?)+) from (\d+)\.(\d+)", PAGE):
        for name in names.split(" and "):
            assert toolchain.first_cuda(architecture(name)) == (int(major), int(minor))


def test_the_extras() -> None:
    extras = PROJECT["optional-dependencies"]
    named = set(re.findall(r"pip install '\.\[(\w+)\]'", PAGE))
    assert {"cuda", "cuda12"} <= named <= extras.keys()
    assert "nvidia-cuda-nvrtc-cu12>=" + ".".join(map(str, toolchain.LEAST)) in extras["cuda12"]
    assert PROJECT["requires-python"] == ">=3.11" and "Python 3.11 to 3.14" in PAGE
