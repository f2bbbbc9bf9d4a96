"""``tilewright run``: a program written for the CuTe DSL, as it is."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tilewright import compat
from tilewright.compat import children
from tilewright.compat.notebook import has_gpu
from tilewright.compat.script import run_script
from tilewright.ir.target import architecture, assumed_architecture

ARCH = "CUTE_DSL_ARCH"


def run(script: str, arguments: list[str], cpu: bool, replace: bool, arch: str = "") -> int:
    """Run ``script`` with ``import cutlass`` served; the exit code is the script's own. ``arch``: the architecture of
    the GPU that it sees with ``cpu``."""
    with _seen(arch or (_written_for(script) if cpu else "")):
        return _run(script, arguments, cpu, replace)


@contextmanager
def _seen(arch: str) -> Iterator[None]:
    """Inside, programs and their children see a GPU of this architecture, if one is given."""
    before = os.environ.get(ARCH)
    if arch:
        os.environ[ARCH] = str(architecture(arch, bare=True))
    try:
        assumed_architecture()
        yield
    finally:
        os.environ.pop(ARCH, None)
        if before is not None:
            os.environ[ARCH] = before


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
        if cpu and (said := compat.served()):
            seen = f"; it saw a {assumed_architecture().multiprocessor.device}" if os.environ.get(ARCH) else ""
            print(f"tilewright: no GPU was used: {said}{seen}", file=sys.stderr)
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
