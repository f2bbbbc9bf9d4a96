"""Texts that are kept in a file, one after another: what a program writes of many cases, word for word."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent / "data"
ROOT = str(Path(__file__).parents[1])
CUT = "\n// ----\n"


def placed(text: str) -> str:
    """The text with files named by their place in the project."""
    return text.replace(f"{ROOT}/", "")


def write(file: str, texts: dict[str, str]) -> None:
    (DATA / file).write_text(CUT.join(map(placed, texts.values())) + "\n", encoding="utf-8")


def check(file: str, texts: dict[str, str], command: str) -> None:
    """Fail at the first line that is not as ``file`` has it. ``command`` writes the file anew."""
    kept = (DATA / file).read_text(encoding="utf-8").removesuffix("\n").split(CUT)
    changed = f"another text than in tests/data/{file}; if the change is meant, write it: {command}"
    for (name, written), before in zip(texts.items(), kept, strict=False):
        text = placed(written)
        for line, old in zip(text.splitlines(), before.splitlines(), strict=False):
            assert line == old, f"{name}: {changed}"
        assert text == before, f"{name}: {changed}"
    assert len(texts) == len(kept), f"{len(kept)} are kept: {changed}"
