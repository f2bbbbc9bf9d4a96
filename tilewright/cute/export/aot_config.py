"""The flags with which a compiler builds a program with exported functions, for use in makefiles:

    cc main.c $(python -m tilewright.cute.export.aot_config --cflags --libs)

``--includedir`` is the folder of ``CuteDSLRuntime.h`` and ``--cflags`` its option; ``--libs`` are the system's
libraries. There is no library of this package to link: ``--libdir`` is that folder too, and ``--ldflags`` is empty.
With ``--target`` nothing changes, as exported functions are C source; ``--with-tvm-ffi`` adds nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "export" / "include"


def main(arguments: list[str] | None = None) -> int:
    """Print what is asked for, a line each."""
    answers = {
        "includedir": (str(INCLUDE), "the folder of CuteDSLRuntime.h"),
        "cflags": (f"-I{INCLUDE}", "that folder as a compiler's option"),
        "libdir": (str(INCLUDE), "the same folder: there is no library to link"),
        "ldflags": ("", "nothing"),
        "libs": ("" if sys.platform == "win32" else "-ldl -lm", "the system's libraries"),
    }
    parser = argparse.ArgumentParser(prog="aot_config", description="Options for programs with exported functions.")
    for name, (_, text) in answers.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument("--target", default="", help="a triple; exported functions are C source, for any of them")
    parser.add_argument("--with-tvm-ffi", action="store_true", help="adds nothing")
    options = vars(parser.parse_args(arguments))
    if not any(options[name] for name in answers):
        parser.error("say what to print: " + ", ".join(f"--{name}" for name in answers))
    for name, (answer, _) in answers.items():
        if options[name]:
            print(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
