"""Notebooks: executed, and written as pages with their outputs.

The notebooks in docs/notebooks have no outputs; they are executed here, by the tests and for the site. What was
executed once is kept in build/notebooks under a name that depends on the notebook and on Tilewright's source.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
KEPT = ROOT / "build" / "notebooks"


def executed(path: Path) -> Any:
    """The notebook with its outputs. Raises nbclient's CellExecutionError, which shows the cell, where one fails."""
    kept = KEPT / f"{path.stem}-{_fingerprint(path)}.ipynb"
    if kept.exists():
        return nbformat.read(kept, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    _with_this_tree()
    KEPT.mkdir(parents=True, exist_ok=True)
    with kept.with_suffix(".log").open("w", encoding="utf-8") as log:  # what the kernel process says of itself
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(KEPT)}}).execute(stderr=log)
    part = kept.with_suffix(f".{os.getpid()}")
    nbformat.write(notebook, part)
    part.replace(kept)
    return notebook


def _with_this_tree() -> None:
    """Kernels import Tilewright from here."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(ROOT) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, paths)])


def _fingerprint(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes())
    for source in sorted((ROOT / "tilewright").rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


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
