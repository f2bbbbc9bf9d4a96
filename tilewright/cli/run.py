"""``tilewright run``: a program written for the CuTe DSL, as it is."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tilewright import compat
from tilewright.compat import children
from tilewright.compat.notebook import has_gpu
from tilewright.compat.script import run_script
from tilewright.ir.target import SPECIFIC, Architecture, architecture, assumed_architecture

ARCH = "CUTE_DSL_ARCH"
SIMULATED = "TILEWRIGHT_SIM_ARCH"
"""What the simulator of a child process reads: the architecture that kernels are meant for."""


def run(script: str, arguments: list[str], cpu: bool, replace: bool, arch: str = "") -> int:
    """Run ``script`` with ``import cutlass`` served; the exit code is the script's own. ``arch``: the architecture of
    the GPU that it sees with ``cpu``; instructions that this GPU lacks are then errors."""
    with ExitStack() as stack:
        stack.enter_context(_seen(arch or (_written_for(script) if cpu else "")))
        if arch and cpu:
            stack.enter_context(_simulated(architecture(arch, bare=True)))
        return _run(script, arguments, cpu, replace)


@contextmanager
def _seen(arch: str) -> Iterator[None]:
    """Inside, programs and their children see a GPU of this architecture, if one is given."""
    with _variable(ARCH, str(architecture(arch, bare=True)) if arch else os.environ.get(ARCH)):
        assumed_architecture()
        yield


@contextmanager
def _simulated(arch: Architecture) -> Iterator[None]:
    """Inside, the simulator refuses instructions that this GPU lacks, in children, too. A GPU has the features of its
    own chip: sm_90 stands for sm_90a here."""
    from tilewright import sim

    name = str(arch) if arch.suffix or arch.capability not in SPECIFIC else f"{arch}a"
    with _variable(SIMULATED, name), sim.options(arch=name):
        yield


@contextmanager
def _variable(name: str, value: str | None) -> Iterator[None]:
    """Inside, the environment has this value; None: it does not have the variable."""
    before = os.environ.get(name)
    try:
        _set_variable(name, value)
        yield
    finally:
        _set_variable(name, before)


def _set_variable(name: str, value: str | None) -> None:
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value


def _written_for(script: str) -> str:
    """The architecture of a script that names instructions of Blackwell and no wgmma; else none."""
    if os.environ.get(ARCH) or not os.path.isfile(script):
        return ""
    text = _text(script)
    if re.search(r"\bwarpgroup\.|import .*\bwarpgroup\b", text):
        return ""
    if re.search(r"tcgen05|blackwell_helpers|utils\.sm100", text):
        return "sm_103a" if "SM103" in text else "sm_100a"
    return "sm_120a" if re.search(r"sm_?120", text) else ""


def _run(script: str, arguments: list[str], cpu: bool, replace: bool) -> int:
    compat.install(cpu=cpu, replace=replace)
    try:
        with children.served(cpu, replace):
            code = run_script(script, arguments)
        if cpu and (notice := compat.served()):
            seen = f"; it saw a {assumed_architecture().multiprocessor.device}" if os.environ.get(ARCH) else ""
            print(f"tilewright: no GPU was used: {notice}{seen}", file=sys.stderr)
        if code == 1 and not cpu and "cuda" in _text(script) and not has_gpu():
            print(
                'tilewright: there is no GPU here; `tilewright run --cpu` lets the CPU serve programs that say "cuda"',
                file=sys.stderr,
            )
    finally:
        compat.uninstall()
    return code


def _text(script: str) -> str:
    return Path(script).read_text(encoding="utf-8", errors="replace")
