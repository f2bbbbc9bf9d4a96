"""Programs of documentation pages, run as a user's file is."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any


def run_program(text: str, folder: Path, name: str = "program", /, **more: Any) -> tuple[str, dict[str, Any]]:
    """What the program prints, and its names, to which ``more`` are added before.

    It is run in ``folder``, from a file, because staging reads the source of kernels.
    """
    source = folder / f"{name}.py"
    source.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__name__": name, "__file__": str(source), **more}
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(text, str(source), "exec", dont_inherit=True), names)
    return printed.getvalue(), names
