"""``tilewright run``: a program written for the CuTe DSL, as it is."""

from __future__ import annotations

import sys
from pathlib import Path

from tilewright import compat
from tilewright.compat import children
from tilewright.compat.notebook import has_gpu
from tilewright.compat.script import run_script


def run(script: str, arguments: list[str], cpu: bool, replace: bool) -> int:
    """Run ``script`` with ``import cutlass`` served; the exit code is the script's own."""
    compat.install(cpu=cpu, replace=replace)
    try:
        with children.served(cpu, replace):
            code = run_script(script, arguments)
        if cpu and (said := compat.served()):
            print(f"tilewright: no GPU was used: {said}", file=sys.stderr)
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
