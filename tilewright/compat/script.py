"""Running a script the way ``python script.py`` does, with its imports of ``cutlass`` served."""

from __future__ import annotations

import os
import sys
import traceback
from types import ModuleType, TracebackType

from tilewright.errors import TilewrightError

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.join(os.path.dirname(_HERE), "")


def run_script(path: str, arguments: list[str]) -> int:
    """Run the file ``path`` as the main program with ``arguments``; gives the exit code that ``python`` would.

    A script that is missing, or raises, ends with Python's own message on standard error.
    """
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(
            f"tilewright: can't open file {os.path.abspath(path)!r}: [Errno {error.errno}] {error.strerror}",
            file=sys.stderr,
        )
        return 2
    main = ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None)
    before = sys.modules["__main__"], sys.argv, sys.path[:]
    sys.modules["__main__"], sys.argv = main, [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as stop:
        return _exit_code(stop)
    except KeyboardInterrupt:
        _print_own(*sys.exc_info())
        return 130
    except BaseException:
        _print_own(*sys.exc_info())
        return 1
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = before
        sys.stdout.flush()
    return 0


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(stop.code, file=sys.stderr)  # as the interpreter does
    return 1


def _print_own(kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    """The traceback of the script: from its first line on, without the frames that run it. An error of this package
    ends at the last line that is not ours."""
    while trace is not None and os.path.dirname(trace.tb_frame.f_code.co_filename) == _HERE:
        trace = trace.tb_next
    if isinstance(error, TilewrightError):
        _end_outside(trace)
    sys.stdout.flush()
    traceback.print_exception(kind, error, trace)


def _end_outside(trace: TracebackType | None) -> None:
    """Take the frames of this package off the end of ``trace``."""
    last = None
    step = trace
    while step is not None:
        last = step if not step.tb_frame.f_code.co_filename.startswith(_PACKAGE) else last
        step = step.tb_next
    if last is not None:
        last.tb_next = None
