"""Editors show parameters: no public function hides those that it has behind ``*args: Any`` or ``**kwargs: Any``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tilewright import cute, layout
from tilewright.lang.tensors import algebra

MODULES = [
    "tilewright",
    "tilewright.cute",
    "tilewright.cute.arch",
    "tilewright.cute.math",
    "tilewright.cute.runtime",
    "tilewright.cute.testing",
    "tilewright.cute.nvgpu",
    "tilewright.cute.nvgpu.cpasync",
    "tilewright.cute.nvgpu.warp",
    "tilewright.cute.nvgpu.warpgroup",
    "tilewright.cute.experimental",
    "tilewright.utils",
    "tilewright.pipeline",
    "tilewright.gemm",
    "tilewright.viz",
    "tilewright.layout",
    "tilewright.analysis",
    "tilewright.sim",
]
# Any number of numbers, layouts, trees, things to print, or the arguments of another function (a subclass's).
ANY_NUMBER = {"block_copy", "filter_tuple",
    "max", "min", "range", "range_constexpr", "range_dynamic", "Layout.compose", "Layout.with_shape",
    "ComposedLayout.compose",
    "ComposedLayout.with_shape", "Tensor.compose", "TensorSSA.map", "compile", "make_tile", "printf", "transform_apply",
    "transform_leaf", "tuple_cat", "JitArguments", "explain", "SyncObject.arrive",
    "SyncObject.wait", "SyncObject.arrive_and_wait", "SyncObject.arrive_and_drop", "SyncObject.get_barrier",
}  # fmt: skip
OVERLOADED = {"jit", "kernel"}  # their implementation alone has **unknown


def hidden(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(p.kind in kinds and p.annotation in ("Any", inspect.Parameter.empty) for p in parameters)


def public(module: Any) -> Iterator[tuple[str, Any]]:
    for name in getattr(module, "__all__", ()):
        found = getattr(module, name)
        if not str(getattr(found, "__module__", "")).startswith("tilewright"):
            continue
        if inspect.isclass(found):
            written = {k: v for k, v in vars(found).items() if inspect.isfunction(v) and v.__module__ != "typing"}
            own = {k: v for k, v in written.items() if k == "__init__" or not k.startswith("_")}
            yield from ((name if k == "__init__" else f"{name}.{k}", v) for k, v in own.items())
        elif callable(found):
            yield name, found


@pytest.mark.parametrize("module", MODULES)
def test_parameters_are_named(module: str) -> None:
    found = {name for name, function in public(importlib.import_module(module)) if hidden(function)}
    assert found <= ANY_NUMBER | OVERLOADED


def test_the_algebra_of_tensors_has_the_signatures_and_texts_of_layouts() -> None:
    """Type checkers read the declarations of ``layout``; Python shows the same."""
    shared = set(cute.__all__) & {name for name, _ in public(layout)}
    assert len(shared) > 60
    for name in shared:
        here, there = getattr(cute, name), getattr(layout, name)
        if inspect.isfunction(here) and not hasattr(algebra, name):
            assert inspect.signature(here) == inspect.signature(there), name
            assert here.__doc__.startswith(there.__doc__), name


def test_hidden_keywords_are_found_by_the_check() -> None:
    def one(a: int, **options: Any) -> None: ...
    def two(a: int, *, option: int = 0) -> None: ...

    one.__annotations__ = {"options": "Any"}
    assert hidden(one) and not hidden(two)
