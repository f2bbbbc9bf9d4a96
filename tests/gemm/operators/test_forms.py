"""The forms of the products that frameworks record: a compiled call may be the one that loads them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewright.gemm import combine_rows, matmul, operators
from tilewright.gemm.operators import forms

torch = pytest.importorskip("torch")

FORM = """
import torch

@torch.library.custom_op("tests_of_forms::doubled", mutates_args=())
def recorded(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@recorded.register_fake
def _(x):
    return torch.empty_like(x)
"""


@pytest.fixture(autouse=True)
def none_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "LOADED", set())


def compiled(function: Any) -> Any:
    return torch.compile(function, backend="aot_eager", fullgraph=True)


@pytest.fixture
def form_of_a_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A form that no process has loaded."""
    (tmp_path / "torch_of_a_test.py").write_text(FORM, encoding="utf-8")
    monkeypatch.setattr(operators, "__path__", [*operators.__path__, str(tmp_path)])
    yield "torch_of_a_test"
    vars(operators).pop("torch_of_a_test", None)
    sys.modules.pop("tilewright.gemm.operators.torch_of_a_test", None)


def test_a_compiled_call_loads_a_form(form_of_a_test: str) -> None:
    """torch.compile follows no import by name, and guards what it has seen absent."""
    assert not hasattr(operators, form_of_a_test)
    step = compiled(lambda x: forms.recorded_form(form_of_a_test).recorded(x) + 1)
    for rows in (2, 3):
        assert (step(torch.ones(rows, 4)) == 3).all()
    assert forms.LOADED == {form_of_a_test}


def test_products_load_their_forms_while_they_are_compiled() -> None:
    x = torch.ones(4, 16).half()
    places = torch.tensor([[0, 1], [2, 3]], dtype=torch.int32)
    result = compiled(lambda x, weights: combine_rows(matmul(x, x.T), places, weights))(x, torch.ones(2, 2))
    assert (result == 32).all(), result
    assert {"torch_op", "torch_combine"} <= forms.LOADED
