"""Running a user's script as the main program."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tilewright.errors import ArgumentError


@contextmanager
def _as_main(script: Path, arguments: list[str]) -> Iterator[None]:
    before, path = sys.argv, sys.path[:]
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before, path


def run_script(script: Path, arguments: list[str]) -> None:
    """Run ``script`` with ``arguments``, as ``python script.py arguments`` does; its ``sys.exit(0)`` is its end."""
    if not script.is_file():
        raise ArgumentError(f"{script} is no file: give the Python script that launches the kernels")
    with _as_main(script, arguments):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
