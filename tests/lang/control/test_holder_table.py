"""One row for each kind of object that Python or a library gives: it is made, changed in a run-time branch, and read.

The staged program gives Python's number, or it is refused for what the region changes.
"""

from __future__ import annotations

import collections
import contextvars
import ctypes
import decimal
import enum
import functools
import io
import itertools
import linecache
import threading
import types
from typing import Any

import numpy as np
import pytest

import tilewright.cute as cute
from tests.lang.control.holder_programs import LANES, staged
from tilewright.errors import StagingError


class Level(enum.Enum):
    LOW = 1


class Lazy:
    made = [0]

    @functools.cached_property
    def pure(self) -> int:
        return 3

    @functools.cached_property
    def counted(self) -> int:
        self.made[0] = self.made[0] + 1
        return self.made[0]


class Equal:
    def __init__(self) -> None:
        self.asked = 0

    def __eq__(self, other: object) -> bool:
        self.asked = self.asked + 1
        return False


class Registry:
    classes: list[type] = []

    def __init_subclass__(cls) -> None:
        Registry.classes.append(cls)


@functools.lru_cache
def remembered(k: int) -> list[int]:
    return [0]


def drawn() -> Any:
    yield from (1, 2, 3)


def other() -> int:
    return 9


def held(iterator: str) -> str:
    """An object that no region names itself: it is an attribute."""
    return f"H = types.SimpleNamespace(i={iterator})"


AGAIN = "next(H.i)"
POSITION = r"'H.i(\[0\])?' changes its position"
ROWS = [
    # iterators behind an attribute, each of the ways to read where they are
    *(
        (held(made), AGAIN, AGAIN, POSITION)
        for made in (
            "iter([1, 2, 3])",
            "iter((1, 2, 3))",
            "iter(range(4))",
            "iter({1: 2, 2: 3})",
            "reversed([1, 2, 3])",
            "drawn()",
            "(k for k in [1, 1, 2])",
            "enumerate_items([4, 5])",
            "itertools.count()",
            "itertools.accumulate([1, 2])",
        )
    ),
    (held("zip([1, 2], [3, 4])"), AGAIN, "next(H.i)[0]", "'H.i.*' changes its position"),
    (held("itertools.pairwise([1, 2, 3])"), AGAIN, "next(H.i)[0]", "'H.i' is a pairwise from outside the region"),
    ("H = iter([1, 2, 3])", "list(H)", "len(list(H))", "'H' changes its position.* take a list of its items"),
    ("H = iter([1, 2, 3])", "n", "next(H)", ""),
    ("H = iter([1, 2, 3])", "any(k > n for k in H)", "len(list(H))", "'H' changes its position in the run-time `or`"),
    ("H = np.arange(3).flat", "next(H)", "int(next(H))", "'H' changes its position"),
    # what libraries keep
    ("H = np.asmatrix(np.zeros((2, 2)))", "H.fill(5)", "int(H[0, 0])", "'H' changes its contents"),
    ("H = np.ma.array([1, 2])", "H.mask = [True, False]", "int(H.sum())", "'H' changes its contents"),
    ("H = np.zeros(4)", "H.shape = (2, 2)", "H.ndim", "'H' changes its contents"),
    ("H = np.zeros(2, [('x', 'i4')])[0]", "H['x'] = 4", "int(H['x'])", "'H' changes its contents"),
    ("numbers.seed(1)", "numbers.rand()", "int(1000 * numbers.rand())", "'numbers.random' changes its contents"),
    ("H = (ctypes.c_int * 2)()", "H[0] = 4", "H[0]", "'H' changes its contents"),
    ("H = io.StringIO('abc')", "H.read(1)", "len(H.read())", "'H' changes its contents"),
    ("H = io.BytesIO(b'abc')", "H.write(b'xy')", "H.getvalue()[0]", "'H' changes its contents"),
    ("H = threading.Lock()", "H.acquire()", "int(H.locked())", "'H' changes its owner"),
    ("H = threading.Lock()", "with_(H)", "int(H.locked())", ""),
    ("H = threading.local(); H.v = 0", "H.v = n", "H.v", ""),
    (
        "H = types.SimpleNamespace(c=contextvars.copy_context()); H.c.run(VARIABLE.set, 0)",
        "H.c.run(VARIABLE.set, 5)",
        "H.c[VARIABLE]",
        "'H.c' changes its values",
    ),
    ("H = decimal.Context()", "H.prec = 3", "H.prec", "'H' changes its contents"),
    # Python's own
    ("H = collections.defaultdict(int)", "H.default_factory = other", "H['a']", "'H' changes its factory"),
    ("H = ValueError(1)", "H.args = (n,)", "H.args[0]", "'H' changes its attributes"),
    ("H = Level.LOW; H.mark = 0", "H.mark = 5", "H.mark", "changes its attributes"),
    ("H = lambda: 1", "H.__code__ = other.__code__", "H()", "'H' changes its variables"),
    ("remembered.cache_clear(); remembered(1)", "remembered(1)[0] = n", "remembered(1)[0]", ""),
    ("remembered(1); remembered(2)", "remembered(1)", "remembered(2)[0]", ""),
    ("H = Lazy()", "H.pure", "H.pure", ""),
    ("Lazy.made[0] = 0; H = Lazy()", "H.counted", "H.counted", "'H' changes its attributes"),
    ("H = (Equal(), Equal())", "n in H", "H[1].asked", "asked' changes in a side of the run-time `in`"),
    ("globals()['SHARED'] = 0", "globals()['SHARED'] = 5", "SHARED", r"globals\(\) in a run-time if"),
    ("globals()['SHARED'] = 3", "n", "SHARED", ""),
    ("Registry.classes.clear()", "type('Made', (Registry,), {})", "len(Registry.classes)", "changes its length"),
]
"""How it is made, what changes it, what reads it, and what the refusal says; empty where the program is right."""


def with_(lock: Any) -> None:
    with lock:
        pass


def enumerate_items(items: Any) -> Any:
    return map(int, items)


VARIABLE = contextvars.ContextVar("VARIABLE", default=0)
LIBRARIES = (collections, contextvars, ctypes, decimal, functools, io, itertools, threading, types)
SCOPE = {**globals(), "np": np, "numbers": np.random, **{library.__name__: library for library in LIBRARIES}}


@pytest.mark.parametrize(("made", "change", "read", "refusal"), ROWS, ids=[f"{i}-{r[1]}" for i, r in enumerate(ROWS)])
def test_pythons_answer_or_a_refusal(made: str, change: str, read: str, refusal: str) -> None:
    lines = ["def program(n):", *(f"    {line}" for line in made.split("; ")), "    if n > 2:", f"        {change}"]
    text = "\n".join([*lines, f"    return {read},", ""])
    file = f"<holder table {made} {change}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = dict(SCOPE)
    exec(compile(text, file, "exec"), scope)
    expected = [tuple(map(float, scope["program"](n))) for n in LANES]
    if refusal:
        with pytest.raises(StagingError, match=refusal) as caught:
            staged(scope["program"])
        assert file in str(caught.value)
    else:
        assert staged(scope["program"]) == expected


def refuse_change(held: Any, change: Any) -> None:
    def program(n):
        if n > 2:
            change(held)
        return (0,)

    with pytest.raises(StagingError, match="'held.*' changes its contents"):
        staged(program)


def test_torch_tensors_changed_under_a_branch_are_refused() -> None:
    torch = pytest.importorskip("torch")

    weight = torch.nn.Parameter(torch.zeros(2), requires_grad=False)
    refuse_change(weight, lambda t: t.add_(1))
    refuse_change(torch.zeros(2), lambda t: t.requires_grad_())
    refuse_change(torch.zeros(2), lambda t: setattr(t, "data", torch.ones(3)))
    sparse = torch.zeros(2, 2).to_sparse()  # has no address
    refuse_change(sparse, lambda t: t.zero_())
    refuse_change(torch.Generator(), lambda g: g.manual_seed(3))
    refuse_change(torch, lambda t: t.rand(1))
    module = torch.nn.Linear(1, 1)

    def trained(n):
        if n > 2:
            module.training = n
        return (module.training,)

    module.training = 0
    assert staged(trained) == [(0.0,), (0.0,), (3.0,), (4.0,)]


def test_all_of_a_comparison_may_change_something() -> None:
    """A side of ``and`` that calls nothing by name: the class of its operand does what it likes."""
    box = Equal()

    @cute.jit
    def program(n):
        asked = n > 2 and box == 3  # noqa: F841 - the side is what counts
        return (box.asked,)

    with pytest.raises(StagingError, match="'box.asked' changes in a side of the run-time `and`"):
        staged(program)
