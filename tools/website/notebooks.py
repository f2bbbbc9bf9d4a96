"""Notebooks: executed, and written as pages with their outputs.

The notebooks in docs/notebooks have no outputs; they are executed here, by the tests and for the site.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client import KernelManager
from nbclient import NotebookClient

from tools.website.kept import ROOT, kept

NOTEBOOKS = ROOT / "docs" / "notebooks"


@contextlib.contextmanager
def kernel() -> Iterator[Any]:
    """A kernel process, for several notebooks one after the other: each imports Tilewright and NumPy in a second."""
    _with_this_tree()
    manager = KernelManager()
    try:
        yield manager
    finally:
        if manager.has_kernel:
            manager.shutdown_kernel(now=True)


def executed(path: Path, manager: Any = None) -> Any:
    """The notebook with its outputs, by a kernel of its own or by that of ``manager``, whose names are cleared before.

    Raises nbclient's CellExecutionError, which shows the cell, where one fails."""
    result = kept("notebooks", path).with_suffix(".ipynb")
    if result.exists():
        return nbformat.read(result, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    _with_this_tree()
    folder = {"metadata": {"path": str(result.parent)}}
    with result.with_suffix(".log").open("w", encoding="utf-8") as log:  # the messages of the kernel process
        client = NotebookClient(notebook, km=manager, timeout=300, resources=folder)
        if manager is not None and manager.has_kernel:
            notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
        client.execute(stderr=log, cleanup_kc=manager is None)
        notebook.cells = [cell for cell in notebook.cells if cell.source != "%reset -f"]
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
    with kernel() as manager:
        for path in sorted(NOTEBOOKS.glob("*.ipynb")):
            (folder / f"{path.stem}.md").write_text(page(executed(path, manager), path.name), encoding="utf-8")
            shutil.copy(path, folder)


def stripped(path: Path) -> bool:
    """Whether the notebook in the repository is without outputs and counts."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
