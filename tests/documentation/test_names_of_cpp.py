"""docs/from_cpp.md and docs/compatibility.md: the names of their tables exist, and as many as they say."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.compat.test_names import DATA, GROUPS
from tests.compat.test_names import find as find_public
from tilewright.stand_ins import NotHereYet

PAGE = (Path(__file__).parents[2] / "docs" / "from_cpp.md").read_text(encoding="utf-8")


def find(name: str) -> Any:
    first, *rest = name.split(".")
    found: Any = importlib.import_module(f"tilewright.{first}")
    for part in rest:
        found = getattr(found, part)
    return found


def test_every_python_name_exists() -> None:
    table = PAGE.split("## Names")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.*) \| (.*) \|$", table, re.MULTILINE)[1:]
    names = [name for _, python in rows for name in re.findall(r"`([\w.]+)`", python) if name != "print"]
    assert len(names) >= 80
    assert all(find(name) is not None for name in names)


def test_as_many_names_stand_on_both_sides_or_one_serves_several() -> None:
    table = PAGE.split("## Names")[1].split("\n## ")[0]
    for cpp, python in re.findall(r"^\| (`.*) \| (.*) \|$", table, re.MULTILINE):
        ours = python.count("`") // 2
        assert ours in (1, cpp.count("`") // 2) or "Swizzle" in cpp, cpp


def test_the_counts_of_the_cute_dsls_names_are_true() -> None:
    pytest.importorskip("jax")
    page = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+)[^|]* \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    later = {group: sum(isinstance(find_public(name), NotHereYet) for name in GROUPS[group]) for group in GROUPS}
    counted = {group: (len(GROUPS[group]) - n, n, len(GROUPS[group])) for group, n in later.items()}
    assert {group: tuple(map(int, counts)) for group, *counts in rows} == counted
    surface = json.loads((DATA / "api_surface.json").read_text(encoding="utf-8"))
    shared = [f"{module}.{name}" for module, names in surface.items() for name in names]
    assert all(find_public(name) is not None for name in shared)
    assert f"these come {len(shared)} names" in page
