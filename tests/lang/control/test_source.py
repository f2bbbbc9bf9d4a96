"""What is staged is what Python would run: never another text that lies under the same file name."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import os
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import StagingError

MODULE = """\
import tilewright.cute as cute

@cute.jit
def marked(x):
    return x + 1

def plain(x):
    return x + 1
"""


def load(path: Any, text: str) -> ModuleType:
    path.write_text(text)
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)  # an edit of the same second and length
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def edit(path: Any, text: str) -> None:
    path.write_text(text)
    os.utime(path, (1, 1))  # a time of change that no cache takes for the old one
    linecache.checkcache()


EDITS = {
    "another number": MODULE.replace("+ 1", "+ 2"),
    "another name": MODULE.replace("(x)", "(y)").replace("x + 1", "y + 1"),
    "lines above": "# new\n\n" + MODULE,
    "another function in its place": MODULE.replace("marked", "other").replace("plain", "marked"),
    "no Python": "(" + MODULE,
}


@pytest.mark.parametrize("case", EDITS)
def test_a_marked_function_is_staged_from_what_was_imported(case: str, tmp_path: Any) -> None:
    module = load(tmp_path / "edited.py", MODULE)
    edit(tmp_path / "edited.py", EDITS[case])
    assert module.marked(5) == 6


@pytest.mark.parametrize("case", EDITS)
def test_a_file_that_changed_is_an_error_where_the_old_text_is_gone(case: str, tmp_path: Any) -> None:
    module = load(tmp_path / "edited.py", MODULE)
    edit(tmp_path / "edited.py", EDITS[case])
    with pytest.raises(StagingError, match=r"edited.py:7: plain was not compiled .*changed since .* import it again"):
        cute.compile(module.plain, 5)


def test_a_module_that_is_imported_again_is_staged_again(tmp_path: Any) -> None:
    path = tmp_path / "edited.py"
    assert load(path, MODULE).marked(5) == 6
    edit(path, EDITS["another number"])
    assert load(path, EDITS["another number"]).marked(5) == 7


def test_texts_of_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -c` puts its text under the name `<string>`, which code made by `exec` bears, too."""
    lines = textwrap.dedent("""\
        def f(x):
            return x * 10
        """).splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "<string>", (1, None, lines, "<string>"))
    scope: dict[str, Any] = {}
    exec("".join(lines), scope)
    assert cute.jit(scope["f"])(4) == 40
    exec("def f(x):\n    return x * 11", scope)
    with pytest.raises(StagingError, match="<string>:1: f was not compiled .* several texts go by the name"):
        cute.jit(scope["f"])(4)
    assert cute.jit(scope["f"], preprocessor=False)(4) == 44


def test_equal_code_of_two_files_keeps_its_file(tmp_path: Any) -> None:
    text = "def f(x):\n    if x > 0:\n        return 1\n    return 2\n"
    for name in ("one.py", "two.py"):
        module = load(tmp_path / name, text)
        with pytest.raises(StagingError, match=rf"{name}:3: `return` inside"):
            cute.jit(module.f)(4)


def test_assertions_that_pytest_has_rewritten() -> None:
    @cute.jit
    def f(x: Any) -> Any:
        assert (lambda: True)() and len([x]) == 1, "one"
        assert x > 3, "small"
        return x * os.path.join("a", "b").count("a")

    assert f(4) == 4


def test_notebooks_compile_each_statement_of_a_cell_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python calls functions of a module in another way where it sees the module imported in the same compilation."""
    text = "from tilewright import cute\n\n@cute.jit\ndef f(x: cute.Tensor):\n    x[0] = cute.ceil_div(x[0], 2)\n"
    name = "/tmp/ipykernel_1/1.py"
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(True), name))
    names: dict[str, Any] = {"__name__": "__main__"}
    for statement in ast.parse(text).body:
        exec(compile(ast.Module([statement], []), name, "exec"), names)
    out = np.array([7], np.int32)
    names["f"](from_dlpack(out))
    assert out[0] == 4


class Span:
    """Methods that name their own class: a global variable, as they see it."""

    __step = 2

    def __init__(self, first, count):
        self.first, self.count = first, count

    @staticmethod
    @cute.jit
    def of(n):
        return Span(n, n + Span.__step)

    @classmethod
    @cute.jit
    def made(cls, n):
        return cls(n, n) if cutlass.const_expr(cls is Span) else Span(n, 0)

    @cute.jit
    def longer(self):
        return Span(self.first, self.count + Span.__step)


def test_methods_name_their_own_class(staged):
    class Local:
        def __init__(self, n):
            self.n = n

        @staticmethod
        @cute.jit
        def twice(n):
            return Local(n + n)

    def program(n):
        span = Span.of(n).longer()
        return span.first, span.count, Span.made(n).count, Local.twice(n).n

    assert staged(program, 5) == (5, 9, 5, 10)
