"""The programs of examples/ as pages: their text, code, pictures, and what they print.

A program is in cells, as editors and Jupyter read them: ``# %% [markdown]`` begins text, ``# %%`` code. Its docstring
says what it is; an image of the text is one of those that its function ``pictures`` gives.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.website.kept import ROOT, kept

EXAMPLES = ROOT / "examples"
# Pages in their order, with their titles.
TITLES = {
    "elementwise": "Elementwise addition",
    "transpose": "Transpose",
    "softmax": "Softmax",
    "attention": "Attention",
    "convolution": "Convolution",
    "gemm": "A GEMM of the library",
    "stream_k": "A Stream-K GEMM",
    "blackwell_gemm": "A GEMM for clusters of Blackwell",
    "tma_copy": "A copy by TMA",
    "experts": "A mixture of experts",
    "tensor_parallel": "A layer on several devices",
}
ALONE = ("tensor_parallel",)  # starts processes of its own
CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
HELPERS = re.compile(r"^# -- (.*?) -*\n", re.MULTILINE)
DRAW = """
import runpy, sys
from pathlib import Path
names = runpy.run_path(sys.argv[1], run_name="example")
for name, picture in names.get("pictures", dict)().items():
    picture.save(Path(sys.argv[2]) / name)
"""


def cells(source: str) -> Iterator[tuple[bool, str]]:
    """The cells after the docstring: whether it is text, and its text or code.

    >>> list(cells('\\"\\"\\"What.\\"\\"\\"\\n# %% [markdown]\\n# Some *text*.\\n\\n# %%\\nx = 1\\n'))
    [(True, 'Some *text*.'), (False, 'x = 1')]
    """
    parts = CELL.split(source)
    if len(parts) == 1:  # a program that is not in cells
        docstring = ast.parse(source).body[0]
        parts = ["", "", "".join(source.splitlines(keepends=True)[docstring.end_lineno :])]
    for kind, text in zip(parts[1::2], parts[2::2], strict=True):
        is_text = "markdown" in kind
        lines = [re.sub("^# ?", "", line) for line in text.splitlines()] if is_text else text.splitlines()
        if content := "\n".join(lines).strip("\n"):
            yield is_text, content


def made(program: Path) -> Path:
    """A folder with the pictures of the program, with what it prints, and with what the checks find in it."""
    folder = kept("tutorials", program)
    if not folder.exists():
        part = folder.with_suffix(f".{os.getpid()}")
        part.mkdir()
        _run([sys.executable, "-c", DRAW, str(program), str(part)])
        done = _run([sys.executable, "-m", "tilewright", "check", f"examples/{program.name}"], found=1)
        (part / "printed.txt").write_text(done.stdout, encoding="utf-8")
        (part / "found.txt").write_text(done.stderr or "nothing found", encoding="utf-8")
        part.rename(folder)
    return folder


def _run(command: list[str], found: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in the project's folder; ``found`` is the status of one that has found something."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, encoding="utf-8")
    if done.returncode not in (0, found):
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done


def page(program: Path, printed: str, found: str) -> str:
    """The page of a program as Markdown."""
    source = program.read_text(encoding="utf-8")
    sentence, _, rest = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    source, *helpers = HELPERS.split(source)
    parts = [f"# {TITLES[program.stem]}", f"[Download the program]({program.name}){{ download }}", sentence, rest]
    parts += [text if is_text else f"```python\n{text}\n```" for is_text, text in cells(source)]
    if helpers:
        code = re.sub("^", "    ", f"```python\n{helpers[1].strip()}\n```", flags=re.MULTILINE)
        parts.append(f'??? note "{helpers[0][0].upper()}{helpers[0][1:]}"\n\n{code}')
    if printed:
        parts += ["## What it prints", f"``` {{ .text .output }}\n{printed.rstrip()}\n```"]
        command = f"    tilewright check examples/{program.name}"
        parts += ["Under all checks of the simulator:", command, f"``` {{ .text .output }}\n{found.strip()}\n```"]
    return "\n\n".join(filter(None, parts)) + "\n"


def index() -> str:
    """The first page: each program with its sentence."""
    lines = [
        "# Tutorials",
        "",
        "Programs that are complete: each is one file, runs on a laptop, and checks its result.",
    ]
    lines += ["With `--gpu` they run on a GPU. Each page has the program's text, its pictures, and what it prints.", ""]
    lines += ["| program | |", "|---|---|"]
    for name, title in TITLES.items():
        said = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))) or ""
        lines.append(f"| [{title}]({name}.md) | {' '.join(said.split(chr(10) * 2)[0].split())} |")
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """Write the pages, their pictures and the programs into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.md").write_text(index(), encoding="utf-8")
    for name in TITLES:
        program = EXAMPLES / f"{name}.py"
        printed = found = ""
        if name not in ALONE:
            results = made(program)
            printed, found = ((results / f"{what}.txt").read_text(encoding="utf-8") for what in ("printed", "found"))
            for picture in results.glob("*.svg"):
                (folder / f"{name}_{picture.name}").write_text(picture.read_text(encoding="utf-8"), encoding="utf-8")
        text = re.sub(r"(!\[[^\]]*\]\()(\w+\.svg)", rf"\1{name}_\2", page(program, printed, found))
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
        (folder / program.name).write_text(program.read_text(encoding="utf-8"), encoding="utf-8")
