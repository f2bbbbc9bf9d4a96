"""The command line: ``tilewright run``, ``check``, ``mutate``, ``gemm``, ``product``, ``tune``, ``streamk``, ``show``,
``analyse``, ``layout``, ``atom``, ``explore``, ``stubs`` and ``demo``.

``app.py`` declares the commands and their options; each command is the function ``run`` of the module of its name,
imported when it is called. ``output.py`` and ``report.py`` print, ``drawing.py`` writes pictures, ``scripts.py``
runs users' programs. Start with ``app.py`` and ``gemm.py``.

Exit codes: 2 and one line on standard error for a mistake of the user; 1 for a wrong result, a finding or a failing
machine; 130 when interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tilewright.errors import CompileError, ParseError, SimulationError, StagingError, TilewrightError, VerifyError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit code of the process."""
    import typer

    from tilewright.cli.app import app
    from tilewright.cli.output import print_anything

    print_anything()
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]  # typer shows this class only through its children
    try:
        code = app(args=argv, prog_name="tilewright", standalone_mode=False)
    except ParseError as error:
        from tilewright.explorer.expression import pointed

        print(f"tilewright: {pointed(error)}", file=sys.stderr)
        return 2
    except (SimulationError, CompileError, StagingError, VerifyError) as error:
        print(f"tilewright: {error}", file=sys.stderr)  # a finding of the machine: its text may have many lines
        return 1
    except TilewrightError as error:
        return _complain(str(error))
    except usage_error as error:
        message = getattr(error, "format_message", error.__str__)()
        if not message:  # `tilewright` alone: its help is out already
            return 2
        path = getattr(getattr(error, "ctx", None), "command_path", "tilewright")
        return _complain(f"{message} (see: {path} --help)")
    except (MemoryError, RecursionError) as error:
        return _complain(f"this is too large for this computer ({type(error).__name__})")
    except (KeyboardInterrupt, typer.Abort):
        print("tilewright: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output has closed it: nothing more can be reported
        return 1
    return code if isinstance(code, int) else 0


def _complain(message: str) -> int:
    print("tilewright: " + " ".join(message.split()), file=sys.stderr)
    return 2
