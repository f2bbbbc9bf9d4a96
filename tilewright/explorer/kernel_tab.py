"""The tab of kernels: Python, IR and CUDA C++ side by side, staged in the browser."""

from __future__ import annotations

import re
import tempfile
import traceback
from pathlib import Path
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.explorer.answer import Answer, Field, FieldError, Form, SourceLine, Tab
from tilewright.ir.core import Function, print_function

PROGRAMS = Path(__file__).parent / "programs"
OWN = "your own"
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")


def kernel(form: Form) -> Answer:
    """The kernels that the program compiles, line by line; a mistake is a FieldError that names its line."""
    from tilewright.cuda import emit

    text = form["program"]
    with tempfile.TemporaryDirectory(prefix="tilewright_") as folder:
        file = Path(folder) / "kernel.py"
        file.write_text(text, encoding="utf-8")
        done = Answer(sources=[("Python", [SourceLine(line, n) for n, line in enumerate(text.splitlines(), 1)])])
        try:
            functions = _compiled(text, file)
            for function in functions:
                done.sources.append((f"IR of {function.name}", _ir(function, file)))
                source = emit(function, form["arch"])
                origins = [0 if place is None or place.file != str(file) else place.line for place in source.origins]
                lines = source.text.splitlines()
                done.sources.append((f"CUDA C++ of {function.name}", [*map(SourceLine, lines, origins)]))
        except Exception as error:  # a program may raise anything
            raise _mistake(error, file) from error
    if not functions:
        raise FieldError("program", "the program compiles no kernel: give cute.compile(...) a name at its end")
    return done


def _compiled(text: str, file: Path) -> list[Function]:
    """The kernels of everything that the program has compiled and given a name."""
    names: dict[str, Any] = {"__name__": "kernel", "__file__": str(file)}
    exec(compile(text, str(file), "exec", dont_inherit=True), names)
    compiled = [kernel for value in names.values() for kernel in getattr(value, "kernels", ())]
    return [kernel for kernel in dict.fromkeys(compiled) if isinstance(kernel, Function)]


def _ir(function: Function, file: Path) -> list[SourceLine]:
    lines = []
    for text in print_function(function, locations=True).splitlines():
        line, _, place = text.partition("  // ")
        name, _, number = place.rpartition(":")
        lines.append(SourceLine(line, int(number) if name == str(file) else 0))
    return lines


def _mistake(error: Exception, file: Path) -> FieldError:
    """The error with the line of the program where it arose; its position is the number of that line."""
    message = str(error).replace(str(file), "kernel.py")
    named = re.search(r"kernel\.py(?::|, line )(\d+)", message)
    frames = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    line = int(named[1]) if named else getattr(error, "lineno", None) or (frames[-1] if frames else 0) or 0
    if not isinstance(error, TilewrightError):
        message = f"{type(error).__name__}: {message}"
    return FieldError("program", message if named else f"{message} (line {line})", line)


def program(name: str) -> str:
    """The text of a program that comes with the explorer."""
    return (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")


NAMES = tuple(path.stem for path in sorted(PROGRAMS.glob("*.py")))
KERNEL = Tab(
    "kernel",
    "Kernel",
    "A kernel as Python, IR and CUDA C++; corresponding lines are highlighted together.",
    (
        Field("program", "Program", program(NAMES[0]), rows=24),
        Field("arch", "Architecture", "sm_90a", ARCHITECTURES),
    ),
    kernel,
    live=False,
    samples=tuple((name.replace("_", " "), {"program": program(name)}) for name in NAMES),
)
