"""Running a user's script as the main program."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tilewright.errors import ArgumentError, TilewrightError


@contextmanager
def _as_main(script: Path, arguments: list[str]) -> Iterator[None]:
    before, path = sys.argv, sys.path[:]
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before, path


@contextmanager
def own_traceback(script: Path) -> Iterator[None]:
    """What ``script`` raises by itself ends the command with exit code 1 and Python's message, from the script's first
    line on: the frames of the command line, and of typer, say nothing about the script. Errors of Tilewright pass."""
    if not script.is_file():
        raise ArgumentError(f"{script} is not a file: give the Python script that launches the kernels")
    try:
        yield
    except (TilewrightError, MemoryError, RecursionError):
        raise
    except Exception as error:
        frame = error.__traceback__
        while frame is not None and frame.tb_frame.f_code.co_filename != str(script):
            frame = frame.tb_next
        sys.stdout.flush()
        traceback.print_exception(type(error), error, frame)
        raise SystemExit(1) from None


def run_script(script: Path, arguments: list[str]) -> None:
    """Run ``script`` with ``arguments``, as ``python script.py arguments`` does; its ``sys.exit(0)`` is its end."""
    with _as_main(script, arguments):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
