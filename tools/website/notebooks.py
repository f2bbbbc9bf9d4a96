"""Notebooks: executed, and written as pages with their outputs.

The notebooks in docs/notebooks have no outputs; they are executed here, by the tests and for the site.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tools.website.kept import ROOT, kept

NOTEBOOKS = ROOT / "docs" / "notebooks"


def executed(path: Path) -> Any:
    """The notebook with its outputs. Raises nbclient's CellExecutionError, which shows the cell, where one fails."""
    result = kept("notebooks", path).with_suffix(".ipynb")
    if result.exists():
        return nbformat.read(result, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    _with_this_tree()
    with result.with_suffix(".log").open("w", encoding="utf-8") as log:  # what the kernel process says of itself
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(result.parent)}}).execute(stderr=log)
    part = result.with_suffix(f".{os.getpid()}")
    nbformat.write(notebook, part)
    part.replace(result)
    return notebook


def _with_this_tree() -> None:
    """Kernels import Tilewright from here."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(ROOT) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, paths)])


def page(notebook: Any, name: str) -> str:
    """The executed notebook as Markdown; ``name`` is the file that readers may take with them."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        shown = "\n\n".join([f"```python\n{cell.source}\n```", *(_output(output) for output in cell.outputs)])
        if "solution" in cell.metadata.get("tags", []):
            shown = '??? success "A solution"\n\n' + re.sub("^", "    ", shown, flags=re.MULTILINE)
        parts.append(shown)
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n[Download the notebook]({name}){{ download }}\n{rest}\n"


def _output(output: Any) -> str:
    """An output of a cell: a picture as it is, anything else as text."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        picture = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>", "", data["image/svg+xml"], flags=re.DOTALL)
        return f'<div class="picture">{" ".join(picture.split(chr(10)))}</div>'
    if "text/html" in data:
        return f'<div class="picture">{" ".join(data["text/html"].split(chr(10)))}</div>'
    text = output.text if output.output_type == "stream" else data.get("text/plain", "")
    text = re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip()
    return f"``` {{ .text .output }}\n{text}\n```"


def write(folder: Path) -> None:
    """Execute all notebooks and write their pages and the notebooks themselves into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        (folder / f"{path.stem}.md").write_text(page(executed(path), path.name), encoding="utf-8")
        shutil.copy(path, folder)


def stripped(path: Path) -> bool:
    """Whether the notebook in the repository is without outputs and counts."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
