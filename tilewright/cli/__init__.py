"""The command line: ``tilewright run``, ``check``, ``mutate``, ``gemm``, ``tune``, ``streamk``, ``show``, ``analyse``,
``layout``, ``atom``, ``stubs`` and ``demo``.

A mistake of the user's ends in one line on standard error and exit code 2; a wrong result or a failing machine in 1.
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
        from tilewright.cli.expression import pointed

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
