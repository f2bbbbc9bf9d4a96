"""docs/notebooks: they run from the first cell to the last, their answers are right, their outputs are not kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from tools.website import notebooks

NOTEBOOKS = sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    with notebooks.kernel() as manager:
        yield manager


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_its_solutions_pass(path: Path, kernel: Any) -> None:
    executed = notebooks.executed(path, kernel)
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    printed = ["".join(out.get("text", "") for out in cell.outputs) for cell in code]
    open_answers = [text for text in printed if text.startswith("Put your answer in place")]
    right = [text for text in printed if text.startswith("Right.")]
    assert len(open_answers) == len(right) >= 3  # each exercise is asked, and its solution passes the check
    pictures = [out for cell in code for out in cell.outputs if "image/svg+xml" in out.get("data", {})]
    assert pictures
    page = notebooks.page(executed, path.name)
    assert page.startswith("# ") and page.count("<svg") == len(pictures) and page.count("A solution") == len(right)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_repository_has_no_outputs(path: Path) -> None:
    assert notebooks.stripped(path)
    cells = json.loads(path.read_text())["cells"]
    solutions = [cell for cell in cells if "solution" in cell["metadata"].get("tags", [])]
    assert all(re.search(r"^assert .*\bcheck\(", "".join(cell["source"]), re.MULTILINE) for cell in solutions)
    assert sum("answer = ..." in "".join(cell["source"]) for cell in cells) == len(solutions)


def test_five_notebooks_are_listed() -> None:
    index = (notebooks.NOTEBOOKS / "index.md").read_text()
    assert re.findall(r"\]\((\d_\w+)\.ipynb\)", index) == [path.stem for path in NOTEBOOKS]
    assert len(NOTEBOOKS) == 5


def test_a_wrong_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The cell `check`, which is the same in all notebooks."""
    texts = set()
    for path in NOTEBOOKS:
        cells = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]
        texts.update(cell for cell in cells if cell.startswith("def check("))
    (text,) = texts
    names: dict[str, object] = {}
    exec(text, names)
    assert not names["check"](3, lambda n: n == 4) and not names["check"](..., bool)
    assert names["check"](4, lambda n: n == 4)
    assert capsys.readouterr().out.split("\n")[0] == "Not yet: 3"
