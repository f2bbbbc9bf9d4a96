"""docs/ahead_of_time.md: its programs run, and print what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.export.harness import Driver, needs_compiler, run_c

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ahead_of_time.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@needs_compiler
def test_the_page(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "page.py"  # kernels are read from a file
    source.write_text("\n".join(blocks("python")))
    exec(compile(source.read_text(), str(source), "exec"), {"__name__": "page"})
    (said,) = re.findall(r"print\(.*\)  # (.*)", PAGE)
    assert capsys.readouterr().out == f"{said}\n"
    (main,) = blocks("c")
    done = run_c(main, tmp_path / "artifacts", ["scale"], driver)
    (printed,) = re.findall(r"It prints\n\n((?:    .*\n)+)", PAGE)
    assert done.stdout.splitlines() == [line.strip() for line in printed.splitlines()]


def test_files_named_on_the_page_exist() -> None:
    """Each fixed part that the last section names is there."""
    folder = Path(__file__).resolve().parents[2] / "tilewright" / "export"
    named = re.findall(r"`(\w+\.(?:py|c))`", PAGE.partition("## Inside")[2])
    assert len(named) >= 8 and all((folder / name).exists() for name in named)
