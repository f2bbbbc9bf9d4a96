"""Public functions and classes have an example in their docstring, which doctest runs. The list of those that have none
(`without_example.txt`) only gets shorter."""

from __future__ import annotations

import importlib
import inspect
from enum import Enum, EnumType
from pathlib import Path

import pytest

pytest.importorskip("griffe")

from tools.website import api

KNOWN = Path(__file__).with_name("without_example.txt")


def has_example(value: object) -> bool:
    """In its docstring, or a class in that of a method. The members of an enumeration are its documentation: an example
    could only repeat one."""
    if isinstance(value, EnumType):
        return True
    texts = [inspect.getdoc(value)]
    if isinstance(value, type):
        texts = [value.__doc__, *(getattr(member, "__doc__", None) for member in vars(value).values())]
    return any(">>> " in (text or "") for text in texts)


def without_example() -> list[str]:
    found = []
    for entries in api.modules().values():
        for entry in entries:
            for name, where in entry.described:
                own = getattr(importlib.import_module(entry.name), name)
                if not where.startswith("tilewright.sm100") and not has_example(own):
                    found.append(f"{entry.name}.{name}")
    return sorted(found)


def test_public_names_have_an_example() -> None:
    known = KNOWN.read_text(encoding="utf-8").split()
    found = without_example()
    assert sorted(set(found) - set(known)) == [], "give the docstring an example (`>>> ...`)"
    assert sorted(set(known) - set(found)) == [], f"these have an example now: take them out of {KNOWN.name}"
    assert len(known) <= 167, "the list only gets shorter"


def test_an_example_is_seen() -> None:
    def bare() -> None:
        """Text."""

    class Shown:
        """Text."""

        def method(self) -> None:
            """>>> 1 + 1
            2
            """

    class Inherited(Shown):
        pass

    class Members(Enum):
        ONE = 1

    assert has_example(Members)
    assert not has_example(bare) and has_example(Shown) and not has_example(Inherited)
